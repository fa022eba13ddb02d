"""Judging what was measured: outliers, culprits, references, scaling. Pure functions."""
