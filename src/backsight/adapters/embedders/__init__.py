"""Embedders: texts to vectors, one party a file."""
