"""Brokers: one venue a file, the simulated one among them."""
