"""Gradients of graphs of primitives, as primitives."""
