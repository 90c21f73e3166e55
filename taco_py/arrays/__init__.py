"""Tensors as arrays: operators, NumPy's functions, reductions, subscripts, shapes.

Each is an entry of a table (`operations.py`), and is one assignment in index notation or work on
coordinates.
"""
