"""Readers of what others may have written: no text of it is run, and what is wrong is told."""
