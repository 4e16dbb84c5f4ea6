"""The outside world, one party a file."""
