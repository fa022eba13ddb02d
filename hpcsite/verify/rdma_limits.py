"""What RDMA tests are held against, with sources.

Adapters are held against their own link's rate. Software RoCE is as fast as the CPUs that run it,
and nobody publishes a figure for that: its results are shown beside a floor which only says that
traffic passed.
"""

from hpcsite.verify.results import Reference

# Measured: 96.6 of 100 Gb/s (forums.developer.nvidia.com/t/273376), 191 of 200
# (microsoft/superbench-results v0.4.0), 399.6 of 400 (Azure/azurehpc-health-checks issue 152). The
# share lies below all of them; Azure's own gate is 380 of 400.
_SHARE_OF_LINK = 0.95
_SHARE_SOURCE = (
    "0.95 of the link's rate: Azure/azurehpc-health-checks conf gates 380 of 400 Gb/s on H100; "
    "measured are 96.6 of 100, 191 of 200 and 399.6 of 400 Gb/s"
)
# Figures are published from this rate on.
_LEAST_RATE_GBIT_S = 100.0
_LATENCY_US = 5.0
_LATENCY_SOURCE = (
    "oracle-quickstart/oci-hpc playbooks/roles/healthchecks/files/"
    "multi_node_active_healthcheck.py: at most 5 us between two nodes"
)
# A link that passes less is broken, however it is made: 1 Mb/s, and a second for one message.
FLOOR_GBIT_S = 0.001
CEILING_US = 1_000_000.0


def bandwidth_reference(rate_gbit_s: float, message_bytes: int) -> Reference | None:
    """Return the reference of `ib_write_bw` over a link of an adapter; None where there is none."""
    if rate_gbit_s < _LEAST_RATE_GBIT_S:
        return None
    return Reference(
        value=rate_gbit_s * _SHARE_OF_LINK,
        unit="Gb/s",
        source=_SHARE_SOURCE,
        applies={"rate_gbit_s": rate_gbit_s, "message_bytes": message_bytes},
    )


def latency_reference(rate_gbit_s: float, message_bytes: int) -> Reference | None:
    """Return the reference of `ib_write_lat` between adapters; None where there is none."""
    if rate_gbit_s < _LEAST_RATE_GBIT_S:
        return None
    return Reference(
        value=_LATENCY_US,
        unit="us",
        source=_LATENCY_SOURCE,
        applies={"rate_gbit_s": rate_gbit_s, "message_bytes": message_bytes},
    )
