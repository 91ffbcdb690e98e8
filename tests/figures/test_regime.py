"""Regime diagram: fields, colours, contours and prompts against the literal formula, the sweep against plain loops."""

from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from pandas import DataFrame

from fgrpo.figures import (
    plot_regimes,
    plot_risk,
    plot_sweep_retention,
    regime_diagram,
    regime_diagram_alt_text,
    regime_diagram_data,
)
from fgrpo.figures.style import REGIME_COLOURS

# samples, correct: three prompts of equal shrunk rate 1/2, one never and one always solved
COUNTS = DataFrame({"samples": [8, 8, 4, 16, 16], "correct": [4, 4, 2, 0, 16]})
SHRUNK = {1 / 18: 1, 1 / 2: 3, 17 / 18: 1}


@dataclass
class Literal:
    """The three bases of Lemma 3.1, in 50 digits."""

    mu: float
    tau: float

    def _sum(self, term) -> mpmath.mpf:
        with mpmath.workdps(50):
            mu, tau = mpmath.mpf(self.mu), mpmath.mpf(self.tau)
            return term(1 - tau) - term(mu - tau) - term(1 - mu)

    def probability(self, n: float) -> mpmath.mpf:
        return self._sum(lambda base: base**n)

    def slope(self, n: float) -> mpmath.mpf:
        return self._sum(lambda base: base**n * mpmath.log(base))

    def regime(self, n: float, level: float) -> str:
        if self.probability(n) >= level:
            return "miss-prone"
        return "inactive" if self.slope(n) >= 0 else "covered"


@pytest.fixture(scope="module")
def data():
    return regime_diagram_data(16, level=0.4, rare_fraction=0.2, counts=COUNTS)


@pytest.fixture(scope="module")
def swept(make_results):
    few = make_results(group_sizes=(2, 128, 131072), record_every=500)
    gap = few[~((few["group_size"] == 2) & (few["gamma"] == 1.0))]
    return gap, regime_diagram_data(results=gap)


def panel(data, name):
    return data[data["panel"] == name]


def test_fields_follow_the_literal_formula(data):
    assert set(data["level"]) == {0.4}
    assert set(panel(data, "regimes")["group_size"]) == {16}
    assert set(panel(data, "risk")["rare_fraction"]) == {0.2}
    for name in ("regimes", "risk", "prompts"):
        rows = panel(data, name)
        for row in rows.sample(min(60, len(rows)), random_state=0).itertuples():
            literal = Literal(row.success_rate, row.rare_mass)
            assert row.rare_mass == pytest.approx(row.rare_fraction * row.success_rate, rel=1e-15)
            assert row.tail_miss_probability == pytest.approx(float(literal.probability(row.group_size)), rel=1e-11)
            assert row.regime == literal.regime(row.group_size, 0.4)
            assert literal.slope(row.peak_group_size * 0.9999) > 0 > literal.slope(row.peak_group_size * 1.0001)


def test_panels_cover_their_axes(data):
    regimes, risk = panel(data, "regimes"), panel(data, "risk")
    assert (regimes["success_rate"].min(), regimes["success_rate"].max()) == (0.001, 0.999)
    assert regimes["rare_fraction"].min() == pytest.approx(0.001)  # the decade below 0.1 / 16
    assert regimes["rare_fraction"].max() == pytest.approx(0.999)
    assert (risk["group_size"].min(), risk["group_size"].max()) == pytest.approx((1, 512))
    large = panel(regime_diagram_data(1024), "risk")
    assert large["group_size"].max() == pytest.approx(4096)


def colour_at(ax, point) -> tuple[float, ...] | None:
    """Colour of the topmost filled contour that holds a point of the axes."""
    for shapes in sorted((c for c in ax.collections if isinstance(c, QuadContourSet)), key=lambda c: -c.zorder):
        if shapes.filled:
            for path, colour in zip(shapes.get_paths(), shapes.get_facecolor(), strict=True):
                if path.contains_point(point):
                    return tuple(colour[:3])
    return None


def thinned(colour, strength=0.35):
    return tuple(1 - strength * (1 - part) for part in to_rgb(colour))


def mismatches(ax, level: float) -> int:
    """Points, a cell or more from every boundary, whose colour is not that of their literal regime at N = 16."""
    rng = np.random.default_rng(0)
    colours = {name: thinned(colour) for name, colour in REGIME_COLOURS.items()}
    wrong = compared = 0
    for mu, height in rng.uniform(0.03, 0.97, (120, 2)):
        rho = 0.001**height
        corners = [(mu + a, rho * b) for a, b in ((0, 1), (-0.02, 1), (0.02, 1), (0, 1.15), (0, 0.87))]
        around = {Literal(m, m * min(r, 0.9995)).regime(16, level) for m, r in corners}
        if len(around) == 1:
            compared += 1
            wrong += colour_at(ax, (mu, rho)) != pytest.approx(colours[around.pop()], abs=1e-6)
    assert compared > 80
    return wrong


def test_colours_are_those_of_the_literal_regimes(data):
    ax = plot_regimes(data)
    assert mismatches(ax, 0.4) == 0
    assert mismatches(ax, 0.7) > 5  # the test tells levels apart
    assert (ax.get_xlim(), ax.get_yscale(), ax.get_ylim()[1]) == ((0.0, 1.0), "log", 1.0)


def lines_of(ax) -> list[QuadContourSet]:
    return [c for c in ax.collections if isinstance(c, QuadContourSet) and not c.filled]


def test_lines_of_the_regimes_are_the_level_and_the_peak(data):
    level, peak = lines_of(plot_regimes(data))
    for mu, rho in level.get_paths()[0].vertices[::5]:
        assert float(Literal(mu, mu * rho).probability(16)) == pytest.approx(0.4, abs=0.01)
    assert all(style[1] is not None for style in peak.get_linestyle())  # dashed
    for mu, rho in peak.get_paths()[0].vertices[1:-1:5]:
        below, above = (Literal(mu, mu * rho).slope(16 * factor) for factor in (0.93, 1.07))
        assert below > 0 > above


def test_contours_of_the_risk_lie_at_their_values_and_bear_them(data):
    ax = plot_risk(data)
    (contours,) = lines_of(ax)
    assert list(contours.levels) == [0.1, 0.25, 0.4, 0.5]  # 0.75 and 0.9 are not reached at this rare fraction
    for value, path in zip(contours.levels, contours.get_paths(), strict=True):
        vertices = [(n, mu) for n, mu in path.vertices[::7] if 0.05 < mu < 0.95]
        assert len(vertices) >= 3
        for n, mu in vertices:
            assert float(Literal(mu, 0.2 * mu).probability(n)) == pytest.approx(value, abs=0.01)
    assert [float(text.get_text()) for text in contours.labelTexts] == [0.1, 0.25, 0.4, 0.5]
    assert np.argmax(contours.get_linewidth()) == 2  # the level


def test_contours_next_to_the_level_give_way_to_it():
    (contours,) = lines_of(plot_risk(regime_diagram_data(level=0.3)))
    assert list(contours.levels) == [0.1, 0.3, 0.5]


def test_peak_line_and_group_size_are_drawn(data):
    peaks, chosen = plot_risk(data).lines
    for n, mu in list(zip(*peaks.get_data(), strict=True))[::6]:
        literal = Literal(mu, 0.2 * mu)
        assert literal.slope(n * 0.9999) > 0 > literal.slope(n * 1.0001)
    assert set(chosen.get_xdata()) == {16}


def test_prompts_stand_at_their_shrunk_rate(data):
    rows = panel(data, "prompts").sort_values("success_rate")
    assert dict(zip(rows["success_rate"], rows["prompts"], strict=True)) == pytest.approx(SHRUNK)
    in_a, in_b = (
        next(c for c in plot(data).collections if len(c.get_offsets()) == 3) for plot in (plot_regimes, plot_risk)
    )
    np.testing.assert_allclose(in_a.get_offsets(), [(mu, 0.2) for mu in SHRUNK])
    np.testing.assert_allclose(in_b.get_offsets(), [(16, mu) for mu in SHRUNK])
    assert in_a.get_sizes()[1] > in_a.get_sizes()[0] == in_a.get_sizes()[2]


def test_a_prompt_of_known_success_rate_stands_there():
    rows = panel(regime_diagram_data(16, rare_fraction=0.1, success_rate=0.3), "prompts")
    assert rows[["success_rate", "rare_fraction", "prompts"]].to_numpy().tolist() == [[0.3, 0.1, 1.0]]
    assert rows["rare_mass"].item() == pytest.approx(0.03)
    with pytest.raises(ValueError, match="success_rate must be"):
        regime_diagram_data(16, success_rate=1.0)


def test_every_regime_is_named_with_its_prompts(data):
    expected = dict.fromkeys(REGIME_COLOURS, 0)
    for mu, prompts in SHRUNK.items():
        expected[Literal(mu, 0.2 * mu).regime(16, 0.4)] += prompts
    ax = plot_regimes(data)
    legend = ax.get_legend()
    names = [text.get_text() for text in (*ax.texts, *(legend.get_texts() if legend else ()))]
    assert {name.replace("\n", ", ") for name in names} == {
        f"{name}, {n} prompt{'s' * (n != 1)}" for name, n in expected.items()
    }


def test_names_stand_in_their_regions():
    ax = plot_regimes(regime_diagram_data())
    assert [text.get_text() for text in ax.texts] == list(REGIME_COLOURS)
    for text in ax.texts:
        mu, rho = text.get_position()
        assert Literal(mu, mu * rho).regime(8, 0.5) == text.get_text()


def test_cells_of_the_sweep_are_the_means_over_seeds(swept):
    results, data = swept
    ax = plot_sweep_retention(data)
    (cells,) = [c for c in ax.collections if c.get_array() is not None]
    drawn = cells.get_array()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "128", "131072"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1"]
    texts = {text.get_position(): text for text in ax.texts}
    for row, gamma in enumerate((0.0, 1.0)):
        for column, size in enumerate((2, 128, 131072)):
            last = [
                run["retained_mass"]
                for run in results.to_dict("records")
                if (run["group_size"], run["gamma"], run["step"]) == (size, gamma, 1000)
            ]
            if not last:
                assert np.ma.getmaskarray(drawn)[row, column]
                assert (column + 0.5, row + 0.5) not in texts
                continue
            mean = sum(last) / len(last)
            assert drawn[row, column] == pytest.approx(mean, rel=1e-12)
            text = texts[column + 0.5, row + 0.5]
            assert text.get_text() == f"{mean:.2f}"
            assert (text.get_weight() == "bold") == (mean < 0.5)


def test_many_group_sizes_are_left_to_the_colours(swept):
    _, data = swept
    one = panel(data, "sweep").iloc[[0]]
    many = DataFrame([{**one.iloc[0], "group_size": size} for size in range(2, 27)])
    ax = plot_sweep_retention(many)
    assert not ax.texts
    assert len(ax.get_xticks()) <= 10


def test_figure_has_the_panels_that_its_data_hold(data, swept):
    alone, with_sweep = regime_diagram(data), regime_diagram(swept[1])
    assert [ax.get_title()[:1] for ax in alone.axes] == ["a", "b"]
    assert [ax.get_title()[:1] for ax in with_sweep.axes] == ["a", "b", "c", ""]  # and the scale of c
    (caption,) = [text.get_text().replace("\n", " ") for text in alone.texts]
    assert "Circles: 5 prompts at their success rate (of counts: shrunk), rare fraction 0.2 assumed for all." in caption
    (caption,) = [text.get_text().replace("\n", " ") for text in with_sweep.texts]
    assert "reading figure_matching, mean over seeds (4)" in caption
    assert "prompts" not in caption


@pytest.mark.parametrize("group_size", [1, 131072, 10**12])
@pytest.mark.parametrize("level", [1e-6, 0.999999])
def test_extremes_are_drawn(group_size, level):
    regime_diagram(regime_diagram_data(group_size, level=level, rare_fraction=0.999)).draw_without_rendering()


@pytest.mark.parametrize("plot", [plot_regimes, plot_risk, plot_sweep_retention])
def test_draws_on_given_axes_and_asks_for_its_rows(swept, plot):
    ax = Figure().add_subplot()
    assert plot(swept[1].sample(frac=1, random_state=0), ax) is ax
    with pytest.raises(ValueError, match=r"data must hold the panel '\w+', got no such rows: pass those of regime_d"):
        plot(panel(swept[1], "prompts"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"group_size": 0}, "group_size must be a whole number of at least 1, got 0: pass the number of rollouts"),
        ({"group_size": 2.5}, "group_size must be a whole number"),
        ({"group_size": [2, 4]}, "group_size must be one number, got an array"),
        ({"level": 0.0}, "level must be strictly between 0 and 1, got 0"),
        ({"level": 1.0}, "level must be strictly between 0 and 1, got 1"),
        ({"rare_fraction": 0.0}, "rare_fraction must be strictly between 0 and 1, got 0: pass the assumed tau / mu"),
        ({"rare_fraction": 1.0}, "rare_fraction must be strictly between 0 and 1, got 1"),
        ({"rare_fraction": float("nan")}, "rare_fraction must be between 0 and 1, got nan"),
        ({"counts": DataFrame({"samples": [8]})}, "counts must have the column 'correct', got"),
        ({"counts": DataFrame({"samples": [8], "correct": [9]})}, "correct must be at most samples"),
        ({"counts": DataFrame({"samples": [], "correct": []})}, "counts must be one per problem"),
        ({"results": DataFrame({"step": [1]})}, "results must have the columns of a sweep"),
    ],
)
def test_bad_input_is_refused(options, words):
    with pytest.raises(ValueError, match="must") as caught:
        regime_diagram_data(**options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_alt_text_gives_regimes_prompts_and_sweep(data, swept):
    text = regime_diagram_alt_text(data)
    assert text.startswith("Regimes at N = 16 over success rate")
    assert "5 prompts: 0 inactive, 1 miss-prone, 4 covered" in text
    assert "at rare fraction 0.2 tail misses are most frequent at N = " in text
    assert "the retained mass of the sweep goes from 0.1" in regime_diagram_alt_text(swept[1])
