"""Writes docs/figure_4.png, the picture of README and site: Figure 4 of a results folder in fewer pixels and colours.

Run as `make picture`, after `make reproduce`.
"""

import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from fgrpo.simulate.files import write_atomically

WIDTH = 1200
"""Pixels: sharp at the width of a page on a dense screen."""

COLOURS = 160


def picture(figure: Path) -> bytes:
    """The figure as a small PNG with an opaque white ground; its alternative text is kept."""
    with Image.open(figure) as image:
        text = PngInfo()
        text.add_text("Description", image.info["Description"])
        ground = Image.new("RGBA", image.size, "white")
        size = (WIDTH, round(WIDTH * image.height / image.width))
        small = (
            Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB").resize(size, Image.Resampling.LANCZOS)
        )
    content = BytesIO()
    small.quantize(COLOURS).save(content, format="png", optimize=True, pnginfo=text)
    return content.getvalue()


if __name__ == "__main__":
    write_atomically(Path(__file__).with_name("figure_4.png"), picture(Path(sys.argv[1], "figure_4.png")))
