"""Who writes lessons, one party a file."""
