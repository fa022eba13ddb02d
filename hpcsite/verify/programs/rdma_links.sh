# What a node has for RDMA, as the kernel and as programs see it; read by
# verify/parsers/rdma_links.py. Fields are separated by tabs.
PATH=$PATH:/usr/sbin:/sbin
printf 'memlock\t%s\n' "$(ulimit -l)"
for port in /sys/class/infiniband/*/ports/*; do
  [ -d "$port" ] || continue
  device=${port#/sys/class/infiniband/}
  device=${device%%/*}
  number=${port##*/}
  state= physical= rate= layer=
  read -r state <"$port/state"
  read -r physical <"$port/phys_state"
  read -r rate <"$port/rate"
  read -r layer <"$port/link_layer"
  printf 'port\t%s\t%s\t%s\t%s\t%s\t%s\n' "$device" "$number" "$state" "$physical" "$rate" "$layer"
  # An entry that is not used has a GID of zeros, and a type that cannot be read.
  grep -sH . "$port"/gid_attrs/types/* | while IFS=: read -r path kind; do
    index=${path##*/}
    gid= interface=
    read -r gid <"$port/gids/$index"
    read -r interface <"$port/gid_attrs/ndevs/$index"
    printf 'gid\t%s\t%s\t%s\t%s\t%s\t%s\n' \
      "$device" "$number" "$index" "$kind" "$gid" "$interface"
  done
done
if command -v rdma >/dev/null; then
  echo '--- rdma'
  rdma -j link
fi
if command -v ibv_devinfo >/dev/null; then
  echo '--- ibv_devinfo'
  ibv_devinfo 2>&1
fi
exit 0
