"""One page a file: each asks operations, and hands their answers to a template."""
