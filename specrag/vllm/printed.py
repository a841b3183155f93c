"""A plan as text: commands to paste into a shell, each flag with its reason, or one JSON document."""

import shlex
from collections.abc import Container, Iterator
from typing import Any

from specrag.vllm.flags import Role
from specrag.vllm.plan import ELSEWHERE, Plan, ServerPlan

SCHEMA = "specrag.vllm/1"


def as_shell(plan: Plan, *, python: str, keyed: Container[Role]) -> str:
    """All commands, with the reasons above them, and the settings of the app. `keyed` roles want a key."""
    parts = [_server(server, python, keyed=server.role in keyed) for server in plan.servers]
    if plan.in_turn:
        parts.insert(0, "# They share a GPU: start each when the one before it answers /health.")
    return "\n\n".join([*parts, _app(plan)]) + "\n"


def as_dict(plan: Plan, *, python: str) -> dict[str, Any]:
    """The document of `--json`, without keys."""
    return {
        "schema": SCHEMA,
        "servers": [
            {
                "role": server.role,
                "model": server.model.source,
                "served_name": server.model.name,
                "url": server.url,
                "command": list(server.command(python)),
                "environment": {variable.name: variable.value for variable in server.environment},
                "key_setting": server.key_setting,
            }
            for server in plan.servers
        ],
        "variables": plan.variables,
        "elsewhere": plan.elsewhere,
        "in_turn": plan.in_turn,
    }


def exports(plan: Plan) -> Iterator[str]:
    """The settings of the app as lines of a shell, and in comments what differs on another machine."""
    yield from (f"export {name}={shlex.quote(value)}" for name, value in plan.variables.items())
    if plan.elsewhere:
        yield f"# For an app on another machine, with this one's name or address for {ELSEWHERE}:"
        yield from (f"#   export {name}={value}" for name, value in plan.elsewhere.items())


def _server(server: ServerPlan, python: str, *, keyed: bool) -> str:
    why = [f"#   {' '.join(flag.words)}: {flag.reason}" for flag in server.flags]
    why += [f"#   {variable.name}: {variable.reason}" for variable in server.environment]
    settings = [f"{variable.name}={shlex.quote(variable.value)}" for variable in server.environment]
    if keyed:
        settings.append(f'VLLM_API_KEY="${server.key_setting}"')
    words = server.command(python)
    lines = [" ".join(settings), shlex.join(words[:3])]
    lines += ["    " + " ".join(map(shlex.quote, flag.words)) for flag in server.arguments]
    return "\n".join([f"# The {server.role}, at {server.url}", *why, " \\\n".join(lines)])


def _app(plan: Plan) -> str:
    return "\n".join(["# The app, once they answer: these settings, then `python app.py`", *exports(plan)])
