"""Functions of networks in NumPy style, of arrays and of traced arrays; public in `taco_py.nn`."""
