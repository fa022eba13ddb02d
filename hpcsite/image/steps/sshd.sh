# Serves one ssh connection on standard input and output from inside of a root ($1). $2 is the folder
# of the connection's keys, $3 the proxy for apt or nothing, further words are options of sshd.
set -eu
keys=$2 proxy=$3
. "$(dirname "$0")/chroot.sh"
shift 3
# Names must be found as the build host finds them; the image's own file is systemd-resolved's, a
# link into /run.
if [ -e /etc/resolv.conf ]; then
  mkdir -p "$root/run/systemd/resolve"
  cp --dereference /etc/resolv.conf "$root/run/systemd/resolve/stub-resolv.conf"
fi
mkdir -p -m 755 "$root/run/sshd" "$root/run/keys"
cp "$keys/host" "$keys/login.pub" "$root/run/keys/"
chmod 600 "$root/run/keys/host"
exec chroot "$root" /usr/sbin/sshd -i -f /dev/null -h /run/keys/host \
  -o AuthorizedKeysFile=/run/keys/login.pub -o StrictModes=no -o UsePAM=no -o PermitRootLogin=yes \
  -o "SetEnv=http_proxy=$proxy" "$@"
