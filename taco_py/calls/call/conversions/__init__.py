"""Rules that make operands of the user's, over which kernels run."""
