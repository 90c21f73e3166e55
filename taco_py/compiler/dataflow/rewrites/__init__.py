"""Rewrites of dataflow graphs that raise no traffic, a file each; `table` has their order."""
