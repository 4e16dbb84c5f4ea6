"""Reflection: find patterns in a strategy's closed trades, write lessons from them, and test whether memory helps."""
