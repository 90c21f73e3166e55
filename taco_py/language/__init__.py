"""What a computation says: notation, formats, derivatives, what types and formats allow."""
