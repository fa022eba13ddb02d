# Makes a disk image for virtual machines from a root ($1): $2, a qcow2 file with one ext4 file system
# of $3, without partitions.
set -eu
raw=$2.raw
trap 'rm -f "$raw"' EXIT
mke2fs -q -t ext4 -L root -E lazy_itable_init=1,lazy_journal_init=1 -d "$1" "$raw" "$3"
qemu-img convert -W -f raw -O qcow2 "$raw" "$2"
