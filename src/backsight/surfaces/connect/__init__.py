"""`backsight connect`: enter this installation's MCP server in the configuration of an MCP client, and take it out."""
