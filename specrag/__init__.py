"""Speculative RAG you can watch: a small drafter proposes, a verifier reads every draft in one pass.

Importing this package loads no model library; each heavy library enters when a file that needs it is used.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("specrag")
except PackageNotFoundError:  # run from a checkout, as `python app.py` does
    __version__ = "0.1.0"

__all__ = ["__version__"]
