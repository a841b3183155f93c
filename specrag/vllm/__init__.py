"""Model servers of one's own: which vLLM commands a pair of models needs, and the processes that run them.

vLLM itself lives in another Python environment, because it pins its own torch; nothing here imports it.
"""
