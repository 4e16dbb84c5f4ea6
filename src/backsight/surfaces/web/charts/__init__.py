"""Charts as SVG, one a file: each is drawn for a wide and for a narrow page, and has a table of the same figures."""
