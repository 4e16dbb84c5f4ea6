"""Agents that are asked and remembered: their runs, their result cards, and what became of them."""
