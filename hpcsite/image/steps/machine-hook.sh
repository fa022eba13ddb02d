#!/bin/sh
# Runs in the initrd of the lab's virtual machines (initramfs-tools(7), local-bottom), with the root
# file system mounted. The lab appends an archive to the initrd that holds one machine's own files:
# below lasting/ what it must have at every boot, below new/ what only a fresh machine gets.
[ "$1" = prereqs ] && exit 0

take() {
  [ -d "$1" ] || return 0
  # A link in the place of a file is replaced, never followed.
  (cd "$1" && find . ! -type d) | while read -r file; do rm -f "${rootmnt:?}/$file"; done
  cp -a "$1/." "$rootmnt/"
}

# The root may be mounted read-only still, as the kernel command line says.
mount -o remount,rw "$rootmnt"
[ -s "$rootmnt/etc/machine-id" ] || take /hpcsite-machine/new
take /hpcsite-machine/lasting
