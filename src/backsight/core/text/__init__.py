"""Text: how many tokens it takes, its stems, and how text from outside is quoted safely."""
