"""The queue of uploads: what waits, whose turn it is, and what a restart finds of it."""
