"""A dropdown that hands on what the page sends, whatever it offers itself.

Gradio refuses a value that is not among the choices before any handler of ours runs, with a message of its
own. An open page may well send one: a document that was deleted meanwhile, or a collection after the server
has started anew, which knows only the first choices again. What may be read is the library's to say, so the
handlers ask there, and answer in a sentence.
"""

from typing import Any, ClassVar

import gradio as gr
from gradio.component_meta import ComponentMeta


class _Meta(ComponentMeta):
    """Makes the class only; Gradio's own would write a file of type hints beside this one at every import."""

    def __new__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> "_Meta":  # noqa: PYI034
        return type.__new__(cls, name, bases, attrs)


class Choice(gr.Dropdown, metaclass=_Meta):
    """A dropdown whose handlers look at the value themselves; it may be anything that JSON can say."""

    is_template: ClassVar[bool] = True
    """For the browser it is the dropdown that it comes from."""

    def preprocess(self, payload: Any) -> Any:
        """What was sent."""
        return payload
