"""Kernels that read the same slabs of dense tensors, joined as one."""
