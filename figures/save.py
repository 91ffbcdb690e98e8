"""Saving a figure with the data that it draws: PNG, PDF and CSV."""

import os
import re
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure
from pandas import DataFrame

from fgrpo.figures.style import figure_style
from fgrpo.simulate.files import write_atomically


@figure_style()
def save_figure(
    figure: Figure, folder: str | os.PathLike[str], name: str, *, data: DataFrame, description: str
) -> list[Path]:
    """Write `name`.png (300 dpi), `name`.pdf and `name`.csv (the drawn data) into a folder.

    Each file appears whole or not at all, and a failure while writing leaves an earlier one as it was. No date is
    stored: with the same versions of the libraries the same figure gives the same bytes.

    Args:
        figure: The figure, saved at its own size.
        folder: Where to write; made if it is not there.
        name: Name of the files without suffix, such as 'figure_2'.
        data: The drawn data, floats written with all their digits.
        description: Alternative text, one sentence: stored as the PNG's Description and the PDF's Subject.

    Returns:
        Paths of the PNG, the PDF and the CSV file, in this order.

    Raises:
        ValueError: If `name` has other characters than letters, digits, _ and -.
        OSError: If the folder cannot be made or written; one line that names it, with the errno of the cause.
    """
    if not re.fullmatch(r"[\w-]+", name):
        raise ValueError(f"name must consist of letters, digits, _ and -, got {name!r}: pass a name such as 'figure_2'")
    folder = Path(folder)
    png, pdf = BytesIO(), BytesIO()
    figure.savefig(png, format="png", metadata={"Title": name, "Description": description})
    figure.savefig(pdf, format="pdf", metadata={"Title": name, "Subject": description, "CreationDate": None})
    contents = {
        ".png": png.getvalue(),
        ".pdf": pdf.getvalue(),
        ".csv": data.to_csv(index=False, lineterminator="\n").encode(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            error.errno, f"cannot make the folder {folder} ({error.strerror}): choose another --out"
        ) from error
    for suffix, content in contents.items():
        write_atomically(folder / f"{name}{suffix}", content)
    return [folder / f"{name}{suffix}" for suffix in contents]
