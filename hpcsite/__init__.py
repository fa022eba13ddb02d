"""Turn bare servers into a Slurm GPU cluster, and prove that it is fast."""

__version__ = "0.1.0"
