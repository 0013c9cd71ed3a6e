"""Past experience, kept to learn from again."""
