#!/bin/sh
# An initramfs-tools hook: klibc, an initrd's own tools, has no cp.
case "$1" in
  prereqs) exit 0 ;;
esac
. /usr/share/initramfs-tools/hook-functions
copy_exec /usr/bin/cp /usr/bin/cp
