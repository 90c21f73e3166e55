"""The command-line tool: flags, data, and what is printed, written and timed."""
