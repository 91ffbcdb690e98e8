"""Figures as SVG elements that stand in an HTML page: no file, no network, legible on light and dark ground."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from io import StringIO

import matplotlib.style
from matplotlib.figure import Figure

_INK = "#010203"  # of page.mplstyle; no figure uses it for anything else: it becomes the colour of the page's text


@contextmanager
def page_style() -> Iterator[None]:
    """Context manager and decorator: the toolkit's style, with text and axes in the colour of the page's text."""
    with matplotlib.style.context(["fgrpo.figures.fgrpo", "fgrpo.figures.page"], after_reset=True):
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
