"""Documents: workspace files and written-up store rows, cut into chunks that a search cites to the line."""
