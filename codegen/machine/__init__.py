"""What machines are: processors and GPUs as records, each number with its unit."""
