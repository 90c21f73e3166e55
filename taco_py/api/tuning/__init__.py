"""Plans that are searched for and timed, and the store that calls find them in."""
