"""Places of extrema: the value and its place carried through one loop."""
