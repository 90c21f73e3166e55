"""One kernel: from an assignment over loop nests to the source that is compiled."""
