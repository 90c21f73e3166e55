"""The statement of a computation: notation, formats, derivatives, and rules of types and
formats."""
