"""Tools by subject. Each module has `register(tools, place)`."""
