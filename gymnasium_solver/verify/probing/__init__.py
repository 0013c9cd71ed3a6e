"""Cheap experiments that settle what a run's files leave open."""
