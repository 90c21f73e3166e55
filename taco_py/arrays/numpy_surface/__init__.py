"""NumPy's functions that are written by others of NumPy's, for Tensors and traced arrays alike.

np.roll(x, 1, 0)   →   np.concatenate([x[-1:], x[:-1]], 0)

Both kinds of arrays answer NumPy's functions, so each is computed, or noted, by what it is called
with. `surface_table.py` lists the functions.
"""
