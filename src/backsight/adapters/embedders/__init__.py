"""Embedders: models that turn texts into vectors, one provider per file."""
