# Copies a base root ($1) to a new one ($2) and gives its apt the cached packages ($3), by hard link.
set -eu
cp --archive --reflink=auto "$1" "$2"
archives=$2/var/cache/apt/archives
mkdir -p "$archives"
find "$3" -maxdepth 1 -name '*.deb' -exec ln -f -t "$archives" {} +
