"""Whether sums have terms and entries are stored, asked in generated loops."""
