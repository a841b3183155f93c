"""The settings in a trace as a person reads them: one flat list, in words, whatever an import may hold."""

import json
from collections.abc import Mapping
from typing import Any, Final

from specrag.config import PRESETS, Settings
from specrag.ui.markup import UNKNOWN

_NAMES: Final = {
    "retrieve": "passages to retrieve (K)",
    "drafts": "drafts (m)",
    "passages_per_draft": "passages per draft (k)",
    "decision": "decision",
    "preset": "score weights",
    "focus_sentences": "evidence focus (sentences)",
    "pool": "equal answers add up",
    "grounded": "groundedness",
    "hops": "most hops",
    "documents": "only these documents",
}
_LONGEST: Final = 200
_MOST: Final = 200
_PLACES: Final = frozenset({"drafter", "verifier", "embedder", "collection", "documents"})
"""Said elsewhere, or of another machine: no departure from a default."""


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings by name; those within others, as the weights are, with a dot between the names."""
    flat: dict[str, Any] = {}
    for name, value in list(config.items())[:_MOST]:
        if isinstance(value, Mapping):
            inner = list(value.items())[:_MOST]
            flat |= {f"{_short(name)}.{_short(key)}": inside for key, inside in inner}
        else:
            flat[_short(name)] = value
    return flat


def changed_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that differ from what this program takes if nobody sets them."""
    usual = settings_of(_defaults())
    return {
        name: value
        for name, value in settings_of(config).items()
        if name not in _PLACES and name in usual and value != usual[name]
    }


def setting_name(name: str) -> str:
    """A setting in words."""
    group, dot, inner = name.partition(".")
    if dot and group == "weights":
        return f"weight of {inner.replace('_', '-')}"
    return _NAMES.get(name, name.replace("_", " "))


def setting_text(value: Any) -> str:
    """A value in words, short."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str | int):
        return _short(value)
    try:
        return _short(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return UNKNOWN


def _defaults() -> dict[str, Any]:
    fields = {
        name: field.get_default(call_default_factory=False)
        for name, field in Settings.model_fields.items()
        if field.default_factory is None
    }
    return {**fields, "weights": PRESETS["default"]}


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
