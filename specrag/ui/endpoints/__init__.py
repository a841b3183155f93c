"""What a program can call: every action of the page has an endpoint with a name, types and an example."""

from specrag.startup import Startup
from specrag.ui.endpoints import again, asking, collections, documents, evaluations, runs
from specrag.ui.endpoints.calling import serve

__all__ = ["wire"]


def wire(startup: Startup) -> None:
    """Named endpoints for programs, under the same checks as the page."""
    for topic in (asking, runs, again, documents, collections, evaluations):
        for function in topic.ENDPOINTS:
            serve(startup, function)
