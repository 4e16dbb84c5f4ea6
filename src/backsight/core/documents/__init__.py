"""Documents: what is written down, found again to the line."""
