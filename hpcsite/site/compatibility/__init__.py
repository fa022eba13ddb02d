"""The compatibility matrix: which versions of a site's software go together.

The matrix is data with sources (`data/*.yml`), read by `load`; `checks.check_stack` holds a site's
pins against it. Nothing here looks at a machine.
"""
