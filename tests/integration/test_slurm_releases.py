"""What is rendered of the sites is taken by the Slurm that each package source offers.

Real slurmctld, slurmdbd and MariaDB run on the files of a site, one Debian release after the other;
the nodes are only names, which no daemon has registered.
"""

import os
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import yaml
from jinja2 import Environment, StrictUndefined

from hpcsite.deploy.render import render_site
from hpcsite.paths import content_dir
from hpcsite.site.load import load_site
from hpcsite.site.model import Site
from hpcsite.slurm.accounts import desired_state
from hpcsite.slurm.accounts_listings import account_listings, read_state
from hpcsite.slurm.accounts_plan import AccountPlan, plan_accounts
from hpcsite.slurm.partition_qos import new_partition_qos
from tests.slurm_root import SlurmRoot, root_of

pytestmark = pytest.mark.lab

# Debian's releases, and the Slurm that each has.
RELEASES = {"bookworm": "22.05.8", "trixie": "24.11.5", "forky": "26.05"}
EXAMPLE = "example-h100"
# What a controller says of nodes that nobody starts, and of a state that begins.
HARMLESS = re.compile(
    r"Could not open (?:node|job|reservation|trigger|partition|dbd) state|"
    r"No (?:node|job|reservation|trigger|dbd|last) .*state|"
    r"Configured MailProg is invalid|NOTE: Trying backup|"
    # How much memory the database gets is the site's to say.
    r"not recommended values: innodb_buffer_pool_size$|"
    # What Debian's plugstack.conf includes, and what slurmdbd says of a user's first association.
    r"plugstack|\"Include\" failed in file|can't find assoc|"
    r"read_slurm_conf: default partition not set|"
    r"Unable to open pidfile|Zero Bytes were transmitted|Connection refused|"
    r"resume_run|_slurm_persist_recv_msg|could not (?:stat|open) .*_state|"
    # There is no backup controller, and none of the nodes answers.
    r"(?:ctl2|gpu\d+|10\.80\.)|No route to host|Network is unreachable"
)


class Cluster(NamedTuple):
    """A site whose daemons run."""

    site: Site
    root: SlurmRoot
    version: str

    @property
    def name(self) -> str:
        return self.site.cluster_name

    def accounts(self) -> AccountPlan:
        """Plan from what slurmdbd really has."""
        answers = {
            what: self.root.ok(" ".join(argv)) for what, argv in account_listings(self.name).items()
        }
        return plan_accounts(
            desired_state(self.site.keys), read_state(answers, self.name), self.name
        )


def _pinned(version: str) -> Site:
    """Return the example with the Slurm at hand, even one that validation refuses for its holes."""
    site = load_site(content_dir() / "inventory" / EXAMPLE)
    software = site.keys.software.model_copy(update={"slurm": version})
    return site.model_copy(update={"keys": site.keys.model_copy(update={"software": software})})


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("namespaces of one's own need root")
    with SlurmRoot(root_of(request.param)) as root:
        version = root.ok("dpkg-query --showformat '${Version}' --show slurmctld")
        assert version.startswith(RELEASES[request.param]), version
        site = _pinned(version)
        _start(root, site)
        yield Cluster(site, root, version)


def _start(root: SlurmRoot, site: Site) -> None:
    files = render_site(site)
    password = "only-of-this-test"
    root.ok(
        # The controllers are two hosts: a slurmctld that reaches itself as the other one gives up.
        "hostname ctl1; ip netns add ctl2; ip link add c1 type veth peer name c2 netns ctl2; "
        "ip address add 10.80.0.11/24 dev c1; ip link set c1 up; "
        "ip netns exec ctl2 sh -c 'ip address add 10.80.0.12/24 dev c2; ip link set c2 up'"
    )
    root.write({"/etc/hosts": f"127.0.0.1 localhost\n{files.pop('hosts')}"})
    root.write(
        {"/etc/slurm/slurmdbd.conf": files.pop("slurmdbd.conf").replace("***", password)},
        owner="slurm",
        mode="0600",
    )
    root.write(
        {f"/etc/slurm/{name}": text for name, text in files.items() if name.endswith(".conf")}
    )
    root.ok(
        "install -d -o slurm /srv/slurm/state /run/slurm /run/slurmdbd /run/slurmctld; "
        "install -d -o munge -m 755 /run/munge; install -d -o mysql /run/mysqld; "
        "mungekey --create --force 2>/dev/null || /usr/sbin/create-munge-key -f; "
        "chown munge /etc/munge/munge.key; runuser -u munge -- munged"
    )
    root.write({"/etc/mysql/mariadb.conf.d/90-slurm.cnf": _of_the_role("mariadb", "slurm.cnf.j2")})
    root.ok("for name in amina jonas verify; do useradd --create-home $name; done")
    root.ok(
        "mariadbd --user=mysql --skip-networking --innodb-flush-log-at-trx-commit=0 "
        ">/var/log/mariadbd.log 2>&1 &"
    )
    root.wait("mariadb -e 'select 1'")
    root.ok(
        'mariadb -e "create database slurm_acct_db; '
        f"create user slurm@localhost identified by '{password}'; "
        'grant all on slurm_acct_db.* to slurm@localhost"'
    )
    # It runs on the host that the site gives it, which is another one.
    root.ok(
        "ip netns exec ctl2 unshare --uts "
        "sh -c 'hostname ctl2; exec runuser -u slurm -- slurmdbd -D' "
        ">/var/log/slurmdbd.log 2>&1 &"
    )
    root.wait("sacctmgr --noheader show cluster")
    root.ok(f"sacctmgr --immediate add cluster {site.cluster_name}")
    for new in new_partition_qos(site.keys, ("normal",)):
        root.ok(shlex.join(new.argv))
    _start_slurmctld(root)
    for step in Cluster(site, root, "").accounts().steps:
        said = root.run(shlex.join(step.argv))
        assert said.rc == 0, f"{step.text}: {said.text}"
        assert "Error with request" not in said.text, f"{step.text}: {said.text}"
    # Only that of this root is to be seen here.
    root.ok("kill $(pidof slurmctld)")
    root.wait("! pidof slurmctld")
    _start_slurmctld(root)


def _of_the_role(name: str, template: str) -> str:
    """Render a template with the defaults of its role."""
    role = content_dir() / "roles" / name
    values = yaml.safe_load((role / "defaults" / "main.yml").read_text("utf-8"))
    source = (role / "templates" / template).read_text("utf-8")
    environment = Environment(autoescape=False, undefined=StrictUndefined)  # noqa: S701 - no HTML
    return environment.from_string(source).render(
        {key: value for key, value in values.items() if "{{" not in str(value)},
        **{f"__{name}_is_local": True},
    )


def _start_slurmctld(root: SlurmRoot) -> None:
    root.ok("runuser -u slurm -- slurmctld -D -v >/var/log/slurmctld.log 2>&1 &")
    root.wait("scontrol ping | grep -q '^Slurmctld(primary) at ctl1 is UP'")


def test_daemons_have_nothing_to_complain_of(cluster: Cluster) -> None:
    for daemon in ("slurmctld", "slurmdbd"):
        log = cluster.root.ok(f"cat /var/log/{daemon}.log")
        wrong = [
            line
            for line in log.splitlines()
            if re.search(r"\b(?:error|fatal|warning)\b", line, re.IGNORECASE)
            and not HARMLESS.search(line)
        ]
        assert wrong == [], f"{daemon} {cluster.version}"


def test_controller_has_the_nodes_and_partitions_of_the_site(cluster: Cluster) -> None:
    nodes = cluster.root.ok("scontrol --oneliner show nodes").splitlines()
    assert len([line for line in nodes if line.startswith("NodeName=")]) == 32
    full = next(line for line in nodes if line.startswith("NodeName=gpu001 "))
    assert "CPUTot=224" in full
    assert "RealMemory=1960800" in full
    assert "Gres=gpu:h100:8" in full
    assert "ActiveFeatures=h100,ndr" in full
    mig = next(line for line in nodes if line.startswith("NodeName=gpu032 "))
    assert "gpu:3g.40gb:8" in mig
    partitions = cluster.root.ok("scontrol --oneliner show partitions")
    assert re.search(
        r"PartitionName=batch .*AllowQos=normal,urgent,scavenger .*Default=YES", partitions
    )
    assert re.search(r"PartitionName=small .*MaxNodes=1 MaxTime=12:00:00", partitions)


def test_controller_has_the_topology_of_the_site(cluster: Cluster) -> None:
    switches = cluster.root.ok("scontrol show topology")
    leaves = re.findall(r"SwitchName=(\S+) Level=0", switches)
    assert len(leaves) == 2, switches
    assert re.search(r"Level=1", switches), switches


def test_keys_are_in_effect(cluster: Cluster) -> None:
    config = cluster.root.ok("scontrol show config")
    for key, value in {
        "SelectType": "select/cons_tres",
        "PreemptType": "preempt/qos",
        "TopologyPlugin": "topology/tree",
        "MpiDefault": "pmix",
        "PriorityWeightFairshare": "100000",
        "SlurmctldParameters": "enable_configless",
    }.items():
        assert re.search(rf"(?im)^{key}\s+= {re.escape(value)}\s*$", config), key


def test_accounts_of_the_site_are_made_whole_at_once(cluster: Cluster) -> None:
    assert cluster.accounts().steps == ()
    users = cluster.root.ok("sacctmgr --noheader --parsable2 show associations format=User,Account")
    assert {"amina|lattice", "amina|climate", "jonas|teaching"} <= set(users.split())


def test_jobs_are_taken_and_refused_as_the_site_says(cluster: Cluster) -> None:
    """The nodes are unknown, so that a job that is taken waits."""
    sbatch = "cd /tmp && runuser -u amina -- sbatch --parsable --wrap true --time 10"
    taken = cluster.root.run(f"{sbatch} --account lattice --gres gpu:h100:8")
    assert re.fullmatch(r"\d+", taken.text), taken.text
    job = cluster.root.ok(f"scontrol show job {taken.text}")
    assert "Partition=batch" in job
    assert "QOS=normal" in job
    for flags, why in {
        "--account informatics": "Invalid account",
        "--account lattice --qos interactive": "Invalid qos",
        "--account lattice --gres gpu:a100:1": "node configuration|generic resource",
        "--account lattice --partition small --time 13:00:00": "time limit",
        "--account lattice --nodes 31": "node count|More processors|node configuration",
    }.items():
        refused = cluster.root.run(f"{sbatch} {flags}")
        assert refused.rc != 0, f"{flags}: {refused.text}"
        assert re.search(why, refused.text, re.IGNORECASE), f"{flags}: {refused.text}"
