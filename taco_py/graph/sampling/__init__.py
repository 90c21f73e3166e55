"""Which places of a value any reader looks at, and values computed there alone."""
