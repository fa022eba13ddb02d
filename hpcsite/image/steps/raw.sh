# Writes a root ($1) as a whole disk ($3) of size $4 in MiB that UEFI firmware boots: GPT, an EFI system
# partition with systemd-boot, kernel and initrd, and an ext4 root. $2: a file with root's ssh keys, or
# nothing. Everything is made in files: no loop device, no root.
set -eu
. "$(dirname "$0")/key.sh"
root=$1 disk=$3 size=$4
esp_start=1 esp_size=512
root_start=$((esp_start + esp_size))
root_size=$((size - root_start - 1))
parts=$disk.parts
rm -rf "$parts" "$disk"
mkdir "$parts"
trap 'rm -rf "$parts"' EXIT

case $(ls "$root/usr/lib/systemd/boot/efi") in
  *systemd-bootaa64.efi*) loader=systemd-bootaa64.efi fallback=BOOTAA64.EFI arch=arm64 ;;
  *) loader=systemd-bootx64.efi fallback=BOOTX64.EFI arch=x86-64 ;;
esac
version=$(ls "$root/lib/modules")
uuid=$(cat /proc/sys/kernel/random/uuid)

truncate -s "${size}M" "$disk"
# Types and attributes of the Discoverable Partitions Specification (uapi-group.org).
sfdisk -q "$disk" <<EOF
label: gpt
start=${esp_start}MiB, size=${esp_size}MiB, type=uefi, name=ESP
start=${root_start}MiB, size=${root_size}MiB, type="Linux root ($arch)", uuid=$uuid, name=root
EOF

printf 'timeout 1\n' > "$parts/loader.conf"
cat > "$parts/entry.conf" <<EOF
title   Debian, kernel $version
version $version
linux   /vmlinuz
initrd  /initrd.img
options root=PARTUUID=$uuid rw console=tty0 console=ttyS0,115200
EOF
mkfs.vfat -F 32 -n ESP -C "$parts/esp" $((esp_size * 1024)) > "$parts/log"
export MTOOLS_SKIP_CHECK=1
mmd -i "$parts/esp" ::/EFI ::/EFI/BOOT ::/loader ::/loader/entries
mcopy -i "$parts/esp" "$root/usr/lib/systemd/boot/efi/$loader" "::/EFI/BOOT/$fallback"
mcopy -i "$parts/esp" "$parts/loader.conf" ::/loader/loader.conf
mcopy -i "$parts/esp" "$parts/entry.conf" ::/loader/entries/node.conf
mcopy -i "$parts/esp" "$root/boot/vmlinuz-$version" ::/vmlinuz
mcopy -i "$parts/esp" "$root/boot/initrd.img-$version" ::/initrd.img
dd if="$parts/esp" of="$disk" bs=1M seek=$esp_start conv=notrunc,sparse status=none

mke2fs -q -t ext4 -L root -E "lazy_itable_init=1,lazy_journal_init=1,offset=$((root_start << 20))" \
  -d "$root" "$disk" "${root_size}M"
