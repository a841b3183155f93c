"""How a function becomes an endpoint: arguments of the right types, and every refusal one sentence.

A program can send anything, so what it sends is checked against the type hints of the function, which are
also what gradio tells programs about it. A function gets the parts of the program and who calls.
"""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import anyio.to_thread
import gradio as gr
from gradio.events import api
from pydantic import TypeAdapter, ValidationError

from specrag.build import Parts
from specrag.errors import SpecragError, UsageError
from specrag.library.visitors import Visitor
from specrag.startup import Startup
from specrag.ui.who import visitor_of

Endpoint = Callable[..., Any]
"""`(parts, who, ...)`; everything after the first two comes from the program."""
_OURS = 2


def serve(startup: Startup, function: Endpoint) -> None:
    """Make a function an endpoint under its own name; its docstring is what programs read about it."""
    told = _Told(function)

    async def called(request: gr.Request, *values: Any) -> Any:
        if not startup.state.ready:
            raise gr.Error(startup.state.message, print_exception=False)
        try:
            who = visitor_of(request, startup.settings)
            return await told.call(startup.parts, who, values)
        except SpecragError as error:
            raise gr.Error(str(error), print_exception=False) from error

    named: Any = called
    named.__name__, named.__doc__ = function.__name__, function.__doc__
    named.__signature__ = told.signature()
    named.__annotations__ = {name: item.annotation for name, item in named.__signature__.parameters.items()}
    api(named, api_name=function.__name__)


class _Told:
    """A function with what programs have to know of it."""

    def __init__(self, function: Endpoint) -> None:
        hints = get_type_hints(function)
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
