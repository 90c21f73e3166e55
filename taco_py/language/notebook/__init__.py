"""HTML that notebooks show for objects, built from text alone."""
