"""What `compile` gives: drafts, kernels, and the operands that kernels make before they run."""
