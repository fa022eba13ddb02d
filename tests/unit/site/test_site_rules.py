"""Every rule: a bad case with file and line, beside the good case that all of them begin from."""

from dataclasses import dataclass

import pytest

from hpcsite.site.rules.slurm import seconds_of
from tests.unit.site.mini import SiteFolder

HOSTS, SITE, SLURM = "hosts.yml", "group_vars/all/site.yml", "group_vars/all/slurm.yml"
Edit = tuple[str, str, str]


@dataclass(frozen=True)
class Case:
    """Edits of the valid site, and the one problem that must come of them."""

    name: str
    edits: tuple[Edit, ...]
    file: str
    at: str  # text of the line; empty: the file as a whole
    says: str
    hint: str
    code: str


def case(name: str, *edits: Edit, file: str, at: str, says: str, hint: str, code: str) -> Case:
    return Case(name, edits, file, at, says, hint, code)


def append(file: str, text: str) -> Edit:
    return (file, "", text)


NODE_GROUP_CPU = (
    (SLURM, "site_node_groups:\n", "site_node_groups:\n  cpu: {}\n"),
    (SLURM, "node_groups: [gpu]", "node_groups: [gpu, cpu]"),
)

# The same site as a lab of virtual machines: the good case of what is wrong with those.
VIRTUAL_MACHINES = (
    append(SITE, "site_lab:\n  backend: qemu\n  network: 10.9.0.0/24\n  cpus: 2\n"),
    *(
        (
            HOSTS,
            f"ansible_host: 10.9.0.{number}",
            f"\n{indent}".join(
                (
                    f"ansible_host: 127.0.0.1  # {host}",
                    f"ansible_port: {port}",
                    f"site_address: 10.9.0.{number}",
                )
            ),
        )
        for host, number, port, indent in (
            ("head", 10, 22110, 10 * " "),
            ("login", 11, 22111, 10 * " "),
            ("gpu01", 21, 22121, 14 * " "),
            ("gpu02", 22, 22122, 14 * " "),
        )
    ),
)

CASES = (
    # groups
    case(
        "unknown group",
        append(HOSTS, "    slurm_logn:\n      hosts:\n        login:\n"),
        file=HOSTS,
        at="slurm_logn:",
        says="unknown group slurm_logn",
        hint="did you mean slurm_login?",
        code="HPC1110",
    ),
    case(
        "unknown group without a like",
        append(HOSTS, "    rack_9:\n      hosts:\n        login:\n"),
        file=HOSTS,
        at="rack_9:",
        says="unknown group rack_9",
        hint="site_custom_groups",
        code="HPC1110",
    ),
    case(
        "group_vars of no group",
        append("group_vars/slurm_compte/x.yml", "local_x: 1\n"),
        file="group_vars/slurm_compte/x.yml",
        at="",
        says="group slurm_compte, which is not in the inventory",
        hint="did you mean slurm_compute?",
        code="HPC1112",
    ),
    case(
        "host_vars of no host",
        append("host_vars/gpu03.yml", "local_x: 1\n"),
        file="host_vars/gpu03.yml",
        at="",
        says="host gpu03, which is not in the inventory",
        hint="add the host",
        code="HPC1113",
    ),
    case(
        "empty group",
        (HOSTS, "        login:\n          ansible_host: 10.9.0.11\n", ""),
        file=HOSTS,
        at="slurm_login:",
        says="the group slurm_login has no hosts",
        hint="remove it",
        code="HPC1114",
    ),
    case(
        "empty node group",
        *NODE_GROUP_CPU,
        append(HOSTS, "        cpu:\n"),
        file=HOSTS,
        at="cpu:",
        says="the group cpu has no hosts",
        hint="put hosts into it",
        code="HPC1114",
    ),
    case(
        "node group that is no group",
        (SLURM, "site_node_groups:\n", "site_node_groups:\n  tape: {}\n"),
        file=SLURM,
        at="tape:",
        says="the node group tape is no group of the inventory",
        hint="below slurm_compute",
        code="HPC1115",
    ),
    case(
        "host in no group",
        append(HOSTS, "  hosts:\n    stray:\n      ansible_host: 10.9.0.40\n"),
        file=HOSTS,
        at="stray:",
        says="in no group: stray",
        hint="put each host into one of slurm_controller",
        code="HPC1116",
    ),
    case(
        "two controllers",
        (HOSTS, "10.9.0.10\n", "10.9.0.10\n        head2:\n          ansible_host: 10.9.0.12\n"),
        file=HOSTS,
        at="slurm_controller:",
        says="slurm_controller has 2 hosts (head,head2)",
        hint="keep one",
        code="HPC1118",
    ),
    case(
        "no database daemon",
        (HOSTS, "    slurm_dbd:\n      hosts:\n        head:\n", ""),
        file=HOSTS,
        at="slurm_controller:",
        says="slurm_controller needs slurm_dbd",
        hint="put a host into slurm_dbd",
        code="HPC1119",
    ),
    case(
        "no database",
        (HOSTS, "    mariadb:\n      hosts:\n        head:\n", ""),
        file=HOSTS,
        at="slurm_dbd:",
        says="slurm_dbd needs mariadb",
        hint="put a host into mariadb",
        code="HPC1119",
    ),
    case(
        "compute node in no node group",
        (
            HOSTS,
            "      children:\n        gpu:\n",
            "      hosts:\n        n1: {ansible_host: 10.9.0.31}\n      children:\n        gpu:\n",
        ),
        file=HOSTS,
        at="n1:",
        says="compute nodes in no node group: n1",
        hint="put each into one of gpu",
        code="HPC1120",
    ),
    case(
        "host in two node groups",
        *NODE_GROUP_CPU,
        append(HOSTS, "        cpu:\n          hosts:\n            gpu01:\n"),
        file=HOSTS,
        at="gpu01:",
        says="the host gpu01 is in 2 node groups: cpu, gpu",
        hint="keep it in one",
        code="HPC1122",
    ),
    case(
        "node group beside slurm_compute",
        *NODE_GROUP_CPU,
        append(HOSTS, "    cpu:\n      hosts:\n        cpu01: {ansible_host: 10.9.0.31}\n"),
        file=HOSTS,
        at="cpu:",
        says="the node group cpu is not below slurm_compute: cpu01",
        hint="move `cpu:`",
        code="HPC1121",
    ),
    case(
        "login node that computes",
        (HOSTS, "        login:\n", "        gpu01:\n        login:\n"),
        file=HOSTS,
        at="gpu01:",
        says="both a login node and a compute node",
        hint="take it out of slurm_login",
        code="HPC1123",
    ),
    # hosts
    case(
        "node group in no partition",
        NODE_GROUP_CPU[0],
        append(
            HOSTS, "        cpu:\n          hosts:\n            n1: {ansible_host: 10.9.0.31}\n"
        ),
        file=SLURM,
        at="cpu: {}",
        says="the node group cpu is in no partition",
        hint="add cpu to the node_groups of a partition",
        code="HPC1203",
    ),
    case(
        "IPv6 address",
        (HOSTS, "10.9.0.21", "fd00::21"),
        file=HOSTS,
        at="fd00::21",
        says="the address of gpu01, fd00::21, is an IPv6 address; only IPv4 is supported",
        hint="site_address beside",
        code="HPC1303",
    ),
    case(
        "host name with a domain",
        (HOSTS, "gpu01:", "gpu01.mini.example:"),
        file=HOSTS,
        at="gpu01.mini.example:",
        says="gpu01.mini.example is no valid NodeName",
        hint="use the short name gpu01",
        code="HPC1101",
    ),
    case(
        "host name with an underscore",
        (HOSTS, "gpu01:", "gpu_01:"),
        file=HOSTS,
        at="gpu_01:",
        says="gpu_01 is no valid NodeName",
        hint="letters, digits and hyphens",
        code="HPC1101",
    ),
    case(
        "host name of digits",
        (HOSTS, "gpu01:", '"0017":'),
        file=HOSTS,
        at="0017",
        says="0017 is no valid NodeName",
        hint="node0017",
        code="HPC1101",
    ),
    case(
        "host name that is a number",
        (HOSTS, "gpu01:", "17:"),
        file=HOSTS,
        at="17:",
        says="17 is no valid NodeName",
        hint="begin it with a letter",
        code="HPC1101",
    ),
    case(
        "host name of 64 letters",
        (HOSTS, "gpu01:", "g" * 64 + ":"),
        file=HOSTS,
        at="g" * 64,
        says="no valid NodeName",
        hint="at most 63",
        code="HPC1101",
    ),
    case(
        "range as Slurm writes it",
        (HOSTS, "gpu01:", "gpu[03-08]:"),
        file=HOSTS,
        at="gpu[03-08]:",
        says="gpu[03-08] is no valid NodeName",
        hint="with a colon: gpu[03:08]",
        code="HPC1102",
    ),
    case(
        "name that Slurm keeps",
        (HOSTS, "gpu01:", "default:"),
        file=HOSTS,
        at="default:",
        says="default cannot be a host's name",
        hint="short host name",
        code="HPC1104",
    ),
    case(
        "host called like a group",
        (HOSTS, "gpu01:", "gpu:"),
        file=HOSTS,
        at="            gpu:",
        says="gpu is the name of a host and of a group",
        hint="rename one",
        code="HPC1105",
    ),
    case(
        "names that differ by case",
        (HOSTS, "gpu02:", "GPU01:"),
        file=HOSTS,
        at="GPU01:",
        says="gpu01 and GPU01 differ by case only",
        hint="rename one",
        code="HPC1106",
    ),
    case(
        "no address",
        (HOSTS, "              ansible_host: 10.9.0.21\n", ""),
        file=HOSTS,
        at="gpu01:",
        says="no address: gpu01",
        hint="ansible_host: 10.0.0.21",
        code="HPC1301",
    ),
    case(
        "address that is a name",
        (HOSTS, "10.9.0.21", "gpu01.mini.example"),
        file=HOSTS,
        at="ansible_host: gpu01.mini.example",
        says="gpu01.mini.example, is no IP address",
        hint="site_address",
        code="HPC1302",
    ),
    case(
        "loopback address",
        (HOSTS, "10.9.0.21", "127.0.0.1"),
        file=HOSTS,
        at="127.0.0.1",
        says="loopback",
        hint="by which the other hosts reach it",
        code="HPC1305",
    ),
    case(
        "multicast address",
        (HOSTS, "10.9.0.21", "224.0.0.5"),
        file=HOSTS,
        at="224.0.0.5",
        says="not that of a host",
        hint="by which the other hosts reach it",
        code="HPC1305",
    ),
    case(
        "example address",
        (HOSTS, "10.9.0.21", "192.0.2.21"),
        file=HOSTS,
        at="192.0.2.21",
        says="kept for examples",
        hint="the machine's own address",
        code="HPC1304",
    ),
    case(
        "same address twice",
        (HOSTS, "10.9.0.22", "10.9.0.21  # again"),
        file=HOSTS,
        at="# again",
        says="gpu[01-02] have the same address: 10.9.0.21",
        hint="its own address",
        code="HPC1306",
    ),
    case(
        "same ssh destination twice",
        (HOSTS, "10.9.0.21", "10.9.0.99\n              site_address: 10.9.0.21"),
        (HOSTS, "10.9.0.22", "10.9.0.99  # again\n              site_address: 10.9.0.22"),
        file=HOSTS,
        at="# again",
        says="gpu02 and gpu01 are reached at the same place: 10.9.0.99 port 22",
        hint="ansible_port",
        code="HPC1307",
    ),
    # connection
    case(
        "local connection",
        (
            HOSTS,
            "ansible_host: 10.9.0.10",
            "ansible_host: 10.9.0.10\n          ansible_connection: local",
        ),
        file=HOSTS,
        at="ansible_connection:",
        says="the connection of head is local",
        hint="ssh key",
        code="HPC1310",
    ),
    case(
        "password",
        append(SITE, "ansible_password: hunter2\n"),
        file=SITE,
        at="ansible_password:",
        says="ansible_password: hpcsite does not log in with a password (gpu[01-02],head,login)",
        hint="ssh-copy-id",
        code="HPC1311",
    ),
    case(
        "ssh arguments with an open quote",
        append(SITE, "ansible_ssh_common_args: -o 'User=x\n"),
        file=SITE,
        at="ansible_ssh_common_args",
        says="cannot be split into words",
        hint="close every quote",
        code="HPC1313",
    ),
    case(
        "connection template that hpcsite cannot render",
        append(SITE, "ansible_user: \"{{ lookup('env', 'USER') }}\"\n"),
        file=SITE,
        at="ansible_user",
        says="cannot be rendered",
        hint="{{ inventory_dir }} and {{ inventory_hostname }}",
        code="HPC1312",
    ),
    # general
    case(
        "time zone",
        (SITE, "Europe/Berlin", "Europe/Berln"),
        file=SITE,
        at="site_timezone:",
        says="there is no time zone Europe/Berln",
        hint="did you mean Europe/Berlin?",
        code="HPC1060",
    ),
    case(
        "time zone outside of the database's folder",
        (SITE, "Europe/Berlin", "../../etc/passwd"),
        file=SITE,
        at="site_timezone:",
        says="there is no time zone ../../etc/passwd",
        hint="Europe/Berlin",
        code="HPC1060",
    ),
    case(
        "domain",
        (SITE, "mini.example", ".mini.example"),
        file=SITE,
        at="site_domain:",
        says=".mini.example is no domain name",
        hint="cluster.example.org",
        code="HPC1130",
    ),
    case(
        "time server",
        append(SITE, "site_ntp_servers:\n  - ntp.example.org\n  - ntp2.example.org iburst\n"),
        file=SITE,
        at="ntp2.example.org iburst",
        says="ntp2.example.org iburst is no host name or address",
        hint="without options",
        code="HPC1061",
    ),
    # partitions and node groups
    case(
        "unknown node group in a partition",
        (SLURM, "node_groups: [gpu]", "node_groups: [gpuu]"),
        file=SLURM,
        at="node_groups: [gpuu]",
        says="the partition batch names an unknown node group gpuu",
        hint="did you mean gpu?",
        code="HPC1202",
    ),
    case(
        "node group twice in a partition",
        (SLURM, "node_groups: [gpu]", "node_groups:\n      - gpu\n      - gpu  # again"),
        file=SLURM,
        at="# again",
        says="names the node group gpu twice",
        hint="remove one",
        code="HPC1201",
    ),
    case(
        "partition name twice",
        append(SLURM, "  - name: Batch\n    node_groups: [gpu]\n"),
        file=SLURM,
        at="name: Batch",
        says="there is a partition batch already",
        hint="its own name",
        code="HPC1205",
    ),
    case(
        "partition called DEFAULT",
        (SLURM, "name: batch", "name: default"),
        file=SLURM,
        at="name: default",
        says="no partition can be called DEFAULT",
        hint="choose another",
        code="HPC1204",
    ),
    case(
        "no partition",
        (
            SLURM,
            """site_partitions:
  - name: batch
    node_groups: [gpu]
    default: true
    max_time: 1-00:00:00
    default_time: "10:00"
""",
            "site_partitions: []\n",
        ),
        file=SLURM,
        at="site_partitions:",
        says="compute nodes but no partition",
        hint="at least one",
        code="HPC1207",
    ),
    case(
        "no default partition",
        (SLURM, "    default: true\n", ""),
        file=SLURM,
        at="site_partitions:",
        says="no partition is the default one",
        hint="`default: true`",
        code="HPC1206",
    ),
    case(
        "two default partitions",
        append(SLURM, "  - name: long\n    node_groups: [gpu]\n    default: yes\n"),
        file=SLURM,
        at="default: yes",
        says="batch and long are both the default one",
        hint="one partition only",
        code="HPC1208",
    ),
    case(
        "time limit",
        (SLURM, "1-00:00:00", "1d"),
        file=SLURM,
        at="max_time: 1d",
        says="1d is no time limit",
        hint="days-hours:minutes:seconds",
        code="HPC1209",
    ),
    case(
        "default time above the limit",
        (SLURM, '"10:00"', "2-0"),
        file=SLURM,
        at="default_time: 2-0",
        says="the default time 2-0 of the partition batch is above its limit 1-00:00:00",
        hint="lower default_time",
        code="HPC1210",
    ),
    case(
        "parameter that hpcsite writes",
        append(SLURM, "site_slurm_parameters:\n  clustername: x\n"),
        file=SLURM,
        at="clustername:",
        says="clustername is written by hpcsite itself",
        hint="site_slurm_cluster_name",
        code="HPC1212",
    ),
    case(
        "partition parameter that hpcsite writes",
        append(SLURM, "    parameters:\n      MaxTime: 60\n"),
        file=SLURM,
        at="MaxTime:",
        says="MaxTime is written by hpcsite itself",
        hint="use max_time",
        code="HPC1212",
    ),
    case(
        "parameter of two lines",
        append(SLURM, 'site_slurm_parameters:\n  SchedulerParameters: "a\\nb"\n'),
        file=SLURM,
        at="SchedulerParameters:",
        says="line break",
        hint="on one line",
        code="HPC1214",
    ),
    case(
        "unknown key of cgroup.conf",
        append(SLURM, "site_slurm_cgroup_parameters:\n  ConstrainDevice: false\n"),
        file=SLURM,
        at="ConstrainDevice:",
        says="ConstrainDevice is no key of cgroup.conf",
        hint="did you mean ConstrainDevices?",
        code="HPC1216",
    ),
    case(
        "cgroup.conf without cgroups",
        append(
            SLURM,
            "site_slurm_process_tracking: linuxproc\n"
            "site_slurm_cgroup_parameters: {ConstrainDevices: false}\n",
        ),
        file=SLURM,
        at="site_slurm_cgroup_parameters:",
        says="site_slurm_process_tracking is linuxproc",
        hint="to cgroup or auto",
        code="HPC1218",
    ),
    case(
        "virtual without hardware",
        (
            SLURM,
            """    hardware:
      sockets: 1
      cores_per_socket: 8
      memory_mib: 4096
""",
            "    virtual: true\n",
        ),
        file=SLURM,
        at="virtual: true",
        says="the node group gpu is virtual, but has no hardware",
        hint="declare `hardware:`",
        code="HPC1701",
    ),
    # accounts
    case(
        "user twice",
        append(SITE, "  - {name: bob, uid: 2003}\n"),
        file=SITE,
        at="{name: bob",
        says="the user bob is described twice",
        hint="remove one",
        code="HPC1501",
    ),
    case(
        "system user",
        append(SITE, "  - {name: slurm, uid: 2003}\n"),
        file=SITE,
        at="name: slurm",
        says="slurm is a user of the operating system or of Slurm",
        hint="people's accounts",
        code="HPC1502",
    ),
    case(
        "group twice",
        (SITE, "site_users:\n", "  - {name: research, gid: 2009}\nsite_users:\n"),
        file=SITE,
        at="gid: 2009",
        says="the group research is described twice",
        hint="remove one",
        code="HPC1501",
    ),
    case(
        "uid twice",
        (SITE, "uid: 2002", "uid: 2001  # again"),
        file=SITE,
        at="# again",
        says="bob has the same uid as alice: 2001",
        hint="its own uid",
        code="HPC1504",
    ),
    case(
        "reserved uid",
        (SITE, "uid: 2002", "uid: 64030"),
        file=SITE,
        at="uid: 64030",
        says="the uid 64030 of bob is reserved",
        hint="1000 to 59999",
        code="HPC1503",
    ),
    case(
        "unknown group of a user",
        (SITE, "group: research", "group: reserch"),
        file=SITE,
        at="group: reserch",
        says="the user alice is in an unknown group reserch",
        hint="did you mean research?",
        code="HPC1505",
    ),
    case(
        "unknown further group of a user",
        append(SITE, "    groups:\n      - research\n      - wheel\n"),
        file=SITE,
        at="- wheel",
        says="the user bob is in an unknown group wheel",
        hint="add wheel to site_groups",
        code="HPC1505",
    ),
    case(
        "group that is to be absent",
        (SITE, "    gid: 2000\n", "    gid: 2000\n    state: absent\n"),
        file=SITE,
        at="group: research",
        says="the group research, which is to be absent",
        hint="keep the group",
        code="HPC1506",
    ),
    case(
        "private key",
        append(SITE, "    ssh_keys:\n      - '-----BEGIN OPENSSH PRIVATE KEY-----'\n"),
        file=SITE,
        at="PRIVATE",
        says="this is a private key of bob",
        hint="replace the key pair",
        code="HPC1507",
    ),
    case(
        "no key",
        append(SITE, "    ssh_keys:\n      - AAAAC3\n"),
        file=SITE,
        at="- AAAAC3",
        says="this is no public key of bob",
        hint="ssh-ed25519 AAAA",
        code="HPC1508",
    ),
    case(
        "verify user unknown",
        (SITE, "site_verify_user: alice", "site_verify_user: alicf"),
        file=SITE,
        at="site_verify_user:",
        says="alicf is not among the users present",
        hint="did you mean alice?",
        code="HPC1509",
    ),
    case(
        "verify user absent",
        (SITE, "    group: research\n", "    state: absent\n"),
        file=SITE,
        at="site_verify_user:",
        says="alice is not among the users present",
        hint="add alice to site_users",
        code="HPC1509",
    ),
    # lab
    case(
        "lab address outside of the network",
        append(SITE, "site_lab: {network: 10.9.0.0/28}\n"),
        (HOSTS, "10.9.0.21", "10.9.0.13"),
        (HOSTS, "10.9.0.22", "10.9.1.14"),
        file=HOSTS,
        at="10.9.1.14",
        says="10.9.1.14, is not a machine's in the lab's network 10.9.0.0/28",
        hint="choose one from 10.9.0.2 to 10.9.0.14",
        code="HPC2003",
    ),
    case(
        "lab address of the bridge",
        append(SITE, "site_lab: {network: 10.9.0.0/24}\n"),
        (HOSTS, "10.9.0.22", "10.9.0.1"),
        file=HOSTS,
        at="10.9.0.1",
        says="the address of gpu02, 10.9.0.1, is not a machine's",
        hint="choose one from 10.9.0.2",
        code="HPC2003",
    ),
    case(
        "public lab network",
        append(SITE, "site_lab:\n  network: 8.8.8.0/24\n"),
        *((HOSTS, f"10.9.0.{n}", f"8.8.8.{n}") for n in (10, 11, 21, 22)),
        file=SITE,
        at="network:",
        says="8.8.8.0/24 is a public one",
        hint="10.213.0.0/24",
        code="HPC2001",
    ),
    case(
        "large lab network",
        append(SITE, "site_lab:\n  network: 10.0.0.0/8\n"),
        file=SITE,
        at="network:",
        says="10.0.0.0/8 is too large",
        hint="/16 to /28",
        code="HPC2002",
    ),
    case(
        "CPUs of a container",
        append(SITE, "site_lab:\n  network: 10.9.0.0/24\n  cpus: 4\n"),
        file=SITE,
        at="cpus: 4",
        says="`cpus` in site_lab has no meaning for containers",
        hint="backend: qemu",
        code="HPC2006",
    ),
    case(
        "memory of a container",
        append(SITE, "site_lab: {network: 10.9.0.0/24}\n"),
        (HOSTS, "10.9.0.22", "10.9.0.22\n              site_lab_memory_mib: 2048"),
        file=HOSTS,
        at="site_lab_memory_mib",
        says="`site_lab_memory_mib` of gpu02 has no meaning for containers",
        hint="backend: qemu",
        code="HPC2006",
    ),
    case(
        "virtual machine outside of the network",
        *VIRTUAL_MACHINES,
        (HOSTS, "site_address: 10.9.0.22", "site_address: 10.8.0.22"),
        file=HOSTS,
        at="10.8.0.22",
        says="the address of gpu02, 10.8.0.22, is not a machine's in the lab's network",
        hint="choose one from 10.9.0.2 to 10.9.0.254",
        code="HPC2003",
    ),
    case(
        "virtual machine without an address of its own",
        *VIRTUAL_MACHINES,
        (HOSTS, "              site_address: 10.9.0.22\n", ""),
        file=HOSTS,
        at="ansible_host: 127.0.0.1  # gpu02",
        says="the address of gpu02, 127.0.0.1, is this computer's own (loopback)",
        hint="by which the other hosts reach it",
        code="HPC1305",
    ),
    case(
        "virtual machine that ssh reaches by its address",
        *VIRTUAL_MACHINES,
        (HOSTS, "ansible_host: 127.0.0.1  # gpu02", "ansible_host: 10.9.0.22"),
        file=HOSTS,
        at="ansible_host: 10.9.0.22",
        says="ansible_host of gpu02 is 10.9.0.22",
        hint="ansible_host: 127.0.0.1",
        code="HPC2004",
    ),
    case(
        "virtual machine without a port",
        *VIRTUAL_MACHINES,
        (HOSTS, "              ansible_port: 22122\n", ""),
        file=HOSTS,
        at="gpu02:",
        says="gpu02 has no `ansible_port`",
        hint="e.g. 22121",
        code="HPC2005",
    ),
    case(
        "virtual machine by a port of root's",
        *VIRTUAL_MACHINES,
        (HOSTS, "ansible_port: 22122", "ansible_port: 122"),
        file=HOSTS,
        at="ansible_port: 122",
        says="gpu02 has the ansible_port 122",
        hint="from 1024 to 65535",
        code="HPC2005",
    ),
    case(
        "virtual machines by one port",
        *VIRTUAL_MACHINES,
        (HOSTS, "ansible_port: 22122", "ansible_port: 22121"),
        file=HOSTS,
        at="ansible_host: 127.0.0.1  # gpu02",
        says="gpu02 and gpu01 are reached at the same place: 127.0.0.1 port 22121",
        hint="ansible_port",
        code="HPC1307",
    ),
)


def test_a_lab_of_virtual_machines_is_valid(folder: SiteFolder) -> None:
    for file, old, new in VIRTUAL_MACHINES:
        folder.edit(file, old, new)
    assert folder.problems() == []


@pytest.mark.parametrize("bad", CASES, ids=lambda c: c.name.replace(" ", "-"))
def test_mistake_is_found_where_it_stands(folder: SiteFolder, bad: Case) -> None:
    for file, old, new in bad.edits:
        folder.edit(file, old, new)
    problems = folder.problems()
    assert [p.message for p in problems if bad.says in p.message], problems
    assert len(problems) == 1, problems
    problem = problems[0]
    assert problem.where is not None
    assert problem.where.path == folder.path / bad.file
    if bad.at:
        text = (folder.path / bad.file).read_text().splitlines()[problem.where.line - 1]
        assert bad.at in text
    assert bad.hint in problem.hint
    assert problem.code == bad.code


def test_the_site_that_the_cases_begin_from_is_valid(folder: SiteFolder) -> None:
    assert folder.problems() == []


def test_all_mistakes_come_at_once_in_the_order_of_their_lines(folder: SiteFolder) -> None:
    folder.edit(SLURM, "node_groups: [gpu]", "node_groups: [gpuu]")
    folder.edit(SLURM, "max_time: 1-00:00:00", "max_time: 1d")
    folder.edit(SITE, "uid: 2002", "uid: 12")
    folder.edit(SITE, "Europe/Berlin", "Europe/Berln")
    folder.edit(HOSTS, "gpu02:", "gpu_02:")
    places = folder.places()
    assert [(file, line) for file, line, _ in places] == [
        (SITE, folder.line(SITE, "Berln")),
        (SITE, folder.line(SITE, "uid: 12")),
        (SLURM, folder.line(SLURM, "gpuu")),
        (SLURM, folder.line(SLURM, "1d")),
        (HOSTS, folder.line(HOSTS, "gpu_02")),
    ]


def test_no_controller_has_no_line(folder: SiteFolder) -> None:
    folder.edit(HOSTS, "    slurm_controller:\n", "    slurm_dbd:\n")
    folder.edit(HOSTS, "    slurm_dbd:\n      hosts:\n        head:\n    mariadb", "    mariadb")
    (problem,) = folder.problems()
    assert problem.message == "the site has no Slurm controller"
    assert problem.code == "HPC1117"
    assert problem.where is not None
    assert problem.where.path == folder.path
    assert "slurm_controller" in problem.hint


def test_hosts_of_one_line_are_one_mistake(folder: SiteFolder) -> None:
    folder.edit(HOSTS, "", "  hosts:\n    spare1: {ansible_host: 10.9.0.31}\n    spare2:\n")
    folder.edit(SITE, "", "ansible_password: x\n")
    messages = [message for _, _, message in folder.places()]
    assert sum("password" in message for message in messages) == 1


def test_one_bad_entry_does_not_hide_the_mistakes_of_others(folder: SiteFolder) -> None:
    folder.edit(SITE, "uid: 2001", "uid: 1")
    folder.edit(SITE, "", "  - {name: carol, uid: 2002}\n")
    assert [(line, message) for _, line, message in folder.places()] == [
        (folder.line(SITE, "uid: 1"), "site_users[0].uid is 1; it must be at least 1000"),
        (folder.line(SITE, "carol"), "carol has the same uid as bob: 2002"),
    ]


def test_mistakes_of_every_kind_come_at_once(folder: SiteFolder) -> None:
    """Types, ranges, names and rules, several of them in one entry."""
    folder.edit(
        SLURM,
        "    node_groups: [gpu]\n    default: true\n    max_time: 1-00:00:00\n"
        '    default_time: "10:00"\n',
        "    node_groups: [gpuu, 5]\n    default: maybe\n    max_time: 1 day\n"
        "    default_time: 10:00\n"
        "  - name: long run\n    node_groups: gpu\n    max_time: 2 days\n"
        "    parameters: {MaxTime: 3, GraceTime: [1]}\n",
    )
    folder.edit(SLURM, "    gpus:\n", "    virtual: true\n    weight: 0\n    gpus:\n")
    folder.edit(SLURM, "sockets: 1", "sockets: 0")
    folder.edit(SITE, "gid: 2000", "gid: many")
    folder.edit(SITE, "    group: research", "    groups: [resarch, 7]\n    home: x")
    folder.edit(SITE, "  - name: bob\n", "  - nmae: bob\n    ssh_keys: [abc, 1]\n")
    folder.edit(SITE, "uid: 2002", "uid: 2001")
    folder.edit(SITE, "site_name:", "site_nam:")
    folder.edit(SITE, "", "site_ntp_servers: [1, a b]\nsite_lab: {network: x, packages: y}\n")
    folder.edit(HOSTS, "10.9.0.22", "10.9.0.21")
    words = [message for _, _, message in folder.places()]
    expected = (
        *("unknown key site_nam", "site_groups[0].gid is", "unknown group resarch"),
        *("site_users[0].groups[1] is 7", "site_users[0].home is", "unknown key nmae"),
        *("public key of site_users[1]", "site_users[1].ssh_keys[1] is 1"),
        *("site_users[1] has the same uid as alice", "site_ntp_servers[0] is 1", "a b is no host"),
        *("site_lab.network is", "site_lab.packages is", "hardware.sockets is 0"),
        *("weight is 0", "unknown node group gpuu", "node_groups[1] is 5", ".default is"),
        *("1 day is no time", "default_time is 600", '.name is "long run"', "node_groups is"),
        *("2 days is no time", "MaxTime", "GraceTime", "have the same address"),
    )
    for part in expected:
        assert [part in message for message in words].count(True) == 1, (part, words)
    assert len(words) == len(expected), words


FOLLOW_ON = (
    ((HOSTS, "slurm_dbd:", "slurmdbd:"), "unknown group slurmdbd"),
    ((HOSTS, "mariadb:", "maria_db:"), "unknown group maria_db"),
    ((HOSTS, "slurm_controller:", "slurm_controler:"), "unknown group slurm_controler"),
    ((HOSTS, "slurm_compute:", "slurm_compue:"), "unknown group slurm_compue"),
    ((HOSTS, "        gpu:\n", "        gpus:\n"), "unknown group gpus"),
    ((SLURM, "  gpu:\n", "  gpus:\n"), "unknown group gpu"),
    ((SLURM, "site_node_groups:", "site_node_group:"), "unknown key site_node_group"),
    ((SLURM, "site_partitions:", "site_partition:"), "unknown key site_partition"),
    ((SLURM, "    default: true", "    defautl: true"), "unknown key defautl"),
    ((SLURM, "    node_groups:", "    nodegroups:"), "unknown key nodegroups"),
    ((SITE, "site_groups:", "site_group:"), "unknown key site_group"),
    ((SITE, "site_users:", "site_user:"), "unknown key site_user"),
    ((SITE, "site_name:", "site_nane:"), "unknown key site_nane"),
)


@pytest.mark.parametrize(("edit", "says"), FOLLOW_ON, ids=lambda v: str(v)[:40])
def test_a_mistyped_name_is_one_mistake(folder: SiteFolder, edit: Edit, says: str) -> None:
    folder.edit(*edit)
    (problem,) = folder.problems()
    assert says in problem.message
    assert problem.hint.startswith("did you mean ")


def test_hint_of_a_node_group_written_in_two_ways_takes_no_side(folder: SiteFolder) -> None:
    folder.edit(SLURM, "  gpu:\n", "  gpus:\n")
    (problem,) = folder.problems()
    assert problem.hint == "did you mean gpus? write it here and in site_node_groups alike"


@pytest.mark.parametrize("group", ["slurm_compute", "slurm_login"])
def test_a_feature_is_no_node_group(folder: SiteFolder, group: str) -> None:
    folder.edit(SLURM, "node_groups: [gpu]", f"node_groups: [gpu, {group}]")
    (problem,) = folder.problems()
    assert f"names an unknown node group {group}" in problem.message


def test_a_mistyped_node_group_does_not_hide_one_without_partition(folder: SiteFolder) -> None:
    folder.edit(SLURM, "site_node_groups:\n", "site_node_groups:\n  bigmem: {}\n")
    folder.edit(
        HOSTS,
        "        gpu:\n",
        "        bigmem: {hosts: {big01: {ansible_host: 10.9.0.31}}}\n        gpu:\n",
    )
    folder.edit(SLURM, "node_groups: [gpu]", "node_groups: [gpuu]")
    assert [message.split(",")[0] for _, _, message in folder.places()] == [
        "the node group bigmem is in no partition",
        "the partition batch names an unknown node group gpuu",
    ]


GOOD = (
    (
        "site_address beside a name",
        (HOSTS, "10.9.0.21", "gpu01.example\n              site_address: 10.9.0.21"),
    ),
    (
        "ssh over IPv6",
        (HOSTS, "10.9.0.21", "fd00::21\n              site_address: 10.9.0.21"),
    ),
    (
        "group of the site's own",
        (HOSTS, "    mariadb:", "    rack_a:\n      hosts:\n        gpu01:\n    mariadb:"),
    ),
    ("variable of the site's own", (SITE, "", 'local_rack: "{{ inventory_hostname }}"\n')),
    ("connection variable", (SITE, "", "ansible_ssh_retries: 3\nansible_foo_plugin: 1\n")),
    ("no verify user", (SITE, "site_verify_user: alice\n", "")),
    (
        "no login node",
        (
            HOSTS,
            "    slurm_login:\n      hosts:\n        login:\n          ansible_host: 10.9.0.11\n",
            "",
        ),
    ),
    (
        "hardware not declared",
        (
            SLURM,
            "    hardware:\n      sockets: 1\n      cores_per_socket: 8\n      memory_mib: 4096\n",
            "",
        ),
    ),
    (
        "free parameters",
        (
            SLURM,
            "",
            "site_slurm_parameters: {SrunPortRange: 60001-63000, KillWait: 30, DebugFlags: null}\n",
        ),
    ),
    ("uid of a large site", (SITE, "uid: 2002", "uid: 1234567")),
    (
        "absent user in a group that is gone",
        (SITE, "uid: 2002", "uid: 2002\n    group: old\n    state: absent"),
    ),
    ("time in minutes", (SLURM, "1-00:00:00", '"1440"')),
)


@pytest.mark.parametrize("good", GOOD, ids=lambda g: g[0].replace(" ", "-"))
def test_what_must_be_allowed_is(folder: SiteFolder, good: tuple[str, Edit]) -> None:
    if good[0] == "group of the site's own":
        folder.edit(SITE, "", "site_custom_groups: [rack_a]\n")
    folder.edit(*good[1])
    assert folder.problems() == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("10:30", 630),
        ("12:00:00", 43200),
        ("1-0", 86400),
        ("1-12:30", 131400),
        ("1-00:00:01", 86401),
        ("UNLIMITED", float("inf")),
        ("infinite", float("inf")),
        ("", None),
        ("1d", None),
        ("-1", None),
        ("1-", None),
        ("1:2:3:4", None),
        ("10:00\n", None),
    ],
)
def test_slurm_times(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds
