"""Source text, spans with carets, and the error family."""
