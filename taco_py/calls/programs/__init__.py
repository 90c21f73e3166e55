"""Calls of affine programs: `tp.program`, statements with time loops and offsets."""
