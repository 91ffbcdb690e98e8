"""Saving: three files or none, the same bytes each time, one clear line when it cannot be done."""

import errno
import math
import os

import matplotlib
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from fgrpo.figures import figure_style, save_figure

DATA = pd.DataFrame({"group_size": [1, 2, 131072], "probability": [0.0, 0.1 + 0.2, math.pi * 1e-300]})
DESCRIPTION = "A line from nought to one."


@pytest.fixture
def figure() -> Figure:
    with figure_style():
        figure = Figure(figsize=(3.0, 2.0))
        figure.add_subplot(title="title").plot([0, 1], [0, 1])
    return figure


def save(figure, folder, name="line"):
    return save_figure(figure, folder, name, data=DATA, description=DESCRIPTION)


def test_writes_three_files_and_leaves_nothing_else(figure, tmp_path):
    folder = tmp_path / "made" / "on the way"
    paths = save(figure, folder)
    assert paths == [folder / "line.png", folder / "line.pdf", folder / "line.csv"]
    assert sorted(folder.iterdir()) == sorted(paths)


def test_png_has_print_resolution_and_the_description(figure, tmp_path):
    with Image.open(save(figure, tmp_path)[0]) as image:
        assert image.size == (900, 600)
        assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
        assert image.text["Description"] == DESCRIPTION
        assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)


def test_pdf_has_the_description_no_date_and_true_type_fonts(figure, tmp_path):
    content = save(figure, tmp_path)[1].read_bytes()
    assert f"/Subject ({DESCRIPTION})".encode() in content
    assert b"/CreationDate" not in content
    assert b"/FontFile2" in content
    assert b"/Type3" not in content


def test_csv_gives_the_data_back_to_the_last_digit(figure, tmp_path):
    header, *rows = save(figure, tmp_path)[2].read_text().splitlines()
    assert header == "group_size,probability"
    assert [(int(size), float(value)) for size, value in (row.split(",") for row in rows)] == list(
        DATA.itertuples(index=False, name=None)
    )


def test_same_figure_gives_the_same_bytes_whatever_the_users_settings(figure, tmp_path):
    first = [path.read_bytes() for path in save(figure, tmp_path / "a")]
    with matplotlib.rc_context({"savefig.dpi": 50, "pdf.fonttype": 3, "savefig.bbox": "tight"}):
        second = [path.read_bytes() for path in save(figure, tmp_path / "b")]
    assert first == second


@pytest.mark.parametrize("below", ["", "inside"])
def test_folder_that_is_a_file(figure, tmp_path, below):
    blocked = tmp_path / "results"
    blocked.write_text("kept")
    with pytest.raises(OSError, match=r"cannot make the folder .*results.*choose another --out") as caught:
        save(figure, blocked / below)
    assert caught.value.errno in (errno.EEXIST, errno.ENOTDIR)
    assert "\n" not in str(caught.value)
    assert blocked.read_text() == "kept"


def test_full_disk_keeps_the_earlier_files_and_leaves_no_half_ones(figure, tmp_path, monkeypatch):
    before = {path: path.read_bytes() for path in save(figure, tmp_path)}

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    figure.axes[0].set_title("changed")
    with pytest.raises(OSError, match="No space left on device") as caught:
        save(figure, tmp_path)
    assert caught.value.errno == errno.ENOSPC
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "line.png", "../line"])
def test_name_must_be_plain(figure, tmp_path, name):
    with pytest.raises(ValueError, match="name must consist of letters, digits, _ and -"):
        save(figure, tmp_path, name)
    assert not list(tmp_path.iterdir())
