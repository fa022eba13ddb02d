# Tests between two nodes, one task on each; read by verify/parsers/rdma_pair.py.
#   $1 node that listens   $2 its address   $3 seconds that a test may take   $4 how often to try it
#   then for each test: a tool, its options, those of the side that listens, those of the other
server=$1 address=$2 limit=$3 tries=$4
shift 4
side=client
[ "$SLURMD_NODENAME" = "$server" ] && side=server
echo "@ side $side $SLURMD_NODENAME"
if ! command -v "$1" >/dev/null; then
  echo "@ missing $1"
  exit 0
fi
json=$(mktemp) || exit 9
trap 'rm -f "$json"' EXIT
as_json=
case $("$1" --help 2>&1) in *out_json_file*) as_json="--out_json --out_json_file=$json" ;; esac
# Beside the usual port, so that tests of others on these nodes do not meet.
port=$((18600 + SLURM_JOB_ID % 10000))
number=0
while [ $# -gt 0 ]; do
  tool=$1 options=$2 own=$3
  [ $side = client ] && own="$4 $address"
  shift 4
  number=$((number + 1))
  attempt=1
  while :; do
    : >"$json"
    deadline=$((SECONDS + limit))
    while :; do
      # The options are words. Each attempt has a port, so that no side meets another's last one.
      # shellcheck disable=SC2086
      said=$(timeout -k 5 "$limit" "$tool" $options $as_json -p $((port + number * 4 + attempt)) $own 2>&1)
      rc=$?
      # The other side may not listen yet; it is asked again, twice a second.
      case $said in *"Couldn't connect to"*) ;; *) break ;; esac
      [ $SECONDS -lt $deadline ] || break
      sleep 0.5
    done
    [ $rc -eq 0 ] || [ $attempt -ge "$tries" ] && break
    printf '@ again %s %s %s\n%s\n' "$number" "$tool" "$rc" "$said"
    attempt=$((attempt + 1))
  done
  printf '@ begin %s %s\n%s\n' "$number" "$tool" "$said"
  [ -s "$json" ] && { echo '--- json'; cat "$json"; echo; }
  echo "@ end $number $rc"
  # srun then ends the other side, which would wait.
  [ $rc -eq 0 ] || exit 3
done
exit 0
