"""Whether the slurmd of each node answers, asked from where srun would reach it.

slurmctld asks its nodes now and then, and calls one IDLE until SlurmdTimeout has passed (five
minutes by default), so its word is no proof. A job on each node is, but on a site in use nodes are
full. So the submit host connects to the port where srun starts a job's steps, and ends its side of
the connection: a slurmd that lives then ends the other, one that hangs does not.
"""

import re
from collections.abc import Iterable

from hpcsite.slurm.node_records import SlurmNode
from hpcsite.verify.cluster import Cluster
from hpcsite.verify.context import Core
from hpcsite.verify.evidence import Evidence
from hpcsite.verify.transport import Answer

# Long enough for the second try of a connection, which Linux makes after one second.
WITHIN_S = 2
_AT_ONCE = 256
_DEFAULT_PORT = "6818"
# Ansible needs a python3 on each host; this is run by the submit host's.
SCRIPT = f"""
import socket, sys
from concurrent.futures import ThreadPoolExecutor
def ask(node, address, port):
    try:
        with socket.create_connection((address, int(port)), {WITHIN_S}) as connection:
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
    except ConnectionResetError:
        pass
    except socket.timeout:
        return "nothing within {WITHIN_S} s"
    except OSError as error:
        return error.strerror or str(error)
    return "yes"
words = sys.argv[2:]
asked = list(zip(words[::3], words[1::3], words[2::3]))
with ThreadPoolExecutor({_AT_ONCE}) as pool:
    for (node, *_), said in zip(asked, pool.map(lambda one: ask(*one), asked)):
        print("@", node, said)
"""


def silent(core: Core, cluster: Cluster, evidence: Evidence) -> dict[str, str]:
    """Return the nodes that Slurm gives jobs to but that do not answer, with what is wrong.

    Raises `UnreachableError`.
    """
    asked = [cluster.nodes[target.name] for target in cluster.targets]
    # A node that is being powered up has no slurmd yet, and is waited for by Slurm.
    asked = [node for node in asked if "POWERING_UP" not in node.states]
    if not asked:
        return {}
    port = next(iter(re.findall(r"\d+", cluster.config.get("SlurmdPort", ""))), _DEFAULT_PORT)
    words = [
        word for node in asked for word in (node.name, node.address or node.name, node.port or port)
    ]
    answer = core.transport.run(
        core.host,
        ["python3", "-c", SCRIPT, "contact", *words],
        user=core.user,
        timeout_s=2 * WITHIN_S * (1 + len(asked) // _AT_ONCE) + 10,
    )
    evidence.record(answer, "contact")
    return read_silent(answer, asked)


def read_silent(answer: Answer, asked: Iterable[SlurmNode]) -> dict[str, str]:
    """Read what the script said; a node of which it says nothing did not answer either."""
    said = dict(re.findall(r"^@ (\S+) (.+)$", answer.stdout, re.MULTILINE))
    found = {}
    for node in asked:
        why = said.get(node.name, f"it was not asked ({answer.complaint})")
        if why != "yes":
            state = f"{node.condition} in Slurm"
            found[node.name] = f"{state}, but no slurmd answers {answer.host} there: {why}"
    return found
