"""Graphs of operators: traced functions of arrays, split, rewritten and computed as a whole."""
