"""The figures that can be drawn, apart from the drawing: the command line names them without importing it."""

from enum import IntEnum


class FigureNumber(IntEnum):
    """Figures by their number in version 1 of the paper."""

    TWO = 2
    FOUR = 4
    FIVE = 5
