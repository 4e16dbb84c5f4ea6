"""What several operations share, one subject a file: above the store, below the operations."""
