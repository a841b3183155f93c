"""Layout and wiring of the page's tabs; what they show is computed in `cards` and `figures`."""
