"""Proofs about the focal weight at finite group size, alone and together with the tail miss."""

from collections.abc import Callable
from typing import Any

import sympy as sp

from fgrpo.theory.proofs._algebra import non_negative, positive, vanishes
from fgrpo.theory.proofs._proof import Proof, Step, Wrong
from fgrpo.theory.proofs._small_groups import expectation, rare_right_wrong, share_correct, tail_miss

_N = sp.Symbol("N", positive=True)
_B, _C = sp.symbols("b c", positive=True)
_A = _B + _C
_X, _Y = sp.symbols("x y", positive=True)
_J = sp.Symbol("j", nonnegative=True, integer=True)
_HALF, _QUARTER = sp.Rational(1, 2), sp.Rational(1, 4)
_EVENT = "a = 1 - tau, b = mu - tau, c = 1 - mu; X right rollouts of N, Y = N - X; 0 < tau < mu < 1"

# Marks x for a rollout that is right and not rare, y for a wrong one; no rare rollout at all.
_GENERATING = (_B * _X + _C * _Y) ** _N

_PGF = Step(
    "sum over the groups without a rare rollout of Pr x^X y^Y = (b x + c y)^N",
    lemma="binomial theorem, for independent rollouts",
)


def _theta(expression: Any, mark: Any) -> Any:
    """The operator mark d/dmark, which multiplies the term with mark^k by k."""
    return mark * sp.diff(expression, mark)


def _wrong_power_mean(gamma: int) -> Any:
    """E[(Y/N)^gamma on groups without a rare rollout], N symbolic."""
    value = _GENERATING
    for _ in range(gamma):
        value = _theta(value, _Y)
    return value.subs({_X: 1, _Y: 1}) / _N**gamma


def _stirling_sum(gamma: int) -> Any:
    """sum_j S(gamma, j) N (N-1) ... (N-j+1) c^j a^(N-j) / N^gamma, as polynomials in N times powers."""
    terms = (
        sp.functions.combinatorial.numbers.stirling(gamma, j) * sp.expand_func(sp.ff(_N, j)) * _C**j * _A ** (_N - j)
        for j in range(gamma + 1)
    )
    return sum(terms) / _N**gamma


def _stirling_induction() -> bool:
    """Theta of y^j c^j F_j (b + c y)^(N-j) is j times itself plus the next term, F_j = N (N-1) ... (N-j+1)."""
    falling = sp.Symbol("F_j", positive=True)

    def term(j: Any, factor: Any) -> Any:
        return factor * (_C * _Y) ** j * (_B + _C * _Y) ** (_N - j)

    return vanishes(_theta(term(_J, falling), _Y) - _J * term(_J, falling) - term(_J + 1, falling * (_N - _J)))


_INDUCTION = (
    Step(
        "Each mean of (Y/N)^gamma is (y d/dy)^gamma of the generating function at y = 1, over N^gamma; y d/dy takes "
        "the j-th Stirling term to j times itself plus the (j+1)-th, N and j symbolic",
        _stirling_induction,
    ),
    Step(
        "so every whole gamma has the sum over j of S(gamma, j) N^(j) c^j a^(N-j) / N^gamma",
        lemma="induction on gamma: the recurrence S(gamma+1, j) = j S(gamma, j) + S(gamma, j-1) of the Stirling "
        "numbers",
    ),
    Step(
        "directly at gamma = 1, 2, 3, 4, N symbolic",
        lambda: all(vanishes(_wrong_power_mean(gamma) - _stirling_sum(gamma)) for gamma in (1, 2, 3, 4)),
    ),
)

# --- focal-weighted tail miss ---------------------------------------------------------------------------------------


def _focal_steps(gamma_1: Any) -> tuple[Step, ...]:
    """With gamma_1 = the claimed E[g 1_B] at gamma = 1."""
    log_c, log_a = sp.symbols("Lambda lambda", positive=True)  # -ln c > -ln a
    peak = 1 + sp.log(log_c / log_a) / (log_c - log_a)
    m = _N - 1
    right_share = (_theta(_GENERATING, _X) / _N).subs({_X: 1, _Y: 1}) - _B**_N
    gamma_2 = _C**2 * _A ** (_N - 2) * (1 - 1 / _N) + _C * _A ** (_N - 1) / _N - _C**_N
    slope = sp.diff(sp.exp(-log_a * m) - sp.exp(-log_c * m), _N)
    gap, excess = sp.symbols("gap M", positive=True)
    bracket = (log_a + gap) * sp.exp(-gap * excess) - log_a
    return (
        _PGF,
        Step(
            "Of the groups without a rare rollout only the all-wrong one (probability c^N, Y = N) counts for gamma > 0 "
            "and is not active",
            lemma="definition of B: active and no rare rollout; an all-right group has Y = 0",
        ),
        Step(
            "gamma = 1: E[(1 - X/N) 1_B] = c (a^(N-1) - c^(N-1)), N symbolic",
            lambda: vanishes(_wrong_power_mean(1) - _C**_N - gamma_1),
        ),
        Step(
            "gamma = 2: c^2 a^(N-2) (1 - 1/N) + c a^(N-1)/N - c^N, N symbolic",
            lambda: vanishes(_wrong_power_mean(2) - _C**_N - gamma_2),
        ),
        Step(
            "E[(X/N) 1_B] = b (a^(N-1) - b^(N-1)), and the two shares add up to Pr(B): the positive split of lemma_3_1",
            lambda: (
                vanishes(right_share - _B * (_A ** (_N - 1) - _B ** (_N - 1)))
                and vanishes(gamma_1 + right_share - (_A**_N - _B**_N - _C**_N))
            ),
        ),
        *_INDUCTION,
        Step(
            "gamma = 1: the slope in N vanishes at N = 1 + ln(Lambda/lambda) / (Lambda - lambda)",
            # Lambda exp(-Lambda M) = lambda exp(-lambda M), both positive: compare the logarithms
            lambda: (
                vanishes(sp.log(log_c) - log_c * (peak - 1) - sp.log(log_a) + log_a * (peak - 1))
                and vanishes(slope - log_c * sp.exp(-log_c * m) + log_a * sp.exp(-log_a * m))
            ),
        ),
        Step(
            "and nowhere else: slope = exp(-lambda M) (Lambda exp(-(Lambda - lambda) M) - lambda), whose bracket "
            "strictly falls in M = N - 1",
            lambda: (
                vanishes(slope.subs(log_c, log_a + gap) - sp.exp(-log_a * m) * bracket.subs(excess, m))
                and positive(-sp.diff(bracket, excess))
            ),
        ),
    )


def _enumerated(value: Callable[[tuple[int, ...]], Any]) -> Any:
    """Over groups of two with mu = 1/2, tau = 1/4, on the tail miss."""
    return expectation(rare_right_wrong(_QUARTER, _HALF), 2, lambda group: tail_miss(group) * value(group))


def _plug_in_counterexample() -> bool:
    p = rare_right_wrong(_QUARTER, sp.Rational(3, 4))
    exact = expectation(p, 2, lambda group: tail_miss(group) * (1 - share_correct(group)))
    plug_in = p[2] * expectation(p, 2, tail_miss)
    return bool(exact == sp.Rational(1, 8) and plug_in == sp.Rational(1, 16))


FOCAL_TAIL_MISS = Proof(
    name="focal_tail_miss",
    statement="E[(1 - X/N) 1_B] = c (a^(N-1) - c^(N-1)); E[(1 - X/N)^2 1_B] = c^2 a^(N-2) (1 - 1/N) + c a^(N-1)/N - "
    "c^N; for whole gamma >= 1 the Stirling sum minus c^N. At gamma = 1 the one peak in real N is 1 + 1/LM(-ln c, -ln "
    "a), LM the logarithmic mean",
    assumptions=(_EVENT,),
    source="this project",
    steps=_focal_steps(_C * (_A ** (_N - 1) - _C ** (_N - 1))),
    wrong=Wrong(
        statement="E[(1 - X/N) 1_B] = (1 - mu) Pr(B), the weight at the true success rate",
        steps=_focal_steps(_C * (_A**_N - _B**_N - _C**_N)),
        counterexample="mu = 3/4, tau = 1/4, N = 2: enumeration gives 1/8, the false formula 1/16",
        refutes=_plug_in_counterexample,
    ),
)


# --- advantage-weighted tail miss -----------------------------------------------------------------------------------


def _advantage_steps(share: Any) -> tuple[Step, ...]:
    """With share = the claimed share of update strength that comes from tail-miss groups."""
    mixed = _theta(_theta(_GENERATING, _X), _Y)
    strength = mixed.subs({_X: 1, _Y: 1}) / _N**2
    weighted = _theta(mixed, _Y).subs({_X: 1, _Y: 1}) / _N**3
    tau, log_a, excess = sp.symbols("tau lambda M", positive=True)
    mu = _B + tau
    balance = 1 / (_N * (_N - 1))
    # every rollout right counts, rare or not; right and wrong now add up to 1
    total = strength.subs(_B, mu).subs(_A.subs(_B, mu), 1)
    return (
        _PGF,
        Step(
            "E[(X/N)(1 - X/N) on no rare rollout] = (N-1)/N b c a^(N-2), N symbolic; homogeneous groups contribute 0",
            lambda: vanishes(strength - (_N - 1) / _N * _B * _C * _A ** (_N - 2)),
        ),
        Step(
            "with g = 1 - X/N: (N-1)/N^2 b c a^(N-3) [(N-2) c + a]",
            lambda: vanishes(weighted - (_N - 1) / _N**2 * _B * _C * _A ** (_N - 3) * ((_N - 2) * _C + _A)),
        ),
        Step(
            "over all groups E[(X/N)(1 - X/N)] = (N-1)/N mu (1 - mu)",
            lambda: vanishes(total - (_N - 1) / _N * mu * _C),
        ),
        Step(
            "the share of tail-miss groups is (1 - tau/mu) (1 - tau)^(N-2)",
            lambda: vanishes(strength - share(tau, mu) * (_N - 1) / _N * mu * _C),
        ),
        Step(
            "which strictly falls in N: its logarithm has slope -lambda",
            lambda: vanishes(sp.simplify(sp.diff(sp.log(share(tau, mu).subs(_A, sp.exp(-log_a))), _N)) + log_a),
        ),
        Step(
            "(1 - 1/N) a^N has its peak where 1/(N (N-1)) = lambda, N = (1 + sqrt(1 + 4/lambda)) / 2; the left side "
            "strictly falls in N = 1 + M, so there is no other",
            lambda: (
                vanishes(sp.diff(sp.log(1 - 1 / _N) - log_a * _N, _N) - (balance - log_a))
                and vanishes(balance.subs(_N, (1 + sp.sqrt(1 + 4 / log_a)) / 2) - log_a)
                and positive(-sp.diff(balance.subs(_N, 1 + excess), excess))
            ),
        ),
    )


def _share_counterexample() -> bool:
    def strength(group: tuple[int, ...]) -> Any:
        return share_correct(group) * (1 - share_correct(group))

    everything = expectation(rare_right_wrong(_QUARTER, _HALF), 2, strength)
    return bool(_enumerated(strength) / everything == _HALF)


ADVANTAGE_WEIGHTED_TAIL_MISS = Proof(
    name="advantage_weighted_tail_miss",
    statement="E[m (1 - m) 1_B] = (N-1)/N b c a^(N-2), m = X/N; with g = 1 - m it is (N-1)/N^2 b c a^(N-3) [(N-2) c + "
    "a]; the share of E[m (1 - m)] that tail-miss groups carry is (1 - tau/mu)(1 - tau)^(N-2), strictly falling in N",
    assumptions=(_EVENT, "N >= 2"),
    source="this project",
    steps=_advantage_steps(lambda tau, mu: (1 - tau / mu) * _A ** (_N - 2)),
    wrong=Wrong(
        statement="the share is (1 - tau)^(N-2)",
        steps=_advantage_steps(lambda tau, mu: _A ** (_N - 2)),
        counterexample="mu = 1/2, tau = 1/4, N = 2: half of E[m (1 - m)] comes from tail-miss groups, not all of it",
        refutes=_share_counterexample,
    ),
)


# --- moments of the weight ------------------------------------------------------------------------------------------


def _moment_steps(gamma_2: Any) -> tuple[Step, ...]:
    """With gamma_2 = the claimed E[g] at gamma = 2, in c = 1 - mu and N."""
    extra = sp.Symbol("extra", nonnegative=True)

    def mean(gamma: int) -> Any:
        return _wrong_power_mean(gamma).subs(_B, 1 - _C)  # no rare region: b = mu, a = 1

    return (
        _PGF,
        *_INDUCTION,
        Step("gamma = 1: E[g] = 1 - mu, unbiased (tau = 0: a = 1)", lambda: vanishes(mean(1) - _C)),
        Step(
            "gamma = 2: E[g] = (1 - mu)^2 + mu (1 - mu)/N",
            lambda: vanishes(mean(2) - gamma_2),
        ),
        Step(
            "Var g at gamma = 1 is mu (1 - mu)/N",
            lambda: vanishes(mean(2) - mean(1) ** 2 - (1 - _C) * _C / _N),
        ),
        Step(
            "On active groups X = N - 1 - extra, extra >= 0, so 1 - X/N = 1/N + extra/N >= 1/N",
            lambda: vanishes((1 - (_N - 1 - extra) / _N) - 1 / _N - extra / _N) and non_negative(extra / _N),
        ),
        Step("hence g >= N^-gamma there", lemma="v -> v^gamma does not fall on [0, 1] for gamma >= 0"),
        Step(
            "E[g] >= (1 - mu)^gamma for gamma >= 1, <= for 0 <= gamma <= 1",
            lemma="Jensen's inequality: v -> v^gamma is convex, or concave, on [0, 1], and E[1 - X/N] = 1 - mu",
        ),
    )


FOCAL_WEIGHT_MOMENTS = Proof(
    name="focal_weight_moments",
    statement="For whole gamma E[(1 - X/N)^gamma] = sum over j of S(gamma, j) N (N-1) ... (N-j+1) (1 - mu)^j / "
    "N^gamma: 1 - mu at gamma = 1, (1 - mu)^2 + mu (1 - mu)/N at gamma = 2; g >= N^-gamma on active groups",
    assumptions=("N >= 1 independent rollouts, each right with probability 0 < mu < 1, X of them right",),
    source="this project (the weight: Section 4.1, v1 and v2)",
    steps=_moment_steps(_C**2 + _C * (1 - _C) / _N),
    wrong=Wrong(
        statement="E[g] = (1 - mu)^2 at gamma = 2",
        steps=_moment_steps(_C**2),
        counterexample="mu = 1/2, N = 2: enumeration gives 3/8, not 1/4",
        refutes=lambda: bool(
            expectation((0, _HALF, _HALF), 2, lambda group: (1 - share_correct(group)) ** 2) == sp.Rational(3, 8)
        ),
    ),
)

# --- matched learning rate ------------------------------------------------------------------------------------------


def _beta(p: Any, q: Any) -> Any:
    return sp.gamma(p) * sp.gamma(q) / sp.gamma(p + q)


def _learning_rate_steps(power: Any) -> tuple[Step, ...]:
    """With (mu (1 - mu))^power as the claimed strength of the unweighted update."""
    gamma, odds, alpha, beta = sp.symbols("gamma odds alpha beta", positive=True)  # odds = (1 - m)/m
    stated = 4 / sp.sqrt(sp.pi) * sp.gamma(gamma + sp.Rational(3, 2)) / sp.gamma(gamma + 3)
    any_spread = _beta(alpha + power, beta + gamma + power) / _beta(alpha + power, beta + power)
    ratio = any_spread.subs({alpha: 1, beta: 1})
    arcsine = any_spread.subs({alpha: _HALF, beta: _HALF})
    values = {_HALF: 32 / (15 * sp.pi), 1: _HALF, 2: sp.Rational(5, 16)}

    def share(success: Any) -> Any:
        return success * sp.sqrt((1 - success) / success) + (1 - success) * sp.sqrt(success / (1 - success))

    return (
        Step(
            "mean |A| over a group is m sqrt((1-m)/m) + (1-m) sqrt(m/(1-m)) = 2 (m (1 - m))^power, with 1 - m = odds m",
            lambda: vanishes(share(1 / (1 + odds)) - 2 * (odds / (1 + odds) ** 2) ** power),
        ),
        Step(
            "against mu^(alpha-1) (1 - mu)^(beta-1), the integrals of (1 - mu)^gamma (mu (1 - mu))^power and of "
            "(mu (1 - mu))^power over [0, 1] are B(alpha + power, beta + gamma + power) and B(alpha + power, beta + "
            "power)",
            lemma="Euler's beta integral, B(p, q) = Gamma(p) Gamma(q) / Gamma(p + q)",
        ),
        Step(
            "at alpha = beta = 1 their ratio is (4/sqrt(pi)) Gamma(gamma + 3/2) / Gamma(gamma + 3), gamma symbolic",
            lambda: vanishes(sp.gammasimp(ratio - stated)),
        ),
        Step(
            "gamma = 0 gives 1 for every alpha and beta; at alpha = beta = 1 gamma = 1/2, 1, 2 give 32/(15 pi), 1/2, "
            "5/16; at alpha = beta = 1/2, where the root cancels the density, it is 1/(1 + gamma)",
            lambda: (
                vanishes(any_spread.subs(gamma, 0) - 1)
                and vanishes(sp.gammasimp(arcsine) - 1 / (1 + gamma))
                and all(vanishes(ratio.subs(gamma, at) - value) for at, value in values.items())
            ),
        ),
    )


def _rootless() -> Any:
    mu = sp.Symbol("mu", positive=True)
    strength = mu * (1 - mu)
    return sp.integrate(sp.expand((1 - mu) ** 2 * strength), (mu, 0, 1)) / sp.integrate(sp.expand(strength), (mu, 0, 1))


MATCHED_LEARNING_RATE = Proof(
    name="matched_learning_rate",
    statement="m_gamma = E[(1 - mu)^gamma sqrt(mu (1 - mu))] / E[sqrt(mu (1 - mu))] = B(alpha + 1/2, beta + gamma + "
    "1/2) / B(alpha + 1/2, beta + 1/2), for uniform success rates (4/sqrt(pi)) Gamma(gamma + 3/2) / Gamma(gamma + 3)",
    assumptions=(
        "mean |A| as the measure of update strength, population standard deviation, no epsilon",
        "success rates Beta(alpha, beta) over prompts (alpha = beta = 1: uniform), weight at the true one (large N)",
    ),
    source="App. N in v2 (no number known for v1) for the uniform spread; the Beta spread: this project",
    steps=_learning_rate_steps(_HALF),
    wrong=Wrong(
        statement="the same with mu (1 - mu), without the square root",
        steps=_learning_rate_steps(sp.Integer(1)),
        counterexample="gamma = 2: the integrals without the root give 3/10, the stated value is 5/16",
        refutes=lambda: _rootless() == sp.Rational(3, 10) != sp.Rational(5, 16),
    ),
)
