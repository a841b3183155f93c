"""What a model reads of a passage that is the later part of a table."""

from dataclasses import replace

from specrag.prompts import direct_conversation, draft_conversation
from tests.ui_traces import PASSAGES


def test_rows_of_a_table_come_after_the_names_of_their_columns() -> None:
    """A row "Larkspur | 640" alone does not say what 640 is."""
    rows = replace(PASSAGES[0], text="Larkspur | 640", lead="Bike | Watt-hours")
    for conversation in (draft_conversation("How much?", [rows]), direct_conversation("How much?", [rows])):
        text = "".join(segment.text for turn in conversation.turns for segment in turn.segments)
        assert f"[1] {rows.title} ({rows.published_at})\nBike | Watt-hours\nLarkspur | 640\n" in text
