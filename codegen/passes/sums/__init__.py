"""Passes over sums to one number: side by side, and in a type of more digits."""
