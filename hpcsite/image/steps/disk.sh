# Writes a root ($1) as a disk for virtual machines ($3): qcow2, one ext4 file system of size $4, without
# partitions. $2: a file with root's ssh keys, or nothing.
set -eu
. "$(dirname "$0")/key.sh"
raw=$3.raw
trap 'rm -f "$raw"' EXIT
mke2fs -q -t ext4 -L root -E lazy_itable_init=1,lazy_journal_init=1 -d "$1" "$raw" "$4"
qemu-img convert -W -f raw -O qcow2 "$raw" "$3"
