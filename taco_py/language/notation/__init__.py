"""Index notation: the user's statement, independent of formats, sizes and loops."""
