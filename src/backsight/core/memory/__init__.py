"""The five kinds of memory."""
