# What this machine has, between markers, for hpcsite.discover.parse. Read only: any user may run
# it with any POSIX shell, and what is not there is left out.
PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
LC_ALL=C
export PATH LC_ALL

section() { printf '\n@@hpcsite %s\n' "$1"; }

# The first line of a file; nothing where it cannot be read.
first() {
  [ -r "$1" ] || return 0
  line=
  read -r line <"$1" || :
  printf '%s' "$line"
}

bounded() { if command -v timeout >/dev/null 2>&1; then timeout -k 2 25 "$@"; else "$@"; fi; }

names() {
  section hostname
  hostname -s 2>/dev/null || first /proc/sys/kernel/hostname
  section ssh
  printf '%s\n' "$SSH_CONNECTION"
  section kernel
  uname -rm
  section os
  cat /etc/os-release /usr/lib/os-release 2>/dev/null
  section dmi
  for field in sys_vendor product_name; do
    printf '%s\t%s\n' "$field" "$(first /sys/class/dmi/id/$field)"
  done
}

processors() {
  section lscpu
  lscpu 2>/dev/null | grep -E '^(Model name|Socket|Core|Thread)'
  section topology
  for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
    [ -r "$cpu/topology/core_id" ] || continue
    printf '%s\t%s\t%s\n' "${cpu##*/}" "$(first "$cpu/topology/physical_package_id")" \
      "$(first "$cpu/topology/core_id")"
  done
  section cpuinfo
  grep -E '^(processor|physical id|core id|model name)' /proc/cpuinfo 2>/dev/null
  section memory
  grep '^MemTotal:' /proc/meminfo 2>/dev/null
}

accelerators() {
  section nvidia
  if command -v nvidia-smi >/dev/null 2>&1; then
    bounded nvidia-smi --query-gpu=name,memory.total,uuid --format=csv,noheader,nounits 2>/dev/null
  fi
  section pci
  for device in /sys/bus/pci/devices/*; do
    [ "$(first "$device/vendor")" = 0x10de ] || continue
    # A part of a device that virtual machines are given is none of its own.
    [ -e "$device/physfn" ] && continue
    class=$(first "$device/class")
    case $class in 0x03*) ;; *) continue ;; esac
    number=$(first "$device/device")
    # What the distribution's list of PCI devices calls it, where there is one.
    called=
    for list in /usr/share/misc/pci.ids /usr/share/hwdata/pci.ids; do
      [ -r "$list" ] && [ -z "$called" ] && called=$(sed -n '/^10de /,/^[0-9a-f]/{
        s/^	'"${number#0x}"'  *//p
      }' "$list" 2>/dev/null)
    done
    printf '%s\t%s\t%s\t%s\n' "${device##*/}" "$number" "$class" "$called"
  done
}

adapters() {
  section infiniband
  for hca in /sys/class/infiniband/*; do
    [ -d "$hca/ports" ] || continue
    # An adapter in software, such as soft-RoCE, is on no bus.
    [ -e "$hca/device" ] || continue
    [ -e "$hca/device/physfn" ] && continue
    kind=$(first "$hca/hca_type")
    [ -n "$kind" ] || kind=$(readlink "$hca/device/driver")
    interfaces=
    for net in "$hca"/device/net/*; do [ -e "$net" ] && interfaces="$interfaces ${net##*/}"; done
    for port in "$hca"/ports/*; do
      printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "${hca##*/}" "${kind##*/}" \
        "${port##*/}" "$(first "$port/rate")" "$(first "$port/link_layer")" \
        "$(first "$port/state")" "$interfaces"
    done
  done
  section net
  for net in /sys/class/net/*; do
    [ -e "$net/address" ] || continue
    real=virtual
    [ -e "$net/device" ] && real=device
    printf '%s\t%s\t%s\t%s\t%s\n' "${net##*/}" "$(first "$net/address")" "$(first "$net/mtu")" \
      "$(first "$net/operstate")" "$real"
  done
  section address
  ip -o -4 addr show 2>/dev/null
  section route
  ip -4 route show default 2>/dev/null
}

disks() {
  section disks
  for disk in /sys/block/*; do
    [ -e "$disk/device" ] || continue
    printf '%s\t%s\t%s\t%s\t%s\n' "${disk##*/}" "$(first "$disk/size")" \
      "$(first "$disk/queue/rotational")" "$(first "$disk/removable")" \
      "$(first "$disk/device/model")"
  done
}

probe() {
  section begin
  names
  processors
  accelerators
  adapters
  disks
  section end
}

probe </dev/null 2>/dev/null
