"""`fgrpo advise`: its numbers against enumeration and direct calls, its words, and one line for every bad input."""

import json
import re
from fractions import Fraction as F
from itertools import pairwise
from math import comb, factorial, inf, isnan, nan, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.advice import advise
from fgrpo.advice_model import REGIMES
from fgrpo.advice_text import advice_text
from fgrpo.cli import main
from fgrpo.theory.advantages import matched_learning_rate
from fgrpo.theory.focal_moments import expected_focal_weight, focal_weight_standard_deviation
from fgrpo.theory.risk import risk_interval, tail_miss_regime, tail_misses_before_first_hit
from fgrpo.theory.tail_miss import (
    active_probability,
    coverage_group_size,
    peak_group_size,
    tail_miss_probability,
)
from fgrpo.theory.weighted_tail_miss import tail_miss_update_share

COUNTS = pd.DataFrame(
    {
        "prompt": ["never", "half", "hard", "again", "always", "many"],
        "samples": [8, 8, 4, 8, 8, 16],
        "correct": [0, 4, 1, 4, 8, 13],
    }
)


def law_of_new_group(correct: int, samples: int, n: int) -> list[F]:
    """Pr(X = x) in a new group of n when the success rate has a uniform prior: the Beta-binomial law, in Fractions."""
    a, b = correct + 1, samples - correct + 1

    def beta(p: int, q: int) -> F:
        return F(factorial(p - 1) * factorial(q - 1), factorial(p + q - 1))

    return [comb(n, x) * beta(a + x, b + n - x) / beta(a, b) for x in range(n + 1)]


def mean_over_counts(value: list[F], n: int) -> float:
    """Mean over the prompts of COUNTS and their new groups of a value for each X."""
    laws = [law_of_new_group(row.correct, row.samples, n) for row in COUNTS.itertuples()]
    return float(sum(p * v for law in laws for p, v in zip(law, value, strict=True)) / len(laws))


@pytest.fixture
def counts_file(tmp_path: Path) -> str:
    path = tmp_path / "counts.csv"
    COUNTS.to_csv(path, index=False)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["advise", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def line_with(text: str, start: str) -> str:
    (line,) = (line for line in text.splitlines() if line.strip().startswith(start))
    return line


def test_one_prompt_by_hand() -> None:
    # a, b, c = 3/4, 1/4, 1/2: Pr(B) = 2bc = 1/4, 3abc = 9/32, 2bc(2aa - bc) = 1/4, 5abc(aa - bc) = 105/512, ...
    prompt = advise(success_rate=0.5, rare_mass=0.25, group_size=2, level=0.2).prompt
    assert prompt is not None
    assert prompt.regime == "miss-prone"
    assert prompt.active_probability == pytest.approx(1 / 2, rel=1e-14)
    assert prompt.tail_miss_probability == pytest.approx(1 / 4, rel=1e-14)
    assert (prompt.peak_group_size, prompt.peak_probability) == (3, pytest.approx(9 / 32, rel=1e-14))
    assert (prompt.risky_from, prompt.risky_to, prompt.coverage_group_size) == (2, 5, 6)
    assert prompt.misses_before_first_hit == pytest.approx((1 / 4) / (7 / 16), rel=1e-14)


@pytest.mark.parametrize(("n", "regime"), [(2, "inactive"), (8, "miss-prone"), (64, "covered")])
def test_one_prompt_is_the_closed_forms(n: int, regime: str) -> None:
    mu, tau = 0.3, 0.03
    prompt = advise(success_rate=mu, rare_mass=tau, group_size=n).prompt
    assert prompt is not None
    assert prompt.regime == regime
    assert prompt.active_probability == pytest.approx(float(active_probability(mu, n)), rel=1e-13)
    assert prompt.tail_miss_probability == float(tail_miss_probability(mu, tau, n))
    assert prompt.peak_group_size == peak_group_size(mu, tau)
    assert (prompt.risky_from, prompt.risky_to) == risk_interval(mu, tau, 0.5)
    assert prompt.coverage_group_size == coverage_group_size(mu, tau, 0.5)
    assert prompt.misses_before_first_hit == tail_misses_before_first_hit(mu, tau, n)


def test_rare_fraction_of_one_prompt() -> None:
    assert advise(success_rate=0.5, rare_fraction=0.1) == advise(success_rate=0.5, rare_mass=0.05)


@pytest.mark.parametrize(
    ("mu", "tau", "peak", "words"),
    [
        (0.3, 0.0, inf, "a region of no mass is always missed"),
        (0.3, 0.3, nan, "No group size has a tail miss: every correct rollout is rare"),
        (1.0, 0.3, nan, "No group size has a tail miss: all rollouts are right"),
        (0.0, 0.0, nan, "No group size has a tail miss: none is right"),
        (0.3, 0.25, 3, "risky sizes (Pr(tail miss) at least 0.5): none"),
    ],
)
def test_edges(mu: float, tau: float, peak: float, words: str) -> None:
    advice = advise(success_rate=mu, rare_mass=tau, gamma=1.0)
    assert advice.prompt is not None
    assert advice.prompt.peak_group_size == pytest.approx(peak, nan_ok=True)
    assert words in advice_text(advice)


def test_budget_of_one_prompt() -> None:
    advice = advise(success_rate=0.5, rare_mass=0.25, group_size=4, rollouts_per_step=24)
    assert advice.rollouts_per_step == 24
    assert [row.group_size for row in advice.budget] == [2, 4, 8]  # 16 does not divide 24
    two, four, _ = advice.budget
    assert (two.prompts_per_step, four.prompts_per_step) == (12, 6)
    assert (two.active_probability, four.active_probability) == (pytest.approx(0.5), pytest.approx(7 / 8))
    assert (two.tail_misses_per_step, four.tail_misses_per_step) == (pytest.approx(3.0), pytest.approx(1.5))
    per_rollout = [row.tail_miss_per_rollout for row in advice.budget]
    assert per_rollout[:2] == [pytest.approx(1 / 8), pytest.approx(1 / 16)]
    assert per_rollout == sorted(per_rollout, reverse=True)
    text = advice_text(advice)
    assert "24 rollouts per step are 6 prompts like this one at N = 4" in text
    assert line_with(text, "4 ").split() == ["4", "6", "0.875", "0.25", "1.5", "0.0625"]


def test_focal_weight_of_one_prompt() -> None:
    mu, tau, n, gamma = 0.9, 0.1, 8, 1.0
    focal = advise(success_rate=mu, rare_mass=tau, group_size=n, gamma=gamma).focal
    assert focal is not None
    assert focal.true_weight == pytest.approx(0.1)
    assert focal.mean_weight == pytest.approx(0.1)
    # E[(1 - X/N) 1_A] = (1 - mu) (1 - (1 - mu)^(N-1)), by exact arithmetic
    given_active = F(1, 10) * (1 - F(1, 10) ** 7) / (1 - F(9, 10) ** 8 - F(1, 10) ** 8)
    assert focal.mean_weight_given_active == pytest.approx(float(given_active), rel=1e-12)
    assert focal.mean_weight_given_active == pytest.approx(
        float(expected_focal_weight(mu, n, gamma, given_active=True)), rel=1e-12
    )
    assert focal.spread == pytest.approx(sqrt(0.09 / 8), rel=1e-12)
    assert focal.spread_given_active == pytest.approx(
        float(focal_weight_standard_deviation(mu, n, gamma, given_active=True)), rel=1e-12
    )
    assert (focal.smallest_active_weight, focal.largest_active_weight) == (1 / 8, 7 / 8)
    assert focal.update_share == pytest.approx(float(tail_miss_update_share(mu, tau, n)), rel=1e-12)
    assert focal.update_share == pytest.approx(float(F(8, 9) * F(9, 10) ** 6), rel=1e-12)
    assert focal.weighted_update_share > focal.update_share
    assert focal.matched_learning_rate == float(matched_learning_rate(gamma)) == pytest.approx(0.5)
    assert [row.success_rate for row in focal.rows] == [0.1, 0.3, 0.5, 0.7, 0.9]
    # without a standard deviation 1 - (1 + (N - 2) mu) / N at gamma = 1
    assert [row.step_length for row in focal.rows] == pytest.approx([0.8, 0.65, 0.5, 0.35, 0.2], rel=1e-12)


def test_step_length_with_division_by_the_standard_deviation_by_enumeration() -> None:
    n, gamma, mu = 5, 2.0, 0.25
    focal = advise(success_rate=mu, rare_mass=0.1, group_size=n, gamma=gamma).focal
    assert focal is not None
    assert [row.success_rate for row in focal.rows] == [0.1, 0.25, 0.3, 0.5, 0.7, 0.9]
    # the expected update is proportional to E[g sqrt(m (1 - m))], m = X/N
    size = [(x, comb(n, x) * mu**x * (1 - mu) ** (n - x) * sqrt(x * (n - x))) for x in range(n + 1)]
    expected = sum(p * (1 - x / n) ** gamma for x, p in size) / sum(p for _, p in size)
    assert focal.rows[1].step_length_std == pytest.approx(expected, rel=1e-12)


def test_two_rollouts_make_the_weight_a_constant() -> None:
    advice = advise(success_rate=0.3, rare_mass=0.03, group_size=2, gamma=2.0)
    assert advice.focal is not None
    for row in advice.focal.rows:
        assert (row.mean_weight_given_active, row.step_length, row.step_length_std) == pytest.approx((0.25,) * 3)
    assert advice.focal.weighted_update_share == pytest.approx(advice.focal.update_share) == pytest.approx(0.9)
    assert advice.focal.spread_given_active == pytest.approx(0.0, abs=1e-15)
    text = " ".join(advice_text(advice).split())
    assert "the weight is the constant 0.25. That is a smaller learning rate and nothing else" in text
    assert "gamma 0 with the learning rate times 0.25 is the same method" in text
    assert "pass@" not in text


def test_no_weight_and_no_group() -> None:
    unweighted = advise(success_rate=0.3, rare_mass=0.03, gamma=0.0)
    assert unweighted.focal is not None
    assert unweighted.focal.mean_weight == unweighted.focal.matched_learning_rate == 1.0
    assert advice_text(unweighted).endswith("It is 1 for every group: the unweighted method.")
    single = advise(success_rate=0.3, rare_mass=0.03, group_size=1, gamma=1.0)
    assert single.focal is not None
    assert isnan(single.focal.mean_weight_given_active)
    assert advice_text(single).endswith("A group of one rollout is never active: there is no update to weight.")


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_shares_of_a_count_file_by_enumeration(n: int) -> None:
    rho = F(1, 4)
    prompts = advise(counts=COUNTS, rare_fraction=float(rho), group_size=n).prompts
    assert prompts is not None
    assert (prompts.prompts, prompts.samples) == (6, 52)
    active = [F(0 < x < n) for x in range(n + 1)]
    missed = [a * (1 - rho) ** x for x, a in enumerate(active)]
    close = {"rel": 1e-12, "abs": 1e-15}
    assert prompts.all_wrong == pytest.approx(mean_over_counts([F(x == 0) for x in range(n + 1)], n), **close)
    assert prompts.all_right == pytest.approx(mean_over_counts([F(x == n) for x in range(n + 1)], n), **close)
    assert prompts.active_probability == pytest.approx(mean_over_counts(active, n), **close)
    assert prompts.tail_miss_probability == pytest.approx(mean_over_counts(missed, n), **close)


def test_regimes_and_exposure_of_a_count_file() -> None:
    rho, n = 0.25, 8
    prompts = advise(counts=COUNTS, rare_fraction=rho, group_size=n).prompts
    assert prompts is not None
    shrunk = (COUNTS["correct"] + 1) / (COUNTS["samples"] + 2)
    assert prompts.success_rate == pytest.approx(shrunk.mean())
    regimes = list(tail_miss_regime(shrunk, rho * shrunk, n))
    assert prompts.regimes == {name: regimes.count(name) for name in REGIMES}
    missed = {
        row.prompt: float(sum(p * (1 - F(1, 4)) ** x for x, p in enumerate(law) if 0 < x < n))
        for row in COUNTS.itertuples()
        for law in [law_of_new_group(row.correct, row.samples, n)]
    }
    order = sorted(missed, key=lambda name: -missed[name])
    # "half" and "again" are equal: the file's order decides
    assert [item.prompt for item in prompts.most_exposed] == order[:5]
    for item in prompts.most_exposed:
        at = list(COUNTS["prompt"]).index(item.prompt)
        assert (item.samples, item.correct) == (COUNTS["samples"][at], COUNTS["correct"][at])
        assert (item.success_rate, item.regime) == (pytest.approx(shrunk[at]), regimes[at])
        assert item.tail_miss_probability == pytest.approx(missed[item.prompt], rel=1e-12)


def test_all_three_regimes_in_one_file() -> None:
    counts = pd.DataFrame({"prompt": list("abc"), "samples": [998] * 3, "correct": [9, 299, 799]})
    prompts = advise(counts=counts, rare_fraction=0.1, group_size=16).prompts
    assert prompts is not None
    assert prompts.regimes == {"inactive": 1, "miss-prone": 1, "covered": 1}


@pytest.mark.parametrize("gamma", [0, 1, 2])
def test_focal_weight_of_a_count_file_by_enumeration(gamma: int) -> None:
    n = 8
    focal = advise(counts=COUNTS, rare_fraction=0.25, group_size=n, gamma=gamma).focal
    assert focal is not None
    weight = [(1 - F(x, n)) ** gamma for x in range(n + 1)]
    active = [F(0 < x < n) for x in range(n + 1)]
    on_active = [g * a for g, a in zip(weight, active, strict=True)]
    assert focal.mean_weight == pytest.approx(mean_over_counts(weight, n), rel=1e-12)
    assert focal.mean_weight_given_active == pytest.approx(
        mean_over_counts(on_active, n) / mean_over_counts(active, n), rel=1e-12
    )
    assert [band.prompts for band in focal.bands] == [1, 1, 2, 2]
    for part, values in (("share_of_active_groups", active), ("share_of_weight", on_active)):
        by_prompt = [
            float(sum(p * v for p, v in zip(law_of_new_group(row.correct, row.samples, n), values, strict=True)))
            for row in COUNTS.itertuples()
        ]
        never, half, hard, again, always, many = np.array(by_prompt) / sum(by_prompt)
        expected = [never, hard, half + again, always + many]
        assert [getattr(band, part) for band in focal.bands] == pytest.approx(expected, rel=1e-12)


def test_noise_and_update_share_of_a_count_file_at_the_shrunk_rates() -> None:
    n, rho = 8, 0.25
    focal = advise(counts=COUNTS, rare_fraction=rho, group_size=n, gamma=1.0).focal
    assert focal is not None
    mu = ((COUNTS["correct"] + 1) / (COUNTS["samples"] + 2)).to_numpy()
    assert focal.spread == pytest.approx(sqrt(np.mean(mu * (1 - mu) / n)), rel=1e-12)
    # strength mu (1 - mu) (N - 1) / N, of which (1 - rho) (1 - tau)^(N - 2) in tail-miss groups
    strength = mu * (1 - mu)
    missed = strength * (1 - rho) * (1 - rho * mu) ** (n - 2)
    assert focal.update_share == pytest.approx(missed.sum() / strength.sum(), rel=1e-12)


def test_budget_of_a_count_file() -> None:
    advice = advise(counts=COUNTS, rare_fraction=0.25, group_size=8, rollouts_per_step=16)
    assert [row.group_size for row in advice.budget] == [2, 4, 8, 16]
    for row in advice.budget:
        n = row.group_size
        missed = mean_over_counts([F(0 < x < n) * F(3, 4) ** x for x in range(n + 1)], n)
        assert row.tail_miss_probability == pytest.approx(missed, rel=1e-12)
        assert row.tail_misses_per_step == pytest.approx(16 / n * missed, rel=1e-12)
    assert advice_text(advice).endswith("One pass over the 6 prompts takes 3 steps.")


def test_words_for_one_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "--success-rate", "0.3", "--rare-mass", "0.03", "--rollouts-per-step", "512", "--gamma", "1")
    words = " ".join(text.split())
    assert "The rare mass is your assumption" in words
    assert "Regime at N = 8: miss-prone (level 0.5)" in words
    assert line_with(text, "Pr(active)").split()[1] == "0.9423"
    assert line_with(text, "Pr(tail miss)  ").split()[2] == "0.7261"
    assert "peak: N = 8, with Pr(tail miss) 0.7261" in words
    assert "risky sizes (Pr(tail miss) at least 0.5): N = 3 to 22" in words
    assert "at or below that level from: N = 23" in words
    assert "if the policy stays as it is: 3.357" in words
    assert "512 rollouts per step are 64 prompts like this one at N = 8" in words
    assert line_with(text, "mean weight  ").split()[2] == "0.7"
    assert line_with(text, "0.9  ").split() == ["0.9", "0.1756", "0.2", "0.1872"]
    assert "proportional to pass@2 in place of pass@1" in words
    assert "the learning rate times 0.5, the mean advantage size" in words
    assert "0.7497 without the weight, 0.7684 with it" in words


def test_words_for_a_count_file(capsys: pytest.CaptureFixture[str], counts_file: str) -> None:
    arguments = ["--counts", counts_file, "--rare-fraction", "0.25", "--group-size", "8", "--gamma", "0.5"]
    text = run(capsys, *arguments)
    advice = advise(counts=COUNTS, rare_fraction=0.25, group_size=8, gamma=0.5)
    assert text == advice_text(advice) + "\n"
    words = " ".join(text.split())
    assert "6 prompts with 52 samples, rare fraction 0.25" in words
    assert "The rare fraction is your assumption" in words
    assert words.count("estimates") == words.count("biased") == words.count("(X + 1) / (n + 2)") == 1
    assert advice.prompts is not None
    for name in REGIMES:
        assert line_with(text, f"{name}  ").split()[1] == str(advice.prompts.regimes[name])
    assert line_with(text, "tail miss  ").split()[2] == f"{advice.prompts.tail_miss_probability:.1%}"
    assert line_with(text, "many ").split()[:3] == ["many", "13", "16"]


def test_long_names_are_cut() -> None:
    counts = COUNTS.assign(prompt=["x\n" * 50, *COUNTS["prompt"][1:]])
    lines = advice_text(advise(counts=counts, rare_fraction=0.01, group_size=8)).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum("x x x" in line for line in lines) == 1


@pytest.mark.parametrize("extra", [[], ["--rollouts-per-step", "64", "--gamma", "0.5"]])
def test_json_is_the_advice(capsys: pytest.CaptureFixture[str], counts_file: str, extra: list[str]) -> None:
    options = {"rollouts_per_step": 64, "gamma": 0.5} if extra else {}
    one = json.loads(run(capsys, "--success-rate", "0.3", "--rare-mass", "0", "--json", *extra))
    assert one == advise(success_rate=0.3, rare_mass=0.0, **options).to_dict()
    assert one["prompt"]["peak_group_size"] is None
    assert one["prompt"]["risky_from"] == 3
    assert one["prompts"] is None
    many = json.loads(run(capsys, "--counts", counts_file, "--rare-fraction", "0.25", "--json", *extra))
    assert many == advise(counts=COUNTS, rare_fraction=0.25, **options).to_dict()
    assert many["prompt"] is None
    assert (many["focal"] is not None) == (many["budget"] != []) == bool(extra)


RATES = st.floats(1e-300, 1.0) | st.sampled_from([0.0, 1e-300, 1e-9, 1.0])


@given(
    rates=st.tuples(RATES, RATES),
    n=st.sampled_from([1, 2, 3, 8, 100, 5000]),
    gamma=st.none() | st.sampled_from([0.0, 0.5, 1.0, 3.0, 50.0]) | st.floats(0, 5),
    level=st.floats(1e-6, 1 - 1e-6),
    steps=st.none() | st.integers(1, 8),
)
def test_any_prompt_gives_legible_words_and_strict_json(
    rates: tuple[float, float], n: int, gamma: float | None, level: float, steps: int | None
) -> None:
    tau, mu = sorted(rates)
    rollouts = None if steps is None else steps * n
    advice = advise(success_rate=mu, rare_mass=tau, group_size=n, rollouts_per_step=rollouts, gamma=gamma, level=level)
    assert json.loads(json.dumps(advice.to_dict(), allow_nan=False)) == advice.to_dict()
    text = advice_text(advice)
    assert max(map(len, text.splitlines())) <= 100
    assert not re.search(r"\b(nan|inf|None)\b", text)
    assert advice.prompt is not None
    assert (advice.prompt.regime == "miss-prone") == (advice.prompt.risky_from <= n <= advice.prompt.risky_to)
    if advice.budget:
        from_two = [row.tail_miss_per_rollout for row in advice.budget if row.group_size >= 2]
        assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(from_two))


MU, TAU = ["--success-rate", "0.3"], ["--rare-mass", "0.03"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--success-rate or counts must be given, got neither"),
        (["--rare-fraction", "0.1"], "--success-rate or counts must be given, got neither"),
        (TAU, "--rare-mass must come with --success-rate, got --rare-mass 0.03 without it"),
        (MU, "must be assumed, got no mass or fraction: pass --success-rate with --rare-mass"),
        ([*MU, *TAU, "--rare-fraction", "0.1"], "--rare-mass and --rare-fraction must not come together"),
        ([*MU, *TAU, "--counts", "FILE"], "--success-rate and counts must not come together, got both"),
        (["--counts", "FILE"], "must be assumed, got no mass or fraction"),
        (["--counts", "FILE", *TAU], "--rare-mass must come with --success-rate"),
        (["--counts", "FILE", "--rare-fraction", "2"], "--rare-fraction must be between 0 and 1, got 2"),
        (["--counts", "absent.csv", "--rare-fraction", "0.1"], "counts file must exist, got 'absent.csv'"),
        (["--counts", "COLUMN", "--rare-fraction", "0.1"], "correct must be a column"),
        (["--success-rate", "1.5", *TAU], "--success-rate must be between 0 and 1, got 1.5"),
        ([*MU, "--rare-mass", "0.4"], "--rare-mass must be at most --success-rate, got 0.4 > 0.3"),
        ([*MU, "--rare-fraction", "-1"], "--rare-fraction must be between 0 and 1, got -1"),
        ([*MU, *TAU, "--group-size", "0"], "--group-size must be a whole number of at least 1, got 0"),
        ([*MU, *TAU, "--group-size", "-3"], "--group-size must be a whole number of at least 1, got -3"),
        ([*MU, *TAU, "--group-size", "2.5"], "--group-size"),
        ([*MU, *TAU, "--gamma", "-1"], "gamma must be finite and at least 0, got -1"),
        ([*MU, *TAU, "--gamma", "nan"], "gamma must be finite and at least 0, got nan"),
        ([*MU, *TAU, "--level", "1"], "level must be strictly between 0 and 1, got 1"),
        ([*MU, *TAU, "--rollouts-per-step", "0"], "--rollouts-per-step must be a whole number of at least 1"),
        (
            [*MU, *TAU, "--rollouts-per-step", "100"],
            "multiple of --group-size 8, got 100: the nearest that fit: 96 or 104",
        ),
        ([*MU, *TAU, "--rollouts-per-step", "3"], "multiple of --group-size 8, got 3: the nearest that fit: 8\n"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, counts_file: str, arguments: list[str], words: str
) -> None:
    column = tmp_path / "column.csv"
    column.write_text("prompt,samples\na,8\n")
    names = {"FILE": counts_file, "COLUMN": str(column)}
    assert main(["advise", *(names.get(word, word) for word in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fgrpo: ")
    assert captured.err.count("\n") == 1
    assert words in captured.err


def test_bad_input_from_python() -> None:
    with pytest.raises(ValueError, match=r"must have the column 'prompt', got \['samples', 'correct'\]"):
        advise(counts=COUNTS.drop(columns="prompt"), rare_fraction=0.1)
    with pytest.raises(ValueError, match=r"correct must be at most samples, got 9 > 8"):
        advise(counts=COUNTS.assign(correct=9), rare_fraction=0.1)
    with pytest.raises(ValueError, match=r"must be single numbers, got shapes \(2,\) and \(\)"):
        advise(success_rate=[0.3, 0.4], rare_mass=0.1)  # type: ignore[arg-type]
