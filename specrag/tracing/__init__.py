"""What happened in a run: the fold of its events, and where traces are kept."""
