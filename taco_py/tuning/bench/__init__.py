"""The store of tuned plans as users see it: asked by the texts and operands of calls."""
