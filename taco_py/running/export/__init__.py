"""Kernels as C files that others can compile: the functions, a header, and a program."""
