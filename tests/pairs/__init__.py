"""Pairs and triples of features, each right or refused for a reason that a table has."""
