# Ends what the roles' install stage began in a root ($1): nothing of the build stays in it, and what
# lies beside an image comes out of it, into the folder $2. Further words are daemons that roles
# configure before they start them.
set -eu
out=$2
rm -rf "$1"/run/* "$1"/tmp/*
. "$(dirname "$0")/chroot.sh"

shift 2
for daemon in "$@"; do
  [ ! -e "$root/usr/lib/systemd/system/$daemon.service" ] || chroot "$root" systemctl -q disable "$daemon"
done
# Debian's package makes a key of its own. One that is in every copy of an image is none.
rm -f "$root/etc/munge/munge.key"

rm -f "$root/usr/sbin/policy-rc.d" "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap"
rm -rf "$root/root/.ansible" "$root/root/.cache"
find "$root/var/cache/apt" "$root/var/lib/apt/lists" "$root/var/log" -type f -delete
rm -f "$root"/var/lib/dpkg/*-old "$root"/var/cache/debconf/*-old "$root"/etc/*-
# One machine's own: made at its first boot. An empty machine-id rather than none, since systemd
# takes the lack of one for a first boot and enables whatever is installed (machine-id(5)).
rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/hostname" "$root/var/lib/dbus/machine-id"
rm -f "$root/var/lib/systemd/random-seed" "$root"/etc/iscsi/initiatorname.iscsi
: > "$root/etc/machine-id"

version=$(ls "$root/lib/modules")
[ ! -e "$root/boot/lab-initrd" ] || mv "$root/boot/lab-initrd" "$out/initrd"
cp "$root/boot/vmlinuz-$version" "$out/vmlinuz"
chroot "$root" update-initramfs -c -k "$version"
cp "$root/boot/initrd.img-$version" "$out/initrd-full"
chmod 644 "$out"/vmlinuz "$out"/initrd*

chroot "$root" dpkg-query --show --showformat '${Package} ${Version} ${Architecture}\n' > "$out/packages"
printf '%s\n' "$version" > "$out/kernel-release"
