"""Search in the index of documents: keyword search and vector search, with one contract for both databases."""
