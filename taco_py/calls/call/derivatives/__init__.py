"""Derivatives of texts over operands: vector-Jacobian and Jacobian-vector products."""
