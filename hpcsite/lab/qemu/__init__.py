"""Machines as QEMU virtual machines: kernels of their own, and no root."""
