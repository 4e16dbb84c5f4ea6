"""The text of an agent's prompt: each section is a pure function of stored rows and an instant."""
