"""The score card of a solution."""
