# mmdebstrap's last hook: makes a bare root ($1) one that boots anywhere. What is the site's own comes
# later, from the roles; what is one machine's own, at its first boot.
set -eu
root=$1
put() { mkdir -p "$(dirname "$root/$1")" && cat > "$root/$1"; }

# A provisioner expects of a node that it takes its address, name and name servers by DHCP. Files
# that come before this one in the alphabet take an interface over (systemd.network(5)).
put etc/systemd/network/80-dhcp.network <<'EOF'
[Match]
Type=ether
Kind=!*

[Network]
DHCP=yes
EOF
# With several interfaces, of which some have no cable, one that works is enough.
put etc/systemd/system/systemd-networkd-wait-online.service.d/any.conf <<'EOF'
[Service]
ExecStart=
ExecStart=/usr/lib/systemd/systemd-networkd-wait-online --any
EOF
# Host keys belong to one machine. Debian's sshd-keygen.service makes them only at what systemd takes
# for a first boot, at which it would also enable whatever service is installed.
put etc/systemd/system/ssh-host-keys.service <<'EOF'
[Unit]
Description=Make the ssh host keys that this machine does not have
Before=ssh.service
ConditionPathExistsGlob=!/etc/ssh/ssh_host_*_key

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/ssh-keygen -A

[Install]
WantedBy=multi-user.target
EOF
put etc/fstab <<'EOF'
# The root file system is the one that the kernel was started with (root=…).
EOF
chroot "$root" systemctl --quiet enable systemd-networkd systemd-resolved ssh ssh-host-keys
mkdir -p -m 700 "$root/root/.ssh"
echo LANG=C.UTF-8 > "$root/etc/default/locale"

# The initrd of virtual machines of the lab: their own few drivers, and the hook that makes a copy of
# the image one particular machine. It is kept beside the image, not in it.
work=$root/tmp/lab-initrd
cp --archive "$root/etc/initramfs-tools" "$work"
printf 'MODULES=list\nCOMPRESS=zstd\n' > "$work/conf.d/lab"
printf '%s\n' virtio_pci virtio_blk virtio_net ext4 > "$work/modules"
mkdir -p "$work/scripts/local-bottom" "$work/hooks"
here=$(dirname "$0")
cp "$here/machine-hook.sh" "$work/scripts/local-bottom/machine"
cp "$here/cp-hook.sh" "$work/hooks/cp"
chmod 755 "$work/scripts/local-bottom/machine" "$work/hooks/cp"
version=$(ls "$root/lib/modules")
chroot "$root" mkinitramfs -d /tmp/lab-initrd -o /boot/lab-initrd "$version"
rm -r "$work"
