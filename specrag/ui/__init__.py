"""The page: pure functions from a trace to HTML and figures, and the Gradio wiring around them."""
