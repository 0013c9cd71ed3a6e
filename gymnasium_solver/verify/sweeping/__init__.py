"""Search of a space of configs."""
