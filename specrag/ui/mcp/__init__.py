"""The program as a tool of other programs: ask, search and documents over MCP, if the settings want it."""

from specrag.ui.mcp.serving import Served, served

__all__ = ["Served", "served"]
