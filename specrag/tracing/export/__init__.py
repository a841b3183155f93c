"""A run as a file for others, and such a file as a run again."""
