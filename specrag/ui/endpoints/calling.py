"""How a function becomes an endpoint: arguments of the right types, and every refusal one sentence.

A program can send anything, so what it sends is checked against the type hints of the function, which are
also what gradio tells programs about it. A function gets the parts of the program and who calls.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, get_type_hints

import anyio.to_thread
import gradio as gr
from gradio.events import api
from pydantic import TypeAdapter, ValidationError

from specrag.build import Parts
from specrag.errors import SpecragError, UsageError
from specrag.library.visitors import Visitor
from specrag.pipelines.base import readable
from specrag.startup import Startup
from specrag.ui.who import visitor_of

Endpoint = Callable[..., Any]
"""`(parts, who, ...)`; everything after the first two comes from the program."""
_OURS: Final = 2


def serve(startup: Startup, function: Endpoint) -> None:
    """Make a function an endpoint under its own name; its docstring is what programs read about it."""
    told = Told(function)

    async def called(request: gr.Request, *values: Any) -> Any:
        if not startup.state.ready:
            raise gr.Error(startup.state.message, print_exception=False)
        try:
            who = visitor_of(request, startup.settings)
            return await told.call(startup.parts, who, values)
        except SpecragError as error:
            # what was sent may stand in the sentence, and half a letter can be sent to nobody
            raise gr.Error(readable(str(error)), print_exception=False) from error

    named: Any = called
    named.__name__, named.__doc__ = function.__name__, function.__doc__
    named.__signature__ = told.signature()
    named.__annotations__ = {name: item.annotation for name, item in named.__signature__.parameters.items()}
    api(named, api_name=function.__name__)


class Told:
    """A function with what programs have to know of it."""

    def __init__(self, function: Endpoint) -> None:
        hints = get_type_hints(function, include_extras=True)
        self._function = function
        self._returned = hints.get("return", Any)
        self._parameters = [
            item.replace(annotation=hints[item.name])
            for item in list(inspect.signature(function).parameters.values())[_OURS:]
        ]
        self._checks = [TypeAdapter(item.annotation) for item in self._parameters]

    def signature(self) -> inspect.Signature:
        """What gradio sees: the request, which it fills in itself, and the arguments of the program."""
        request = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=gr.Request)
        return inspect.Signature([request, *self._parameters], return_annotation=self._returned)

    def schema(self) -> dict[str, Any]:
        """The arguments as JSON schema."""
        known = zip(self._parameters, self._checks, strict=True)
        needed = [item.name for item in self._parameters if item.default is inspect.Parameter.empty]
        return {
            "type": "object",
            "properties": {item.name: check.json_schema() for item, check in known},
            "required": needed,
            "additionalProperties": False,
        }

    def ordered(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """Arguments by name in the order of the function; what is not given has its default.

        Raises:
            UsageError: one is unknown or missing.
        """
        names = [item.name for item in self._parameters]
        unknown = next((name for name in arguments if name not in names), None)
        if unknown is not None:
            raise UsageError(f"There is no argument {unknown[:40]}; there is {', '.join(names)}.")
        values = [arguments.get(item.name, item.default) for item in self._parameters]
        for name, value in zip(names, values, strict=True):
            if value is inspect.Parameter.empty:
                raise UsageError(f"The argument {name} is missing.")
        return tuple(values)

    async def call(self, parts: Parts, who: Visitor, values: tuple[Any, ...]) -> Any:
        """Check the values and call the function, a plain one in a thread.

        Raises:
            UsageError: a value has another type than it must have.
        """
        given = [
            self._checked(item.name, check, value)
            for item, check, value in zip(self._parameters, self._checks, values, strict=True)
        ]
        if asyncio.iscoroutinefunction(self._function):
            return await self._function(parts, who, *given)
        return await anyio.to_thread.run_sync(lambda: self._function(parts, who, *given))

    def _checked(self, name: str, check: TypeAdapter[Any], value: Any) -> Any:
        try:
            return check.validate_python(value, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise UsageError(f"The argument {name} cannot be used: {first['msg']}.") from error
