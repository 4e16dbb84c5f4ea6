"""What an agent is shown: sections and segments, each a pure function of rows and an instant."""
