"""Talking to Slurm: configuration, hardware evidence, jobs; pure parsers of its output."""
