"""Which memories come to mind, and why."""
