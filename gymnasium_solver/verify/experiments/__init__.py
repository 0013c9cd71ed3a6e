"""Trainings that look for something better, or test that it is."""
