"""Functions as data: NumPy's, those of users, and what is declared of them."""
