#!/bin/sh
# Runs in the initrd of the lab's virtual machines (initramfs-tools(7), local-bottom), with the root
# file system mounted. The lab appends an archive to the initrd that holds one machine's own files:
# below lasting/ what it must have at every boot, below new/ what only a fresh machine gets.
case "$1" in
  prereqs) exit 0 ;;
esac

files=/hpcsite-machine
if [ -d "$files/new" ] && [ ! -s "${rootmnt:?}/etc/machine-id" ]; then
  cp -a --remove-destination "$files/new/." "$rootmnt/"
fi
if [ -d "$files/lasting" ]; then
  cp -a --remove-destination "$files/lasting/." "$rootmnt/"
fi
