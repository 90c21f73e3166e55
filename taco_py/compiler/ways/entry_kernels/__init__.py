"""Values of the entries of a sparse operand in one kernel, groups of rows at a time."""
