"""Recall over arrays: the same answers as the plain definitions beside it, for a million episodes at once."""
