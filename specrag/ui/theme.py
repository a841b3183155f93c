"""How the page looks to Gradio: system fonts and the palette of `assets/specrag.css`.

Colours exist once, as custom properties of that style sheet, and Gradio's own variables only point at them,
so light and dark follow by themselves. Plotly cannot read custom properties; the constants below repeat the
light values for it (a test keeps them equal), and `plot_css` gives its bars back to the properties.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gradio.themes import Base

CSS_PATH: Final = Path(__file__).parents[2] / "assets" / "specrag.css"

HUES: Final = ("#2a69d6", "#0a7a6b", "#8d48c9", "#b54a12", "#b63a6d", "#527418", "#0a769c", "#786733")
STEP: Final = "#5b6470"
GOLD: Final = "#b7820b"
PLOT_TEXT: Final = "#7a828b"
"""Between the two backgrounds: about 4:1 on either, which large or plain labels need at least."""

_PLOTS: Final = ("#sr-plot", "#sr-detail-plot")

_SANS = ("ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "Liberation Mono", "monospace")

_VARIABLES = {
    "body_background_fill": "var(--sr-page)",
    "body_text_color": "var(--sr-text)",
    "body_text_color_subdued": "var(--sr-muted)",
    "background_fill_primary": "var(--sr-surface)",
    "background_fill_secondary": "var(--sr-page)",
    "block_background_fill": "var(--sr-surface)",
    "block_border_color": "var(--sr-border)",
    "block_border_width": "1px",
    "block_radius": "14px",
    "block_shadow": "none",
    "block_label_background_fill": "var(--sr-surface)",
    "block_label_text_color": "var(--sr-muted)",
    "block_title_text_color": "var(--sr-muted)",
    "block_info_text_color": "var(--sr-muted)",
    "border_color_primary": "var(--sr-border)",
    "border_color_accent": "var(--sr-focus)",
    "border_color_accent_subdued": "var(--sr-border)",
    "color_accent": "var(--sr-focus)",
    "color_accent_soft": "var(--sr-track)",
    "panel_background_fill": "var(--sr-surface)",
    "panel_border_color": "var(--sr-border)",
    "input_background_fill": "var(--sr-surface)",
    "input_background_fill_focus": "var(--sr-surface)",
    "input_border_color": "var(--sr-control)",
    "input_border_color_focus": "var(--sr-focus)",
    "input_placeholder_color": "var(--sr-muted)",
    "input_shadow": "none",
    "input_shadow_focus": "0 0 0 2px var(--sr-focus)",
    "button_border_width": "1px",
    "button_primary_background_fill": "var(--sr-text)",
    "button_primary_background_fill_hover": "var(--sr-muted)",
    "button_primary_border_color": "var(--sr-text)",
    "button_primary_text_color": "var(--sr-surface)",
    "button_primary_text_color_hover": "var(--sr-surface)",
    "button_secondary_background_fill": "var(--sr-surface)",
    "button_secondary_background_fill_hover": "var(--sr-track)",
    "button_secondary_border_color": "var(--sr-control)",
    "button_secondary_text_color": "var(--sr-text)",
    "button_secondary_text_color_hover": "var(--sr-text)",
    "button_cancel_background_fill": "var(--sr-surface)",
    "button_cancel_background_fill_hover": "var(--sr-bad-soft)",
    "button_cancel_border_color": "var(--sr-control)",
    "button_cancel_text_color": "var(--sr-bad)",
    "button_cancel_text_color_hover": "var(--sr-bad)",
    "checkbox_background_color": "var(--sr-surface)",
    "checkbox_background_color_selected": "var(--sr-focus)",
    "checkbox_border_color": "var(--sr-control)",
    "checkbox_border_color_selected": "var(--sr-focus)",
    "checkbox_label_background_fill": "var(--sr-surface)",
    "checkbox_label_background_fill_hover": "var(--sr-track)",
    "checkbox_label_background_fill_selected": "var(--sr-track)",
    "checkbox_label_text_color": "var(--sr-text)",
    "checkbox_label_text_color_selected": "var(--sr-text)",
    "slider_color": "var(--sr-focus)",
    "loader_color": "var(--sr-focus)",
    "link_text_color": "var(--sr-focus)",
    "link_text_color_hover": "var(--sr-text)",
    "link_text_color_visited": "var(--sr-focus)",
    "link_text_color_active": "var(--sr-focus)",
    "code_background_fill": "var(--sr-track)",
    "stat_background_fill": "var(--sr-track)",
    "table_border_color": "var(--sr-border)",
    "table_even_background_fill": "var(--sr-surface)",
    "table_odd_background_fill": "var(--sr-page)",
    "table_row_focus": "var(--sr-track)",
    "table_text_color": "var(--sr-text)",
    "error_background_fill": "var(--sr-bad-soft)",
    "error_border_color": "var(--sr-bad)",
    "error_text_color": "var(--sr-bad)",
    "error_icon_color": "var(--sr-bad)",
}


_SAME_IN_DARK = frozenset({"block_border_width", "block_radius", "button_border_width", "color_accent"})
"""Variables of which Gradio knows no dark twin, and widths, which need none."""


def theme() -> "Base":
    """Gradio's base theme with our palette; it asks no other host for fonts."""
    from gradio import themes

    dark = {f"{name}_dark": value for name, value in _VARIABLES.items() if name not in _SAME_IN_DARK}
    base = themes.Base(font=_SANS, font_mono=_MONO, radius_size="lg")
    return base.set(**_VARIABLES, **dark)


def plot_css() -> str:
    """Rules by which the bars of the waterfalls follow the theme: the colour that Plotly wrote tells them.

    The outline keeps a faint bar apart from the ground, whichever that is.
    """
    return "\n".join(_plot_rules())


def _plot_rules() -> Iterator[str]:
    names = {**{f"hue-{number}": colour for number, colour in enumerate(HUES, 1)}, "step": STEP}
    for name, colour in names.items():
        red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
        bars = ", ".join(f'{plot} .point path[style*="rgb({red}, {green}, {blue})"]' for plot in _PLOTS)
        yield f"{bars} {{ fill: var(--sr-{name}) !important; stroke: var(--sr-{name}) !important; }}"
    yield f"{', '.join(f'{plot} .point path' for plot in _PLOTS)} {{ stroke-width: 1px !important; }}"
