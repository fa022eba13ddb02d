# Writes a root ($1) as a compressed archive ($3): owners by number, with extended attributes and
# ACLs. $2: a file with root's ssh keys, or nothing.
set -eu
. "$(dirname "$0")/key.sh"
tar --create --numeric-owner --sort=name --acls --xattrs --xattrs-include='*' --directory "$1" . \
  > "$3.tar"
zstd -q -f -T0 --rm "$3.tar" -o "$3"
