"""Other people's files, read into facts: one format a file."""
