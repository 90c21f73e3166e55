"""Rewrites that make implicit parts of texts explicit: sums, wide types, fill values, semirings,
masks."""
