"""A model that judges the answers of an evaluation, beside the figures that are counted from words."""
