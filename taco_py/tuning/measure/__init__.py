"""Timing that can be trusted on a machine that others use too; it knows no plans."""
