"""Hooks for other libraries, so that their training is a run here while it goes on."""
