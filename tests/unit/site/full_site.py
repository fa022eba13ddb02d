"""A small valid site that uses every key of the model, for tests that spoil it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from hpcsite.errors import CouldNotRunError
from hpcsite.site.inventory import Inventory
from tests.unit.site.mini import SiteFolder, resolve

_HOSTS = """\
all:
  children:
    slurm_controller: {hosts: {head: {ansible_host: 10.9.0.10}}}
    slurm_dbd: {hosts: {head: }}
    mariadb: {hosts: {head: }}
    slurm_login: {hosts: {login: {ansible_host: 10.9.0.11}}}
    slurm_compute:
      children:
        gpu:
          hosts:
            gpu01: {ansible_host: 10.9.0.21}
            gpu02: {ansible_host: 10.9.0.22}
        cpu:
          hosts:
            cpu01: {ansible_host: 10.9.0.31}
    rdma: {children: {gpu: }}
    nfs_server: {hosts: {head: }}
    nfs_client: {children: {slurm_compute: , slurm_login: }}
    lustre_mgs: {hosts: {sto1: {ansible_host: 10.9.0.41}}}
    lustre_mds: {hosts: {sto1: }}
    lustre_oss: {hosts: {sto2: {ansible_host: 10.9.0.42}}}
    lustre_client: {children: {slurm_compute: }}
    beegfs_mgmtd: {hosts: {sto1: }}
    beegfs_meta: {hosts: {sto1: }}
    beegfs_storage: {hosts: {sto2: }}
    beegfs_client: {children: {slurm_compute: }}
    prometheus: {hosts: {head: }}
    alertmanager: {hosts: {head: }}
    mine: {hosts: {login: }}
"""
_SITE = """\
site_name: rich
site_domain: rich.example
site_timezone: Europe/Berlin
site_ntp_servers: [head]
site_custom_groups: [mine]
site_verify_user: alice
site_verify_python: /opt/pytorch/bin/python
site_groups:
  - {name: research, gid: 2000}
  - {name: gone, gid: 2001, state: absent}
site_users:
  - name: alice
    uid: 3001
    group: research
    groups: []
    comment: Alice
    shell: /bin/bash
    accounts: [physics]
    default_account: physics
    ssh_keys:
      - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl alice
  - {name: bob, uid: 3002, home: /home/people/bob, accounts: [science, physics]}
site_monitoring:
  retention_days: 90
  scrape_interval_s: 30
  receivers:
    - {name: operators, email: ops@rich.example}
    - {name: chat, webhook: "https://chat.rich.example/hook"}
site_acknowledged:
  - {code: HPC1617, key: site_software, reason: built on one node}
  - {code: HPC1918, reason: weighed by hand}
site_software:
  kernel: 6.8.0-88-generic
  slurm: "25.11.8"
  nvidia_driver: 580.65.06
  fabric_manager: 580.65.06
  cuda: "13.0"
  nccl: 2.27.7-1+cuda13.0
  dcgm: "4.4.0"
  doca_ofed: null
  lustre: "2.16.1"
  pmix: "5.0.8"
  openmpi: "5.0.8"
site_nccl: {NCCL_DEBUG: WARN, NCCL_CROSS_NIC: 0}
"""
_SLURM = """\
site_slurm_cluster_name: rich
site_slurm_process_tracking: cgroup
site_slurm_parameters:
  MessageTimeout: 60
  PriorityType: priority/multifactor
  PriorityWeightFairshare: 100000
  PriorityWeightQOS: 50000
site_slurm_cgroup_parameters: {ConstrainSwapSpace: true}
site_slurm_topology: tree
site_node_groups:
  gpu:
    hardware_profile: dgx-h100
    features: [h100]
    weight: 10
    mig:
      - {nodes: gpu02, gpus: "0-3", profiles: {1g.10gb: 7}}
  cpu:
    hardware: {sockets: 2, cores_per_socket: 16, threads_per_core: 2, memory_mib: 257000}
    memory_margin_percent: 4.5
site_partitions:
  - name: batch
    node_groups: [gpu, cpu]
    default: true
    max_time: 1-00:00:00
    default_time: "10:00"
    qos: high
    allow_accounts: [physics, science]
    allow_qos: [normal, high]
    allow_groups: [research]
    priority_tier: 2
    max_nodes: 2
    oversubscribe: "NO"
    parameters: {PriorityJobFactor: 5}
site_qos:
  - {name: normal, priority: 10}
  - name: high
    priority: 100
    max_wall: "12:00:00"
    max_jobs_per_user: 2
    max_submit_per_user: 4
    max_tres_per_user: {gres/gpu: 8, mem: 512G}
    max_tres_per_job: {node: 2}
    grp_tres: {cpu: 64}
    preempt: [normal]
    preempt_mode: REQUEUE
    flags: [DenyOnLimit]
    usage_factor: 2.0
    usage_threshold: 0.1
site_accounts:
  - {name: science, description: All of it, organization: rich, fairshare: 10}
  - name: physics
    parent: science
    fairshare: parent
    max_jobs: 5
    max_wall: 2-00:00:00
    grp_tres: {gres/gpu: 16}
    max_tres_per_job: {node: 1}
    qos: [normal, high]
    default_qos: normal
site_associations:
  - {user: alice, account: physics, partition: batch, fairshare: 3, max_jobs: 1}
"""
_NETWORK = """\
site_networks:
  cluster: {kind: ethernet, subnet: 10.9.0.0/24, gateway: 10.9.0.1, mtu: 9000, groups: [all]}
  ib: {kind: infiniband, subnet: 10.10.0.0/24, fabric: compute, groups: [gpu]}
site_fabrics:
  compute:
    kind: infiniband
    speed_gbit_s: 400
    rails: 2
    hcas: [mlx5_0, mlx5_1]
    subnet_manager: managed_switch
  lan: {kind: ethernet, speed_gbit_s: 100}
site_switches:
  eth1: {fabric: lan, profile: sn5600, role: leaf, links: [{nodes: "cpu01,gpu[01-02]"}]}
  leaf1:
    fabric: compute
    profile: qm9700
    role: leaf
    managed: true
    links:
      - {nodes: "gpu[01-02]", rail: 0}
      - {nodes: "gpu[01-02]", rail: 1}
    uplinks: {spine1: 4}
  spine1: {fabric: compute, profile: qm9700, role: spine, managed: true}
site_racks:
  r1:
    units: 48
    feeds: {a: {kw: 30}, b: {kw: 30}, c: {kw: 30}}
    contents:
      - {hosts: "gpu[01-02]", u: 3, feeds: {a: 2, b: 2, c: 2}}
      - {switch: leaf1, u: 30, feeds: {a: 1, b: 1}}
      - {switch: spine1, u: 31, feeds: {a: 1, b: 1}}
      - {switch: eth1, u: 32, feeds: {a: 1, b: 1}}
      - {hosts: head, profile: generic-cpu, u: 40, feeds: {a: 1}}
"""
_STORAGE = """\
site_nfs_exports:
  - {path: /srv/home, mount: /home, server: head, options: [noatime], automount: true}
  - {path: /shared, group: research, mode: "2775", rdma: false, read_only: false}
site_beegfs:
  - name: work
    mount: /bulk
    mgmtd: sto1
    meta: [{host: sto1, device: /dev/sdb}]
    storage: [{host: sto2, devices: [/dev/sdb, /dev/sdc]}]
site_lustre:
  - name: fast
    mount: /fast
    mgs: sto1
    mdts: [{host: sto1, device: /dev/mapper/mdt0}]
    osts: [{host: sto2, device: /dev/mapper/ost0}]
    options: [flock]
site_scratch:
  - {groups: [gpu], path: /local, devices: [/dev/nvme2n1, /dev/nvme3n1], raid: 0}
"""
FILES: dict[str, str] = {
    "hosts.yml": _HOSTS,
    "group_vars/all/site.yml": _SITE,
    "group_vars/all/slurm.yml": _SLURM,
    "group_vars/all/network.yml": _NETWORK,
    "group_vars/all/storage.yml": _STORAGE,
    "group_vars/rdma/rdma.yml": "rdma_mode: infiniband\nrdma_devices: [mlx5_0, mlx5_1]\n",
    "group_vars/slurm_controller/state.yml": "slurmctld_state_dir: /var/spool/slurmctld\n",
    "host_vars/gpu01/net.yml": (
        "site_addresses: {ib: 10.10.0.21}\nsite_macs: {cluster: '0c:42:a1:00:00:01'}\n"
    ),
    "host_vars/gpu02/net.yml": "site_addresses: {ib: 10.10.0.22}\n",
}


def write(path: Path) -> SiteFolder:
    """Write the site into a folder."""
    folder = SiteFolder(path)
    for name, text in FILES.items():
        folder.write(name, text)
    return folder


def resolve_any(path: Path, _sources: object = None) -> Inventory:
    """Do what ansible-inventory does, also with what it refuses; all values come through JSON."""
    try:
        found = resolve(path)
        hosts = json.loads(json.dumps(found.hosts, default=str))
    except (TypeError, ValueError, AttributeError, yaml.YAMLError) as error:
        raise CouldNotRunError(f"ansible-inventory refuses this: {error}") from error
    return replace(found, hosts=hosts)


def trees() -> dict[str, Any]:
    """Read the files of variables, to be spoilt."""
    return {name: yaml.safe_load(text) for name, text in FILES.items() if name != "hosts.yml"}
