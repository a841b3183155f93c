"""Choose one: the ways from a question to an answer. All are streams of the same events."""
