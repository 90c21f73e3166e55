"""Memory of kernels: what is free of the machine, limits, arrays that are used again."""
