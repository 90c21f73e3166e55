"""What may be chosen of a call's plan: axes of options; a point of the space is a plan's text."""
