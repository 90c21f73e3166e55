"""Dataflow graphs of kernels: loads, computations, reductions and stores, with their memories."""
