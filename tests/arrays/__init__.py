"""Tensors as arrays."""
