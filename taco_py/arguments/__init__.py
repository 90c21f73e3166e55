"""What users pass: options, operands, keys of calls; and the results that they ask for."""
