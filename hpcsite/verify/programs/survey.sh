# What a host says of itself, as any user may read it: `key=value` lines, read by
# verify/parsers/facts.py. What cannot be read is not printed. $1: GPU device files less their number.
PATH=$PATH:/usr/sbin:/sbin:/usr/local/cuda/bin:/usr/lib64/openmpi/bin

# tool KEY COMMAND...: what a command prints, where there is one.
tool() {
  key=$1
  shift
  command -v "$1" >/dev/null || return
  printf "%s=%s\n" "$key" "$(timeout 5 "$@" 2>/dev/null </dev/null | tr "\n" " " | cut -c1-300)"
}
# value KEY FILE: the first line of a file.
value() {
  line=
  { read -r line <"$2"; } 2>/dev/null
  [ -z "$line" ] || printf "%s=%s\n" "$1" "$line" | tr "\t" " "
}
# each KEY FILE...: what is in several files, each once.
each() {
  key=$1
  shift
  said=$(cat "$@" 2>/dev/null | sort -u | tr "\n" " ")
  [ -z "$said" ] || printf "%s=%s\n" "$key" "$said"
}
count() {
  cat "$@" 2>/dev/null | sort -u | wc -l
}

echo "hostname=$(hostname -s)"
. /etc/os-release && echo "os=$PRETTY_NAME"
echo "kernel=$(uname -r)"
# Tools are asked in this order: the one that a host's own daemon comes with is first.
for program in slurmd slurmctld slurmdbd sinfo; do
  command -v "$program" >/dev/null && { tool slurm "$program" -V; break; }
done
tool munge munge --version
echo "cpus=$(getconf _NPROCESSORS_ONLN)"
echo "memory_kib=$(sed -n "s/^MemTotal: *\([0-9]*\) kB$/\1/p" /proc/meminfo)"
[ -e /proc/driver/nvidia ] && echo "driver=loaded"
command -v nvidia-smi >/dev/null && echo "nvidia_smi=installed"
for device in "$1"*; do
  case ${device#"$1"} in
    "" | *[!0-9]*) ;;
    *) [ -c "$device" ] && echo "device=$device" ;;
  esac
done

value nvidia_driver /sys/module/nvidia/version
tool fabric_manager nv-fabricmanager --version
tool dcgm dcgmi --version
# A block of version.json: "cuda" : { "name" : ..., "version" : "12.4.1" }
cuda=$(sed -n "/\"cuda\" *:/,/}/s/.*\"version\" *: *\"\([^\"]*\)\".*/\1/p" \
  /usr/local/cuda/version.json 2>/dev/null)
if [ -n "$cuda" ]; then echo "cuda=$cuda"; else tool cuda nvcc --version; fi
nccl=$(ldconfig -p 2>/dev/null | sed -n "s/.*libnccl\.so\.2 .*=> //p" | head -n 1)
[ -z "$nccl" ] || echo "nccl=$(readlink -f "$nccl")"
tool ofed ofed_info -s
tool mpi mpirun --version
tool ucx ucx_info -v
for program in apptainer singularity podman docker enroot; do
  case $program in
    enroot) tool "runtime.$program" enroot version ;;
    *) tool "runtime.$program" "$program" --version ;;
  esac
done
tool runtime.nvidia-ctk nvidia-ctk --version

for name in sys_vendor product_name bios_version bios_date; do
  value "$name" "/sys/class/dmi/id/$name"
done
for name in "model name" microcode; do
  sed -n "s/^\($name\)[^:]*: /\1=/p" /proc/cpuinfo | head -n 1
done
cpu=/sys/devices/system/cpu
echo "sockets=$(count $cpu/cpu[0-9]*/topology/physical_package_id)"
echo "cores=$(count $cpu/cpu[0-9]*/topology/thread_siblings_list)"
set -- /sys/devices/system/node/node[0-9]*
[ -e "$1" ] && echo "numa_nodes=$#"
value smt $cpu/smt/control
each governor $cpu/cpu[0-9]*/cpufreq/scaling_governor
each cpufreq_driver $cpu/cpu[0-9]*/cpufreq/scaling_driver
value no_turbo $cpu/intel_pstate/no_turbo
value boost $cpu/cpufreq/boost
set -- /sys/kernel/iommu_groups/*
[ ! -d /sys/kernel/iommu_groups ] || if [ -e "$1" ]; then echo "iommu=on"; else echo "iommu=off"; fi
value clocksource /sys/devices/system/clocksource/clocksource0/current_clocksource
value transparent_hugepages /sys/kernel/mm/transparent_hugepage/enabled
for pages in /sys/kernel/mm/hugepages/hugepages-*; do
  value "hugepages.${pages##*/hugepages-}" "$pages/nr_hugepages"
done
# Not by `read`: a shell that reads by single bytes gets the first one only of these files.
(cd /proc/sys && grep -sH . vm/swappiness vm/overcommit_memory vm/zone_reclaim_mode \
  vm/max_map_count kernel/numa_balancing kernel/pid_max net/core/rmem_max \
  net/core/wmem_max net/ipv4/tcp_rmem net/ipv4/tcp_wmem net/ipv4/tcp_congestion_control) |
  sed "s/^/sysctl./; s/:/=/; s/[[:space:]][[:space:]]*/ /g"
sed -n "s/^SwapTotal: *\([0-9]*\) kB$/swap_kib=\1/p" /proc/meminfo

for device in /sys/class/infiniband/*; do
  [ -e "$device/fw_ver" ] || continue
  board= firmware=
  { read -r board <"$device/board_id"; read -r firmware <"$device/fw_ver"; } 2>/dev/null
  echo "hca=${board:-of unknown board} $firmware"
done
for device in /sys/class/nvme/nvme*; do
  [ -e "$device/firmware_rev" ] || continue
  model= firmware=
  { read -r model <"$device/model"; read -r firmware <"$device/firmware_rev"; } 2>/dev/null
  echo "nvme=$model $firmware"
done
# GPUs, adapters and NVMe drives, less virtual functions: widths, then speeds, of the link now, of the
# device at most, of the port above at most.
for device in /sys/bus/pci/devices/*; do
  [ -e "$device/current_link_width" ] && [ ! -e "$device/physfn" ] || continue
  class= vendor=
  { read -r class <"$device/class"; read -r vendor <"$device/vendor"; } 2>/dev/null
  case $class in 0x0200* | 0x0207* | 0x0300* | 0x0302* | 0x0108*) ;; *) continue ;; esac
  said="${device##*/} $class $vendor"
  for what in width speed; do
    for file in current_link max_link ../max_link; do
      line=
      { read -r line <"$device/${file}_$what"; } 2>/dev/null
      line=${line%% *}
      said="$said ${line:--}"
    done
  done
  echo "pci=$said"
done
ip -o -4 address show 2>/dev/null | while read -r _ name _ address _; do
  [ "$name" != lo ] || continue
  mtu= speed=
  { read -r mtu <"/sys/class/net/$name/mtu"; read -r speed <"/sys/class/net/$name/speed"; } 2>/dev/null
  echo "net=$name $address $mtu ${speed:-0}"
done
exit 0
