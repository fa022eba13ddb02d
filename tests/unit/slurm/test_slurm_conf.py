from hpcsite.slurm.conf import expand, fold, parse_slurm_conf

FOREIGN = """\
# a site's own file
clustername=old  # trailing
SlurmctldHost=head(10.0.0.1)
NodeName=DEFAULT CPUs=4
nodename=gpu[01-03] NodeAddr=10.0.0.[11-13] CPUs=8 \\
  RealMemory=3891 Gres=gpu:h100:8 Reason="no, really"
PartitionName=gpu Nodes=gpu[01-03] Default=YES
"""


def test_keys_nodes_and_partitions_are_told_apart() -> None:
    conf = parse_slurm_conf(FOREIGN)
    assert conf.keys == {"clustername": "old", "slurmctldhost": "head(10.0.0.1)"}
    assert set(conf.nodes) == {"gpu01", "gpu02", "gpu03"}
    assert conf.nodes["gpu02"]["gres"] == "gpu:h100:8"
    assert conf.nodes["gpu02"]["reason"] == "no, really"
    assert conf.partitions["gpu"] == {"nodes": "gpu[01-03]", "default": "YES"}


def test_what_cannot_be_read_is_left_out() -> None:
    conf = parse_slurm_conf("NodeName=gpu[01 CPUs=8\n<<<<<<< HEAD\n\nSlurmUser=slurm\n")
    assert conf.nodes == {}
    assert conf.keys == {"slurmuser": "slurm"}


def test_zero_padding_and_gaps_survive_folding() -> None:
    names = ["gpu001", "gpu002", "gpu003", "gpu010", "login1"]
    assert fold(names) == "gpu[001-003,010],login1"
    assert sorted(expand(fold(names))) == names


def test_default_lines_fill_what_later_lines_leave_out() -> None:
    conf = parse_slurm_conf(
        "NodeName=a RealMemory=1\nNodeName=DEFAULT CPUs=8 RealMemory=100\nNodeName=b\n"
        "NodeName=default RealMemory=200\nNodeName=c\nNodeName=d CPUs=16\n"
    )
    assert conf.nodes == {
        "a": {"realmemory": "1"},
        "b": {"cpus": "8", "realmemory": "100"},
        "c": {"cpus": "8", "realmemory": "200"},
        "d": {"cpus": "16", "realmemory": "200"},
    }


def test_includes_are_named() -> None:
    conf = parse_slurm_conf("SlurmUser=slurm\n  INCLUDE /etc/slurm/nodes.conf # all\n")
    assert conf.includes == ["/etc/slurm/nodes.conf"]
    assert conf.keys == {"slurmuser": "slurm"}
