"""Neural-network functions in NumPy style, of arrays and traced arrays; public in `taco_py.nn`."""
