"""Derivatives of index notation, as index notation."""
