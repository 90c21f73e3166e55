"""Functions as data: NumPy's, those of users, and their declared properties."""
