"""Results: their kinds and formats, limits of what they take, and how users get them."""
