"""Kernels of slabs: dataflow graphs (`compiler.dataflow`) as loop IR."""
