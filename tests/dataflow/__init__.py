"""Dataflow graphs: built, rewritten, printed, and what their kernels compute."""
