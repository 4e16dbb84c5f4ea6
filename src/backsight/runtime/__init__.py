"""The loops that drive memory."""
