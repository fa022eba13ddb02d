# Sourced: lets the owners of the public keys in $2, if it names a file, log in to the root $1 as root.
# The keys are mounted, not written: they go into what is made of the root, and the root stays as it is.
if [ -n "$2" ]; then
  keys=$(cat "$2")
  mount -t tmpfs -o mode=700 tmpfs "$1/root/.ssh"
  printf '%s\n' "$keys" > "$1/root/.ssh/authorized_keys"
  chmod 600 "$1/root/.ssh/authorized_keys"
fi
