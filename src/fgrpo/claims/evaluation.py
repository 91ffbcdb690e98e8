"""Claims about controls and statistics of the language-model experiments (App. L.4, M, N, Q), and the tables' consistency: F12 to F16."""

from fractions import Fraction
from math import comb

import numpy as np
from scipy.integrate import quad
from scipy.special import gamma as gamma_function
from scipy.stats import binomtest

from fgrpo.claims.model import Claim, Finding, Verdict, computed, holds
from fgrpo.claims.text import numbers
from fgrpo.reported import MATH, OOD, reported_setting, reported_table
from fgrpo.theory.advantages import matched_learning_rate
from fgrpo.theory.pass_estimates import pass_at_k
from fgrpo.theory.significance import Variant, paired_subsampling_test
from fgrpo.theory.weights import focal_weight

GAMMAS = (0.5, 1.0, 2.0)
LEVEL = 0.05


def _integral_ratio(gamma: float, power: float) -> float:
    """Integral of (1-mu)^gamma (mu (1-mu))^power over that of (mu (1-mu))^power, by quadrature."""

    def size(mu: float) -> float:
        return float((mu * (1 - mu)) ** power)

    return float(quad(lambda mu: (1 - mu) ** gamma * size(mu), 0, 1)[0] / quad(size, 0, 1)[0])


def _low_learning_rate() -> Finding:
    factors = matched_learning_rate(GAMMAS)
    printed = [4 / np.sqrt(np.pi) * gamma_function(gamma + 1.5) / gamma_function(gamma + 3) for gamma in GAMMAS]
    integrals = [_integral_ratio(gamma, 0.5) for gamma in GAMMAS]
    error = float(max(np.abs(factors - printed).max(), np.abs(factors - integrals).max()))
    rate, stated = 1e-6 * float(factors[0]), float(reported_setting("control.low_lr"))
    on_grid = np.arange(1, 8) / 8
    size = np.sqrt(on_grid * (1 - on_grid))
    grid = float(np.sum(focal_weight(on_grid, 0.5) * size) / np.sum(size))
    others = matched_learning_rate(0.5, alpha=np.array([0.5, 2.0]), beta=np.array([0.5, 1.0]))
    return holds(
        error < 1e-7 and round(rate, 8) == stated,
        f"m_gamma = {numbers(factors, '.5f')} for gamma {numbers(GAMMAS, 'g')}, by both formulas and by quadrature (largest difference "
        f"{error:.0e}); learning rate {rate:.2e}. Without the root {_integral_ratio(0.5, 1.0):.4f}; success rates on the grid of N = 8 "
        f"{grid:.3f}, Beta(1/2, 1/2) {others[0]:.3f}, Beta(2, 1) {others[1]:.3f}",
    )


def _unbiased_estimator() -> Finding:
    error, cases = 0.0, 0
    for n, k in ((4, 2), (8, 3), (12, 12), (16, 5)):
        for mu in (Fraction(1, 7), Fraction(1, 2), Fraction(9, 10)):
            law = [float(comb(n, c) * mu**c * (1 - mu) ** (n - c)) for c in range(n + 1)]
            mean = float(np.dot(law, pass_at_k(n, np.arange(n + 1), k)))
            error, cases = max(error, abs(mean - float(1 - (1 - mu) ** k))), cases + 1
    return holds(
        error < 1e-14,
        f"its mean over all outcomes is 1 - (1 - mu)^k in {cases} cases with n >= k (largest difference {error:.0e}); n = "
        f"{reported_setting('eval.samples_per_problem')} for the tables",
    )


def _level_of_the_test() -> Finding:
    problems, repetitions, n, m = 30, 200, 1024, int(reported_setting("significance.subsample_m"))
    rng = np.random.default_rng(0)
    rejections: dict[tuple[Variant, int], int] = {("raw", 1): 0, ("raw", m): 0, ("rescaled", 1): 0}
    for _ in range(repetitions):
        rates = rng.beta(0.5, 1.5, problems)
        first, second = rng.binomial(n, rates), rng.binomial(n, rates)
        for variant, k in rejections:
            test = paired_subsampling_test(
                n, first, second, k, subsample=m, variant=variant, iterations=400, level=1 - LEVEL, rng=rng
            )
            rejections[variant, k] += test.reject
    bounds = {case: binomtest(count, repetitions).proportion_ci(0.999) for case, count in rejections.items()}
    exact = all(low <= LEVEL <= high for (variant, _), (low, high) in bounds.items() if variant == "raw")
    rates_words = "; ".join(
        f"{variant} pass@{k}: {count / repetitions:.3f}" for (variant, k), count in rejections.items()
    )
    return holds(
        exact,
        f"rejections in {repetitions} seeded nulls of {problems} problems with independent rollouts, 400 draws each: {rates_words}; the 99.9 % interval "
        f"of the raw reading at pass@1 ends at {bounds['raw', 1].high:.3f}",
    )


def _tables_agree() -> Finding:
    off, cells = 0, 0
    for name, keys in (
        ("main_results", ["model", "method", "k"]),
        ("group_size", ["method", "group_size", "k"]),
        ("controls", ["method", "k"]),
    ):
        wide = reported_table(name).dropna().pivot_table(index=keys, columns="benchmark", values="value")
        for average, parts in (("average_math", MATH), ("average_ood", OOD)):
            difference = (wide[average] - wide[list(parts)].mean(axis=1)).abs()
            off, cells = off + int((difference > 0.1 + 1e-9).sum()), cells + difference.size
    main = reported_table("main_results")
    main["base_method"] = main["method"].str.removeprefix("F-")
    both = main.merge(reported_table("pass_at_k"), on=["model", "base_method", "focal", "benchmark", "k"])
    other = int((both["value_x"] != both["value_y"]).sum())
    return holds(
        off == 0 and other == 0,
        f"{off} of {cells} averages are not the mean of their benchmarks within rounding; {other} of {len(both)} values differ between Table 1 and "
        "Tables 12 to 14",
        Verdict.DIFFERS,
    )


def _rare_trajectories() -> Finding:
    prompts, rollouts, percent, chosen = (
        int(reported_setting(f"nll.{key}"))
        for key in ("prompts", "rollouts_per_prompt", "rare_top_percent", "trajectories")
    )
    rate = chosen * 100 / percent / (prompts * rollouts)
    return holds(
        0 < rate < 1,
        f"{chosen} = {percent} % of about {chosen * 100 // percent} correct among {prompts} x {rollouts} rollouts: a base success rate of {rate:.3f}",
    )


EVALUATION_CLAIMS = (
    Claim(
        "F12",
        "App N",
        "The low learning rate's factor is B(3/2, gamma + 3/2) / B(3/2, 3/2) = (4/sqrt(pi)) Gamma(gamma + 3/2) / Gamma(gamma + 3); at gamma .5 the rate "
        "is 6.8e-7.",
        computed(_low_learning_rate),
        "Mean |A| is 2 sqrt(mu (1 - mu)), mu uniform. Scope: with AdamW and norm clipping a scaled advantage and a scaled rate are different controls.",
        ("matched_learning_rate",),
    ),
    Claim(
        "F13",
        "App L.4",
        "The pass@k estimator is unbiased.",
        computed(_unbiased_estimator),
        "For n >= k and independent samples.",
    ),
    Claim(
        "F14",
        "App Q",
        "The paired test (m = 256 of n = 1024, 50,000 draws) has p < .05 iff the 95 % interval of the subsampling distribution excludes 0, a level of .05.",
        computed(_level_of_the_test),
        "Not implied is that its level is .05: read literally it is far below, so what it calls significant is safely so; with Politis' rescaling alone "
        "it is above. Given the problems, and without correction for many tests.",
    ),
    Claim(
        "F15",
        "Tables 1, 10 to 14",
        "The averages are those of the benchmarks, and the tables agree with each other.",
        computed(_tables_agree),
        "Not a sentence of the paper: a check of what the rows above are computed from.",
    ),
    Claim(
        "F16",
        "App M",
        "Of 256 prompts with 800 base rollouts each, the 1 % rarest correct ones are 1,263 trajectories.",
        computed(_rare_trajectories),
        "Not checkable beyond its consistency.",
    ),
)
