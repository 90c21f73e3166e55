"""The store of tuned plans: keys, records, the file, look-ups, and the journal of jobs."""
