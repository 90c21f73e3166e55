"""Affine programs: statements in index notation with offsets, in sequence and under loops."""
