"""Measuring what is true: accuracy, latency and cost of the pipelines on the same work."""
