"""What is shown of an answer: its brief form, the same for a terminal, a program and a model."""
