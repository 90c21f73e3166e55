"""Texts as statements in single assignment, with the types, shapes and kinds of what they make."""
