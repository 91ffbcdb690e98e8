"""A figure as a notebook shows it: its size, its ground, its words, and the same bytes each time."""

from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from fgrpo.figures import Picture, figure_2, figure_2_data
from fgrpo.figures.svg import page_style


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(imread(BytesIO(png), format="png"))


def test_a_notebook_gets_the_picture_with_its_words() -> None:
    picture = Picture(Figure(figsize=(3, 2)), "A frame without anything in it.")
    data, metadata = picture._repr_mimebundle_()
    assert data["text/plain"] == repr(picture) == "A frame without anything in it."
    assert metadata == {"image/png": {"alt": data["text/plain"], "width": 288, "height": 192}}
    assert pixels(b64decode(data["image/png"])).shape[:2] == (288, 432)  # 144 dots per inch


@pytest.mark.parametrize("style", [page_style, None])
def test_the_ground_is_white_and_opaque(style: object) -> None:
    if style is None:
        figure = figure_2(figure_2_data())
    else:
        with page_style():  # has none of its own
            figure = Figure()
            figure.add_subplot().plot([0, 1])
    corner = pixels(Picture(figure, "A line.").png())[2, 2]
    assert corner.tolist() == [1.0] * len(corner)


def test_equal_figures_give_equal_bytes() -> None:
    first, second = (Picture(figure_2(figure_2_data()), "Curves.").png() for _ in range(2))
    assert first == second
    assert b"tEXt" not in first  # no version of a library
