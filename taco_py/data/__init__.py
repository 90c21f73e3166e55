"""Stored tensors: their arrays, conversions, files, and exchange with other libraries."""
