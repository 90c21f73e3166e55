"""Stored tensors: their arrays, conversions, files, and other libraries."""
