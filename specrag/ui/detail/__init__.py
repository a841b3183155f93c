"""One run taken apart: pure functions from a stored trace, or its events, to what the page shows of it.

Scores and their arithmetic, spans, the perspective map, prompts as they were sent, the film of a replay, and
the run decided again under other settings. `tabs/detail.py` places and wires them; nothing here knows Gradio.
"""
