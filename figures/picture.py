"""A figure as a notebook shows it: a PNG on opaque ground, with its alternative text."""

from base64 import b64encode
from collections.abc import Container
from io import BytesIO
from typing import Any

from matplotlib.figure import Figure

from fgrpo.figures.style import figure_style

_DOTS_PER_INCH = 144
_PIXELS_PER_INCH = 96  # of a browser, which then draws the figure at its size in print


class Picture:
    """A figure that a notebook displays if it is the last thing in a cell.

    No pyplot, no magic line. The ground is white and opaque, so that it reads on a dark page; the text is the picture's
    `alt` text and its plain-text form. No date or version is stored: equal figures give equal pictures.

    Args:
        figure: The figure, shown at its own size.
        alt_text: One sentence for readers who do not see it.
    """

    def __init__(self, figure: Figure, alt_text: str) -> None:
        self.figure = figure
        self.alt_text = alt_text

    def __repr__(self) -> str:
        """The alternative text."""
        return self.alt_text

    @figure_style()
    def png(self) -> bytes:
        """The picture as PNG, twice as fine as a screen's points."""
        file = BytesIO()
        self.figure.savefig(
            file, format="png", dpi=_DOTS_PER_INCH, facecolor="white", metadata={"Software": None, "Title": None}
        )
        return file.getvalue()

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What Jupyter displays: data and metadata by type of content; the arguments may be ignored."""
        width, height = (round(inches * _PIXELS_PER_INCH) for inches in self.figure.get_size_inches())
        data = {"image/png": b64encode(self.png()).decode("ascii"), "text/plain": self.alt_text}
        return data, {"image/png": {"alt": self.alt_text, "width": width, "height": height}}
