"""The figures that can be drawn, apart from the drawing: the command line names them without importing it."""

from enum import StrEnum


class FigureName(StrEnum):
    """Figures of the paper by their number in its version 1, the toolkit's own regime diagram, and all of them."""

    ONE = "1"
    TWO = "2"
    THREE = "3"
    FOUR = "4"
    FIVE = "5"
    REGIME = "regime"
    ALL = "all"
