"""Plans carried out: steps, calls made before, kernels for others to compile."""
