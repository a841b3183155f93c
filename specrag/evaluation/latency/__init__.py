"""How fast the pipelines are on equal hardware, and what that costs: shapes of models, not their answers."""
