"""Reflectors: adapters that write lessons."""
