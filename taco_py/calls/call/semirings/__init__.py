"""Calls over semirings, under masks, as calls over numbers."""
