"""What a strategy's closed trades teach: evidence, lessons, and whether memory helps."""
