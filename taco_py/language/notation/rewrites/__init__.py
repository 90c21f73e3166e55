"""What texts leave unsaid, written out: sums, wide types, fill values, semirings, masks."""
