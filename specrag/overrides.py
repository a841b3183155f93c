"""Settings with some of them replaced, by name, under the same checks as at the start.

Two levels: a whole `Rag` may replace everything; one run may replace what no loaded part depends on.
"""

import difflib
from collections.abc import Mapping
from typing import Any, Final

from specrag.config import PRESETS, ScoreWeights, Settings, load_settings
from specrag.errors import UsageError

_LOADED: Final = frozenset({
    "home", "host", "port", "drafter", "verifier", "embedder", "precision", "threads", "concurrent_runs",
    "chunk_tokens", "chunk_overlap", "max_file_mb", "max_pages", "max_characters", "abandoned_s",
    "max_unpacked_mb", "max_archive_files", "max_waiting_files", "read_timeout_s", "read_memory_mb", "ocr",
    "keep_originals", "access", "login", "visitor_days", "max_collections", "reranker",
    "drafter_url", "drafter_key", "drafter_tokenizer", "verifier_url", "verifier_key", "verifier_tokenizer",
    "judge", "judge_url", "judge_key", "server_ca", "connect_timeout_s", "stall_timeout_s", "max_runs",
    "max_imported_mb", "max_question_characters", "otlp_endpoint", "otlp_headers", "otlp_texts", "mcp",
    "chroma_url", "chroma_tenant", "chroma_database", "chroma_token", "chroma_timeout_s",
})  # fmt: skip
"""Settings that weights, servers, store or queue were built from."""


def with_overrides(settings: Settings, overrides: Mapping[str, Any]) -> Settings:
    """Settings in which `overrides` win. A preset brings its weights.

    Weights may be given in part; the others are those of the preset that is given, or else stay.

    Raises:
        UsageError: a name is unknown, or a value is out of range.
    """
    overrides = {name: value for name, value in overrides.items() if value is not None}
    if not overrides:
        return settings
    _refuse_unknown(overrides)
    values = {name: getattr(settings, name) for name in Settings.model_fields}
    if "preset" in overrides:
        del values["weights"]
    values |= overrides
    if isinstance(overrides.get("weights"), Mapping):
        values["weights"] = {**_base(settings, overrides.get("preset")), **overrides["weights"]}
    made = load_settings({}, **values)
    # what nobody set counts as not set in the copy either
    made.model_fields_set.intersection_update(settings.model_fields_set | overrides.keys())
    return made


def for_one_run(settings: Settings, overrides: Mapping[str, Any]) -> Settings:
    """The same for a single run.

    Raises:
        UsageError: as above, or a setting belongs to what is loaded already.
    """
    loaded = sorted(_LOADED & overrides.keys())
    if loaded:
        raise UsageError(
            f"The setting {loaded[0]} cannot differ from run to run; set it where the program starts."
        )
    return with_overrides(settings, overrides)


def _base(settings: Settings, preset: Any) -> Mapping[str, float]:
    """The weights that weights in part are laid over; a preset that is none is refused with the settings."""
    known = next((weights for name, weights in PRESETS.items() if name == preset), None)
    return settings.weights.model_dump() if known is None else known


def _refuse_unknown(overrides: Mapping[str, Any]) -> None:
    weights = overrides.get("weights")
    inner = weights.keys() if isinstance(weights, Mapping) else ()
    for name, known in [
        *((name, Settings.model_fields) for name in overrides),
        *((name, ScoreWeights.model_fields) for name in inner),
    ]:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else "."
            raise UsageError(f"{name} is not a setting of specrag{hint}")
