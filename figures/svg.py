"""Figures as SVG elements that stand in an HTML page: no file, no network, legible on light and dark ground."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from io import StringIO

import matplotlib
from matplotlib.figure import Figure

from fgrpo.figures.style import figure_style

_INK = "#010203"  # no figure uses it for anything else: it becomes the colour of the page's text
_PAGE = {
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
    "grid.color": "#88888855",
    "legend.labelcolor": _INK,
    "svg.hashsalt": "fgrpo",  # the same figure gives the same bytes
}


@contextmanager
def page_style() -> Iterator[None]:
    """Context manager and decorator: the toolkit's style, with text and axes in the colour of the page's text."""
    with figure_style(), matplotlib.rc_context(_PAGE):
        yield


@page_style()
def inline_svg(figure: Figure, name: str, *, title: str, description: str) -> str:
    """A figure as one <svg> element with alternative text, whose text and axes have the colour of the text around it.

    Args:
        figure: A figure drawn in `page_style`.
        name: Letters and digits that no other figure of the page has: ids inside begin with it.
        title: Its name.
        description: Alternative text for readers who do not see it.

    Returns:
        The element, as wide as its place; texts stay texts.
    """
    text = StringIO()
    figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    drawing = re.sub(r"^.*?(?=<svg)", "", text.getvalue(), flags=re.DOTALL)
    drawing = re.sub(r'\bid="', f'id="{name}-', drawing)
    drawing = re.sub(r"url\(#", f"url(#{name}-", drawing)
    drawing = re.sub(r'href="#', f'href="#{name}-', drawing)
    drawing = drawing.replace(_INK, "currentColor")
    size = re.search(r'viewBox="[^"]*"', drawing)
    assert size is not None  # matplotlib writes one
    opening = (
        f'<svg role="img" aria-labelledby="{name}-title {name}-text" {size[0]} xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink"><title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-text">{escape(description)}</desc>'
    )
    return re.sub(r"<svg[^>]*>", lambda _: opening, drawing, count=1)
