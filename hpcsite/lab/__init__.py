"""Machines on this computer: image, network, nspawn."""
