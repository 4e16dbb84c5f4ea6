"""The pages: what the agent saw, what it knew then, and how it is going."""
