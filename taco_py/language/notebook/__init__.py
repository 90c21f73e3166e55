"""What notebooks show of objects: HTML, made of text alone."""
