"""What things are and what follows from them: pure functions and frozen values, no input or output."""
