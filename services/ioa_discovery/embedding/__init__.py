"""Vectors of texts: models, and the processes that run them."""
