"""Search: chunks by their words and by their meaning, on both databases under one contract."""
