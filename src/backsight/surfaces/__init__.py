"""Translation only: the command line, MCP and REST, all made from the operations."""
