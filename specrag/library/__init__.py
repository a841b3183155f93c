"""The collections: who sees which, who may change them, when they end, and how they travel as a file."""
