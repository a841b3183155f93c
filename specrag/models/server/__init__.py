"""Models behind OpenAI-compatible servers, vLLM first of all: read `model.py`, then what it uses.

`access` is how to reach them, `http` and `faults` are requests and what goes wrong with them, `wire` reads
their answers and `scores` what follows from them, `probe` finds out what a server can do, `vocabulary` is
text to token ids and back, `pool` and `asking` are which server is asked, `writing` is one draft.
"""
