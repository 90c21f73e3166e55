"""Tuning tasks: what is tuned, as data that any process can make operands of."""
