"""Small files in the shapes that other programs write; the data are made up."""
