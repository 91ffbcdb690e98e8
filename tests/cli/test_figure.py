"""fgrpo figure: what it draws from what is there, and what it says where something is lacking."""

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from fgrpo.cli import main
from fgrpo.drawing import Material, draw_figures
from fgrpo.figure_name import FigureName
from reference.simulated_results import made_up_runs, store_results

NAMES = [name for name in FigureName if name != FigureName.ALL]
FILES = {name if name == FigureName.REGIME else f"figure_{name}" for name in NAMES}
FROM_THEORY = FILES - {"figure_4"}


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["figure", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("fgrpo: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    return captured.err


def drawn_in(folder: Path) -> set[str]:
    """Names of the figures in a folder, each with its three files."""
    names = {path.stem for path in folder.glob("*.png")}
    for name in names:
        assert (folder / f"{name}.pdf").is_file()
        assert (folder / f"{name}.csv").is_file()
        with Image.open(folder / f"{name}.png") as image:
            assert image.text["Description"].endswith(".")
            assert image.convert("RGBA").getpixel((0, 0)) == (255, 255, 255, 255)  # reads on a dark page as well
    return names


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    others = made_up_runs("hu2025", retained={2: 0.9})
    store_results(pd.concat([made_up_runs(), made_up_runs(steps=4000), others]), folder)
    return folder


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> dict[str, pd.DataFrame]:
    """Data of the figures that are drawn, under their names, in place of files, which take a second each."""
    kept: dict[str, pd.DataFrame] = {}

    def keep(figure: Figure, folder: Path, name: str, *, data: pd.DataFrame, description: str) -> list[Path]:
        kept[name] = data
        return [Path(folder, name)]

    monkeypatch.setattr("fgrpo.figures.save_figure", keep)
    return kept


@pytest.fixture
def counts(tmp_path: Path) -> str:
    path = tmp_path / "counts.csv"
    path.write_text("prompt,samples,correct\na,8,2\nb,8,2\nc,8,8\n")
    return str(path)


def test_figure_2_needs_no_results(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["figure", "2", "--out", str(tmp_path)]) == 0
    assert drawn_in(tmp_path) == {"figure_2"}
    paths = capsys.readouterr().out.splitlines()
    assert paths == [str(tmp_path / f"figure_2{suffix}") for suffix in (".png", ".pdf", ".csv")]


def test_figure_4_without_results_says_how_to_get_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "run" in fails(capsys, "4", "--out", str(tmp_path))


def test_figure_4_is_drawn_from_stored_results(sweep: Path, tmp_path: Path) -> None:
    assert main(["figure", "4", "--out", str(tmp_path), "--results", str(sweep)]) == 0
    drawn = pd.read_csv(tmp_path / "figure_4.csv")
    assert set(drawn["panel"]) == {"sweep", "final", "long"}
    assert set(drawn["reading"]) == {"figure_matching"}
    with Image.open(tmp_path / "figure_4.png") as image:
        assert "below 1/2 for group sizes 512 without the focal weight" in image.text["Description"]


def test_all_without_results_names_what_it_leaves_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["figure", "all", "--out", str(tmp_path)]) == 0
    assert drawn_in(tmp_path) == FROM_THEORY
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 3 * len(FROM_THEORY)
    assert captured.err.startswith("fgrpo: not drawn: figure 4 (a results folder must hold the file sweep.parquet")
    assert captured.err.count("\n") == 1


def test_all_with_results_draws_all(
    capsys: pytest.CaptureFixture[str], sweep: Path, saved: dict[str, pd.DataFrame]
) -> None:
    assert main(["figure", "all", "--out", str(sweep), "--group-size", "16"]) == 0
    assert saved.keys() == FILES
    assert capsys.readouterr().err == ""
    regime = saved["regime"]
    assert set(regime["panel"]) == {"regimes", "risk", "sweep"}
    assert set(regime.loc[regime["panel"] == "regimes", "group_size"]) == {16}


def test_regime_takes_its_options(counts: str, tmp_path: Path, saved: dict[str, pd.DataFrame]) -> None:
    options = ["--group-size", "4", "--level", "0.3", "--rare-fraction", "0.25", "--counts", counts]
    assert main(["figure", "regime", "--out", str(tmp_path), *options]) == 0
    data = saved["regime"]
    prompts = data[data["panel"] == "prompts"]
    assert set(data["level"]) == {0.3}
    assert prompts["prompts"].tolist() == [2, 1]
    assert prompts["success_rate"].tolist() == pytest.approx([0.3, 0.9])
    assert set(prompts["rare_fraction"]) == {0.25}
    assert set(prompts["group_size"]) == {4}


def test_results_that_do_not_fit_cost_their_panel_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, saved: dict[str, pd.DataFrame]
) -> None:
    runs = made_up_runs()
    store_results(runs[runs["gamma"] == 1.0], tmp_path)
    assert main(["figure", "all", "--out", str(tmp_path)]) == 0
    assert saved.keys() == FROM_THEORY
    error = capsys.readouterr().err
    assert error.startswith("fgrpo: not drawn: figure 4 (results must include runs with gamma 0")
    assert "; panel c of the regime diagram (results must include runs with gamma 0" in error
    asked_for = ("--out", str(tmp_path), "--results", str(tmp_path))
    assert "results must include runs with gamma 0" in fails(capsys, "regime", *asked_for)


def test_regime_of_one_other_reading(tmp_path: Path, saved: dict[str, pd.DataFrame]) -> None:
    store_results(made_up_runs("hu2025", retained={2: 0.9, 512: 0.6}), tmp_path)
    assert main(["figure", "regime", "--out", str(tmp_path)]) == 0
    data = saved["regime"]
    swept = data[(data["panel"] == "sweep") & (data["gamma"] == 0)]
    assert dict(zip(swept["group_size"], swept["retained_mass"], strict=True)) == pytest.approx({2: 0.9, 512: 0.6})
    assert set(swept["reading"]) == {"hu2025"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["77"], f"'77' is not one of {', '.join(map(repr, map(str, FigureName)))}"),
        (["2", "--level", ".4"], "--level must come with regime or all, got it with figure 2: leave it out"),
        (["4", "--counts", "x.csv"], "--counts must come with regime or all, got it with figure 4: leave it out"),
        (["5", "--results", "x"], "--results must come with regime or all or 4, got it with figure 5: leave it out"),
        (["regime", "--group-size", "0"], "--group-size must be a whole number of at least 1, got 0"),
        (["regime", "--level", "1"], "level must be strictly between 0 and 1, got 1"),
        (["regime", "--rare-fraction", "2"], "--rare-fraction must be between 0 and 1, got 2"),
        (["regime", "--counts", "absent.csv"], "absent.csv"),
        (["regime", "--results", "absent"], "a results folder must hold the file sweep.parquet, got absent without it"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
) -> None:
    assert words in fails(capsys, *arguments, "--out", str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_names_offered_are_those_that_can_be_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["figure", "--help"]) == 0
    assert f"<{'|'.join(FigureName)}>" in capsys.readouterr().out
    with pytest.raises(ValueError, match=f"the figure must be one of {', '.join(FigureName)}, got 77: numbers are"):
        draw_figures("77", tmp_path, Material())


def test_a_prompt_of_ones_own(
    saved: dict[str, pd.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ["--group-size", "16", "--success-rate", "0.3", "--rare-mass", "0.03"]
    assert main(["figure", "regime", *own, "--out", str(tmp_path)]) == 0
    (row,) = saved["regime"].query("panel == 'prompts'").itertuples()
    assert (row.success_rate, row.rare_mass, row.group_size) == pytest.approx((0.3, 0.03, 16))
    capsys.readouterr()
    for lacking in (["--rare-mass", "0.03"], [*own[:4], "--rare-mass", "0.4"], [*own, "--rare-fraction", "0.1"]):
        assert "--rare-mass must be above 0 and below the --success-rate" in fails(capsys, "regime", *lacking)
