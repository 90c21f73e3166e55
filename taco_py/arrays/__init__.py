"""Tensors as arrays: operators, NumPy's functions, reductions, subscripts, shapes.

The table in `operations.py` lists them; each is one assignment in index notation, or works on
coordinates.
"""
