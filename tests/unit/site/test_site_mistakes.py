"""Keys of the whole model: a bad value of each is said with its line, path and what to do."""

import json
from typing import NamedTuple

import pytest
import yaml

from hpcsite.site.explain import model_in
from hpcsite.site.model import SiteKeys
from tests.unit.site.mini import SiteFolder

NEW, HOSTS = "group_vars/all/new.yml", "hosts.yml"
# Keys that are valid by themselves; each bad case changes one line of them.
GOOD = {
    "networks": """\
site_networks:
  compute:
    kind: infiniband
    subnet: 10.2.0.0/16
    mtu: 4092
    gateway: 10.2.0.1
    vlan: 12
    groups: [slurm_compute]
    fabric: ib
""",
    "fabrics": """\
site_fabrics:
  mtu:
    kind: infiniband
    speed_gbit_s: 400
    rails: 2
    hcas: [mlx5_0, mlx5_1]
    subnet_manager: managed_switch
""",
    "switches": """\
site_switches:
  leaf1:
    fabric: ib
    profile: qm9700
    role: leaf
    managed: true
    links:
      - nodes: gpu[01-02]
        rail: 0
    uplinks: {spine1: 4}
""",
    "beegfs": """\
site_beegfs:
  - name: work
    mount: /bulk
    mgmtd: head
    meta:
      - host: head
        device: /dev/nvme0n1
    storage:
      - host: head
        devices: [/dev/nvme1n1]
""",
    "lustre": """\
site_lustre:
  - name: scratch
    mount: /scratch
    mgs: mds1
    mdts:
      - host: mds1
        device: /dev/mapper/mdt0
    osts:
      - host: oss1
        device: /dev/mapper/ost0
    options: [flock]
""",
    "scratch": """\
site_scratch:
  - groups: [gpu]
    path: /local
    devices: [/dev/nvme0n1]
    file_system: xfs
    raid: 0
""",
    "software": """\
site_software:
  slurm: "24.11.5"
  nvidia_driver: "550.90.07"
  kernel: null
""",
    "nccl": """\
site_nccl:
  NCCL_IB_HCA: mlx5
  NCCL_DEBUG: WARN
""",
    "qos": """\
site_qos:
  - name: high
    priority: 100
    max_wall: "12:00:00"
    max_jobs_per_user: 4
    max_tres_per_user:
      gres/gpu: 16
      mem: 512G
    preempt: [low]
    preempt_mode: REQUEUE
    flags: [DenyOnLimit]
    usage_factor: 2.0
""",
    "accounts": """\
site_accounts:
  - name: physics
    parent: root
    description: department of physics
    fairshare: 40
    grp_tres: {gres/gpu: 64}
""",
    "associations": """\
site_associations:
  - user: alice
    account: physics
    partition: batch
    fairshare: parent
    max_jobs: 2
""",
    "monitoring": """\
site_monitoring:
  retention_days: 30
  scrape_interval_s: 15
  receivers:
    - name: operators
      email: ops@example.org
""",
    "racks": """\
site_racks:
  r1:
    units: 42
    depth_mm: 1070
    max_weight_kg: 1300
    feeds:
      units: {kw: 17.2}
    contents:
      - hosts: gpu[01-02]
        u: 1
        feeds: {units: 3}
""",
    "acknowledged": """\
site_acknowledged:
  - code: HPC1052
    key: site_nccl
    reason: measured
""",
    "slurm_topology": "site_slurm_topology: block\n",
}


class Bad(NamedTuple):
    """One change to a good text, and what is said of it."""

    key: str
    old: str
    new: str
    says: str
    hint: str


MISTAKES = (
    Bad("networks", "kind: infiniband", "kind: infinband", "networks.compute.kind", "infiniband?"),
    Bad(
        "networks",
        "10.2.0.0/16",
        "10.2.0.1/16",
        "10.2.0.1/16 has host bits set",
        "subnet: 10.1.0.0/16",
    ),
    Bad("networks", "mtu: 4092", "mtu: 10", "site_networks.compute.mtu is 10; it must be at", ""),
    Bad(
        "networks", "10.2.0.1", "gw", 'site_networks.compute.gateway is "gw"; it must be valid', ""
    ),
    Bad("networks", "vlan: 12", "vlan: 4095", "it must be at most 4094", ""),
    Bad("networks", "fabric:", "fabrik:", "unknown key fabrik in site_networks.compute", "fabric?"),
    Bad("networks", "  compute:", "  Compute:", "site_networks.Compute is", "inventory"),
    Bad("fabrics", "400", '"400"', 'speed_gbit_s is "400"; it must be a whole number', "quotes"),
    Bad("fabrics", "mlx5_0,", "mlx5 0,", "site_fabrics.mtu.hcas[0]", "hcas: [mlx5_0]"),
    Bad("fabrics", "managed_switch", "switch", "one of managed_switch or host", "managed_switch"),
    Bad("fabrics", "rails:", "rail:", "unknown key rail in site_fabrics.mtu", "rails?"),
    Bad("switches", "role: leaf", "role: edge", "one of leaf, spine or core", "choose one"),
    Bad("switches", "nodes: gpu[01-02]", "nodes: gpu 01", "links[0].nodes", "gpu[001-016]"),
    Bad("switches", "rail: 0", "rale: 0", "unknown key rale in site_switches.leaf1.links", "rail?"),
    Bad("switches", "{spine1: 4}", "{spine1: 0}", "uplinks.spine1 is 0; it must be at least 1", ""),
    Bad("beegfs", "device: /dev", "device: nvme", "meta[0].device is", "inventory-keys.md"),
    Bad("beegfs", "        device: /dev/nvme0n1\n", "", "either device or path", "inventory-keys"),
    Bad("beegfs", "devices: [", "paths: [/data]\n        devices: [", "not with both", ""),
    Bad("beegfs", "[/dev/nvme1n1]", "[nvme1n1]", "storage[0].devices[0]", "inventory-keys.md"),
    Bad("lustre", "name: scratch", "name: scratchfs", "at most 8 letters", "name: scratch"),
    Bad("lustre", "    osts:", "    ostz:", "unknown key ostz in site_lustre[0]", "osts?"),
    Bad("lustre", "        device: /dev/mapper/ost0\n", "", "osts[0] has no device", "ost0"),
    Bad("lustre", "[flock]", "['flock,noatime']", "options[0]", "inventory-keys.md"),
    Bad("scratch", "xfs", "btrfs", "one of xfs or ext4", "choose one"),
    Bad("scratch", "raid: 0", "raid: 5", "site_scratch[0].raid is 5; it must be", "choose one"),
    Bad("scratch", "[gpu]", "[]", "a list of at least 1", "inventory-keys.md"),
    Bad("software", '"24.11.5"', "24.11", "slurm is 24.11; it must be text", 'write "24.11"'),
    Bad("software", "nvidia_driver", "nvidia_drivr", "unknown key nvidia_drivr", "nvidia_driver?"),
    Bad("nccl", "NCCL_IB_HCA", "IB_HCA", "a variable of NCCL's", "inventory"),
    Bad("qos", "512G", "512X", 'max_tres_per_user.mem is "512X"; it must be a whole', "keys.md"),
    Bad("qos", "gres/gpu: 16", "GPU: 16", "a TRES of Slurm's", "{gres/gpu: 16}"),
    Bad("qos", "REQUEUE", "requeue", "one of OFF, CANCEL", "choose one"),
    Bad("qos", "REQUEUE", "OFF", "preempt_mode is false", 'write "OFF"'),
    Bad("qos", "2.0", "-1", "site_qos[0].usage_factor is -1; it must be at least 0", ""),
    Bad("qos", '"12:00:00"', "1 day", "a time as Slurm writes it", "max_wall: '12:00:00'"),
    Bad("qos", "max_jobs_per_user", "max_job_per_user", "unknown key", "max_jobs_per_user?"),
    Bad("accounts", "name: physics", "name: Physics", "site_accounts[0].name", "name: physics"),
    Bad("accounts", "fairshare: 40", "fairshare: much", "a whole number of shares", "40"),
    Bad("accounts", "department of", 'the “department" of', "one line without", "keys.md"),
    Bad("associations", "parent", "true", "fairshare is true; it must be a whole number", "40"),
    Bad("associations", "    account: physics\n", "", "site_associations[0] has no account", "add"),
    Bad("monitoring", "30", "0", "retention_days is 0; it must be at least 1", ""),
    Bad("monitoring", "ops@example.org", "ops", "receivers[0].email", "keys.md"),
    Bad("monitoring", "email:", "mail:", "unknown key mail in site_monitoring.receivers", "email?"),
    Bad("racks", "17.2", "0", "site_racks.r1.feeds.units.kw is 0; it must be more than 0", "17.2"),
    Bad(
        "racks",
        "{kw: 17.2}",
        "{kW: 17.2}",
        "unknown key kW in site_racks.r1.feeds.units",
        "known here: kw",
    ),
    Bad("racks", "        u: 1\n", "", "site_racks.r1.contents[0] has no u", "e.g. `u: 3`"),
    Bad("racks", "hosts: gpu[01-02]", "switch: null", "either hosts or switch", "keys.md"),
    Bad("racks", "{units: 3}", "{units: three}", "contents[0].feeds.units", "quotes"),
    Bad("acknowledged", "HPC1052", "1052", "site_acknowledged[0].code is 1052", 'write "1052"'),
    Bad("acknowledged", "measured", '" "', 'reason is " "; it must be some text', "keys.md"),
    Bad("slurm_topology", "block", "ring", "one of none, tree or block", "choose one"),
)


def _line_of_change(bad: Bad) -> range:
    """Lines on which the mistake may be said to stand: the changed one, or its mapping's first."""
    before = GOOD[bad.key].partition(bad.old)[0]
    number = before.count("\n") + 1
    return range(max(1, number - 2), number + 2)


@pytest.mark.parametrize("key", GOOD)
def test_good_values_are_valid_by_themselves(key: str) -> None:
    value = yaml.safe_load(GOOD[key])[f"site_{key}"]
    keys = SiteKeys.model_validate_json(json.dumps({"name": "mini", key: value}), strict=True)
    assert getattr(keys, key)


@pytest.mark.parametrize("bad", MISTAKES, ids=lambda bad: f"{bad.key}: {bad.new.strip()[:30]}")
def test_a_bad_value_is_said_where_it_stands(bad: Bad, folder: SiteFolder) -> None:
    assert bad.old in GOOD[bad.key]
    folder.write(NEW, GOOD[bad.key].replace(bad.old, bad.new, 1))
    found = [problem for problem in folder.problems() if bad.says in problem.message]
    assert found, [problem.message for problem in folder.problems()]
    problem = found[0]
    assert problem.where
    assert problem.where.path == folder.path / NEW
    assert problem.where.line in _line_of_change(bad)
    assert problem.key.startswith(f"site_{bad.key}")
    assert bad.hint in problem.hint
    assert problem.code.startswith("HPC10")


def test_every_model_has_a_bad_value_here() -> None:
    old = {"groups", "users", "node_groups", "partitions", "nfs_exports", "lab"}
    nested = {name for name, f in SiteKeys.model_fields.items() if model_in(f.annotation)}
    assert nested - old <= {bad.key for bad in MISTAKES}


NODE_GROUP = (
    ("hardware_profile: DGX H100", "hardware_profile is", "hardware_profile: dgx-h100"),
    ('mig: [{gpus: "0-", profiles: {1g.10gb: 7}}]', "mig[0].gpus", "0-3"),
    ("mig: [{gpus: 0, profiles: {1g.10gb: 7}}]", "mig[0].gpus is 0; it must be text", '"0"'),
    (
        "mig: [{profiles: {1g10gb: 7}}]",
        "a MIG profile as NVIDIA names it, e.g. 1g.10gb",
        "{1g.10gb: 7}",
    ),
    ("mig: [{profiles: {}}]", "a mapping of at least 1", "1g.10gb"),
    ("mig: [{profile: {1g.10gb: 7}}]", "unknown key profile in site_node_groups.gpu.mig[0]", ""),
    ("shards: 0", "site_node_groups.gpu.shards is 0; it must be at least 1", ""),
    ("mps: many", 'mps is "many"; it must be a whole number', ""),
)


@pytest.mark.parametrize(("text", "says", "hint"), NODE_GROUP, ids=[n[0] for n in NODE_GROUP])
def test_new_keys_of_node_groups(text: str, says: str, hint: str, folder: SiteFolder) -> None:
    slurm = "group_vars/all/slurm.yml"
    folder.edit(slurm, "      count: 8\n", f"      count: 8\n    {text}\n")
    _holds(folder, slurm, text, says, hint)


PARTITION = (
    ("oversubscribe: NO", "oversubscribe is false; it must be text", 'write "NO"'),
    ("oversubscribe: SOMETIMES", 'in quotes "NO", or EXCLUSIVE', "EXCLUSIVE"),
    ("preempt_mode: KILL", "one of OFF, CANCEL", "choose one"),
    ("priority_tier: 65534", "priority_tier is 65534; it must be at most 65533", ""),
    ("allow_acounts: [x]", "unknown key allow_acounts in site_partitions[0]", "allow_accounts?"),
    ("allow_accounts: [Physics]", "site_partitions[0].allow_accounts[0]", ""),
    ("max_nodes: 0", "max_nodes is 0; it must be at least 1", ""),
    ("qos: 7", "site_partitions[0].qos is 7; it must be text", 'write "7"'),
)


@pytest.mark.parametrize(("text", "says", "hint"), PARTITION, ids=[p[0] for p in PARTITION])
def test_new_keys_of_partitions(text: str, says: str, hint: str, folder: SiteFolder) -> None:
    slurm = "group_vars/all/slurm.yml"
    folder.edit(slurm, "    default: true\n", f"    default: true\n    {text}\n")
    _holds(folder, slurm, text, says, hint)


HOST = (
    ("site_addresses: {ib: 10.2.0.300}", "site_addresses.ib is", "inventory"),
    ("site_addresses: [10.2.0.3]", "site_addresses is a list; it must be a mapping", "ib"),
    ("site_addresses: {IB: 10.2.0.3}", "site_addresses.IB", ""),
    ("site_macs: {ib: 0c-42-a1-00-00-01}", "site_macs.ib", ""),
    ("site_subnet_manager_priority: 16", "it must be at most 15", ""),
    ("site_subnet_manager_priority: high", "it must be a whole number", ""),
    ("site_lab_gpus: -1", "site_lab_gpus is -1; it must be at least 0", ""),
    ("site_adresses: {ib: 10.2.0.3}", "unknown key site_adresses", "site_addresses"),
    ("site_macs: {ib: '{{ mac }}'}", "site_macs.ib holds a template", ""),
)


@pytest.mark.parametrize(("text", "says", "hint"), HOST, ids=[h[0] for h in HOST])
@pytest.mark.parametrize("beside", [True, False], ids=["hosts.yml", "host_vars"])
def test_keys_of_hosts(text: str, says: str, hint: str, beside: bool, folder: SiteFolder) -> None:
    if beside:
        line = "ansible_host: 10.9.0.21\n"
        folder.edit(HOSTS, line, f"{line}              {text}\n")
        _holds(folder, HOSTS, text, says, hint)
    else:
        folder.write("host_vars/gpu01/net.yml", f"local_x: 1\n{text}\n")
        _holds(folder, "host_vars/gpu01/net.yml", text, says, hint)


def _holds(folder: SiteFolder, file: str, text: str, says: str, hint: str) -> None:
    found = [problem for problem in folder.problems() if says in problem.message]
    assert found, [problem.message for problem in folder.problems()]
    assert found[0].where
    assert found[0].where.path == folder.path / file
    assert found[0].where.line == folder.line(file, text)
    assert hint in found[0].hint
