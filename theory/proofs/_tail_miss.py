"""Proofs about Lemma 3.1 and the shape of the tail-miss probability in the group size."""

from collections.abc import Callable
from typing import Any

import sympy as sp

from fgrpo.theory.proofs._algebra import positive, vanishes
from fgrpo.theory.proofs._proof import Proof, Step, Wrong
from fgrpo.theory.proofs._small_groups import expectation, rare_right_wrong, tail_miss

Formula = Callable[[Any], Any]

_N = sp.Symbol("N", positive=True)
_TAU, _B, _C = sp.symbols("tau b c", positive=True)  # rare, right but not rare, wrong: they add up to 1
_A = _B + _C
_EVENT = "a = 1 - tau, b = mu - tau, c = 1 - mu, so a = b + c; 0 < tau < mu < 1"


def _pr(n: Any) -> Any:
    return _A**n - _B**n - _C**n


def _enumerated(mu: Any, tau: Any, n: int) -> Any:
    return expectation(rare_right_wrong(tau, mu), n, tail_miss)


# --- Lemma 3.1 ------------------------------------------------------------------------------------------------------


def _lemma_steps(pr: Formula) -> tuple[Step, ...]:
    u, w = _B / _A, _C / _A
    mu = _B + _TAU
    return (
        Step(
            "The event 'no rare rollout' is the disjoint union of: tail miss, all correct and none rare, all wrong. "
            "With one more rollout the three probabilities evolve as Pr_(N+1)(B) = a Pr_N(B) + c b^N + b c^N, b^(N+1), "
            "c^(N+1)",
            lemma="independence of the rollouts: the next one is rare, right but not rare, or wrong with tau, b, c",
        ),
        Step("Induction base: at N = 1 no group is active, and the formula gives 0", lambda: vanishes(pr(1))),
        Step(
            "Induction step, N symbolic: the formula satisfies Pr_(N+1) = a Pr_N + c b^N + b c^N",
            lambda: vanishes(pr(_N + 1) - _A * pr(_N) - _C * _B**_N - _B * _C**_N),
        ),
        Step(
            "Second route, inclusion-exclusion for N >= 1 over 'some rare' (1 - a^N), 'all correct' (mu^N), 'all "
            "wrong' (c^N), of which only the first two meet (mu^N - b^N): 1 - Pr(union) is the formula",
            lambda: vanishes(1 - ((1 - _A**_N) + mu**_N + _C**_N - (mu**_N - _B**_N)) - pr(_N)),
        ),
        Step(
            "Factorisation: Pr(B) = a^N (1 - u^N - w^N), u = b/a, w = c/a", lambda: vanishes(_factored(u, w) - pr(_N))
        ),
        Step(
            "Positive split: Pr(B) = b (a^(N-1) - b^(N-1)) + c (a^(N-1) - c^(N-1))",
            lambda: vanishes(_B * (_A ** (_N - 1) - _B ** (_N - 1)) + _C * (_A ** (_N - 1) - _C ** (_N - 1)) - pr(_N)),
        ),
        Step(
            "tau = 0 gives the active probability 1 - mu^N - (1 - mu)^N (put c = 1 - b)",
            lambda: vanishes(pr(_N).subs(_C, 1 - _B) - (1 - _B**_N - (1 - _B) ** _N)),
        ),
        Step(
            "N = 0: the formula gives -1 though the probability is 0 (with no rollouts 'all correct' and 'all wrong' "
            "coincide), so N >= 1 is needed",
            lambda: vanishes(pr(0) + 1),
        ),
    )


def _factored(u: Any, w: Any) -> Any:
    return _A**_N * (1 - u**_N - w**_N)


def _without_intersection(n: Any) -> Any:
    return _A**n - (_B + _TAU) ** n - _C**n


LEMMA_3_1 = Proof(
    name="lemma_3_1",
    statement="Pr(B_tau) = (1 - tau)^N - (mu - tau)^N - (1 - mu)^N",
    assumptions=(
        "N >= 1 rollouts, independent, each correct with probability mu and rare-correct with probability tau",
        "0 <= tau <= mu <= 1 (the checks take a, b, c > 0; the edges follow by continuity of polynomials)",
    ),
    source="Lemma 3.1 (v1 and v2); the factored and split forms: this project",
    steps=_lemma_steps(_pr),
    wrong=Wrong(
        statement="Pr(B_tau) = (1 - tau)^N - mu^N - (1 - mu)^N",
        steps=_lemma_steps(_without_intersection),
        counterexample="mu = 1/2, tau = 1/4, N = 2: enumeration gives 1/4, the false formula 1/16",
        refutes=lambda: (
            _enumerated(sp.Rational(1, 2), sp.Rational(1, 4), 2) == sp.Rational(1, 4)
            and _without_intersection(2).subs({_TAU: sp.Rational(1, 4), _B: sp.Rational(1, 4), _C: sp.Rational(1, 2)})
            == sp.Rational(1, 16)
        ),
    ),
)

# --- log-concavity --------------------------------------------------------------------------------------------------

_X, _Y, _LAM = sp.symbols("x y lambda", positive=True)  # u = exp(-x), w = exp(-y), 1 - tau = exp(-lambda)


def _h(n: Any) -> Any:
    return 1 - sp.exp(-_X * n) - sp.exp(-_Y * n)


def _concavity_steps(sign: int) -> tuple[Step, ...]:
    """With sign = 1 for 'concave', -1 for 'convex'."""
    h = sp.Function("h")(_N)
    value, second = sp.symbols("h h2", positive=True)
    first = sp.Symbol("h1", real=True)
    return (
        Step(
            "h'' = -x^2 u^N - y^2 w^N, where u = exp(-x), w = exp(-y)",
            lambda: vanishes(sp.diff(_h(_N), _N, 2) + _X**2 * sp.exp(-_X * _N) + _Y**2 * sp.exp(-_Y * _N)),
        ),
        Step("h'' has the claimed sign everywhere", lambda: positive(-sign * sp.diff(_h(_N), _N, 2))),
        Step("h' > 0 everywhere", lambda: positive(sp.diff(_h(_N), _N))),
        Step("h(1) = 0, because u + w = 1", lambda: vanishes(_h(1).subs(sp.exp(-_Y), 1 - sp.exp(-_X)))),
        Step("h > 0 for N > 1", lemma="a function with positive derivative is strictly increasing"),
        Step(
            "(ln(a^N h))'' = (h'' h - h'^2) / h^2: the factor a^N drops out",
            lambda: vanishes(
                sp.diff(-_LAM * _N + sp.log(h), _N, 2) - (sp.diff(h, _N, 2) * h - sp.diff(h, _N) ** 2) / h**2
            ),
        ),
        Step(
            "which has the sign of concavity for h > 0 and h'' of the claimed sign, whatever h' is",
            lambda: (-(-sign * second * value - first**2) / value**2).is_positive is True,
        ),
        Step(
            "{N > 1: Pr(B) > level} is an interval",
            lemma="superlevel sets of a concave function are intervals, applied to ln Pr(B)",
        ),
        Step(
            "the slope of ln Pr(B), h'/h - lambda, tends to -lambda < 0 as N -> infinity",
            lambda: sp.limit(sp.diff(_h(_N), _N), _N, sp.oo) / sp.limit(_h(_N), _N, sp.oo) - _LAM == -_LAM,
        ),
        Step(
            "one peak, in the interior",
            lemma="a strictly concave function that tends to -infinity at N -> 1 (h -> 0) and falls in the end has one",
        ),
        Step(
            "h(N) >= (N - 1) h'(N), hence at the peak, where h'/h = lambda: N - 1 <= 1/lambda",
            lemma="a concave function lies below its tangents, applied at N to the point 1, where h(1) = 0",
        ),
        Step(
            "u = w = 1/2: the peak condition h' = lambda h is solved by N = 1 + log2(1 + ln 2 / lambda)",
            lambda: vanishes(sp.simplify((sp.diff(_h(_N), _N) - _LAM * _h(_N)).subs(_half()))),
        ),
    )


def _half() -> dict[Any, Any]:
    return {_X: sp.log(2), _Y: sp.log(2), _N: 1 + sp.log(1 + sp.log(2) / _LAM) / sp.log(2)}


LOG_CONCAVITY = Proof(
    name="log_concavity",
    statement="h(N) = 1 - u^N - w^N is strictly concave and Pr(B) = a^N h(N) strictly log-concave in real N > 1; it "
    "has one peak N* <= 1 + 1/lambda, lambda = -ln(1 - tau), and {N > 1: Pr(B) > level} is an interval",
    assumptions=("0 < tau < mu < 1, so 0 < u, w < 1, u + w = 1 and lambda > 0",),
    source="this project (Section 3.1 of v1 and v2 states the peak)",
    steps=_concavity_steps(1),
    wrong=Wrong(
        statement="h is strictly convex",
        steps=_concavity_steps(-1),
        counterexample="u = w = 1/2: h(1) + h(3) = 3/4 is below 2 h(2) = 1",
        refutes=lambda: bool(sp.Rational(3, 4) == sum(1 - 2 * sp.Rational(1, 2) ** n for n in (1, 3)) < 1),
    ),
)

# --- the integer peak -----------------------------------------------------------------------------------------------


def _rise(a: Any) -> Any:
    """f(3) / f(2), where f(N) = Pr(B) at N."""
    return 3 * a / 2


_RISE = Step("f(N) = Pr(B) at N: f(3) / f(2) = 3 a / 2", lambda: vanishes(_pr(3) / _pr(2) - _rise(_A)))


def _peak_steps(threshold: Any) -> tuple[Step, ...]:
    s = sp.Symbol("s", real=True)
    return (
        Step("f(1) = 0 and f(2) = 2 b c > 0", lambda: vanishes(_pr(1)) and vanishes(_pr(2) - 2 * _B * _C)),
        _RISE,
        Step(
            "tau = threshold + s: 1 - f(3)/f(2) = 3 s / 2, so f(3) <= f(2) if and only if s >= 0, with a tie at s = 0",
            lambda: vanishes(1 - _rise(1 - threshold - s) - 3 * s / 2),
        ),
        Step(
            "f(N+1)/f(N) strictly decreases for N >= 2, so nothing beyond 3 reaches f(2) once f(3) <= f(2)",
            lemma="proof log_concavity",
        ),
    )


INTEGER_PEAK = Proof(
    name="integer_peak",
    statement="Over whole N the peak of Pr(B) is at N = 2 if and only if tau >= 1/3, whatever mu is; at tau = 1/3 it "
    "is shared by N = 2 and N = 3",
    assumptions=(_EVENT,),
    source="this project",
    steps=_peak_steps(sp.Rational(1, 3)),
    wrong=Wrong(
        statement="... if and only if tau >= 1/4",
        steps=_peak_steps(sp.Rational(1, 4)),
        counterexample="tau = 3/10 > 1/4, mu = 1/2: Pr(B) is larger at N = 3 than at N = 2",
        refutes=lambda: bool(
            _enumerated(sp.Rational(1, 2), sp.Rational(3, 10), 3)
            > _enumerated(sp.Rational(1, 2), sp.Rational(3, 10), 2)
        ),
    ),
)

# --- per rollout ----------------------------------------------------------------------------------------------------


def _per_rollout_steps(power: int) -> tuple[Step, ...]:
    """Pr(B) / N^power: power = 1 per rollout, power = 0 per step."""
    h = sp.Function("h")(_N)
    return (
        _RISE,
        Step(
            "so from N = 2 to N = 3 the quotient falls, by the factor a = 1 - tau < 1",
            lambda: positive(sp.expand(1 - sp.Rational(2, 3) ** power * _rise(1 - _TAU))),
        ),
        Step("(h/N)' = (N h' - h) / N^2", lambda: vanishes(sp.diff(h / _N, _N) - (_N * sp.diff(h, _N) - h) / _N**2)),
        Step(
            "(N h' - h)' = N h''",
            lambda: vanishes(sp.diff(_N * sp.diff(h, _N) - h, _N) - _N * sp.diff(h, _N, 2)),
        ),
        Step("N h'' < 0, so N h' - h changes sign at most once", lambda: positive(-_N * sp.diff(_h(_N), _N, 2))),
        Step(
            "h(2)/2 = h(3)/3 (w = 1 - u)",
            lambda: vanishes((1 - _B**2 - (1 - _B) ** 2) / 2 - (1 - _B**3 - (1 - _B) ** 3) / 3),
        ),
        Step(
            "So the sign change lies in (2, 3), and h/N strictly decreases from N = 3 on; so does Pr(B)/N = a^N h/N",
            lemma="Rolle's theorem, and the sign of the derivative on either side",
        ),
    )


PER_ROLLOUT_MONOTONE = Proof(
    name="per_rollout_monotone",
    statement="Pr(B) / N strictly decreases over whole N >= 2. The peak of `log_concavity` is a statement per step (a "
    "fixed number of groups), this one per generated rollout: they answer different budgets, and neither contradicts "
    "the other",
    assumptions=(_EVENT,),
    source="this project",
    steps=_per_rollout_steps(1),
    wrong=Wrong(
        statement="Pr(B) itself strictly decreases over whole N >= 2",
        steps=_per_rollout_steps(0),
        counterexample="tau = 1/10, mu = 1/2: Pr(B) is larger at N = 3 than at N = 2",
        refutes=lambda: bool(
            _enumerated(sp.Rational(1, 2), sp.Rational(1, 10), 3)
            > _enumerated(sp.Rational(1, 2), sp.Rational(1, 10), 2)
        ),
    ),
)

# --- misses before the first hit ------------------------------------------------------------------------------------


def _first_hit_steps(count: Callable[[Any, Any], Any]) -> tuple[Step, ...]:
    """With count(pr, r) = expected number of misses, where r = a^N = Pr(no rare rollout in a group)."""
    pr, r, terms, x = sp.symbols("pr r K x", positive=True)
    m = (1 - x) * sp.exp(x) - 1
    return (
        Step(
            "The count is E = Pr(B) + r E, r = a^N: the first group misses or not, and with probability r it has no "
            "hit and everything starts again",
            lemma="groups are independent and alike; linearity of expectation (a tail miss is a group without a hit)",
        ),
        Step("The formula solves E = Pr(B) + r E", lambda: vanishes(count(pr, r) - pr - r * count(pr, r))),
        Step(
            "The same as a series: sum over t < K of r^t Pr(B) = Pr(B) (1 - r^K) / (1 - r), by induction on K",
            lambda: vanishes(_partial(terms + 1, r) - _partial(terms, r) - r**terms) and vanishes(_partial(0, r)),
        ),
        Step(
            "whose limit K -> infinity is the formula (r = exp(-x) < 1)",
            lambda: vanishes(pr * sp.limit(_partial(terms, sp.exp(-x)), terms, sp.oo) - count(pr, sp.exp(-x))),
        ),
        Step(
            "Decreasing in N: E = a^N h / (1 - a^N) = (h/N) k(N), k(N) = N / (exp(lambda N) - 1)",
            lambda: vanishes(
                count(sp.exp(-_LAM * _N) * pr, sp.exp(-_LAM * _N)) - (pr / _N) * _N / (sp.exp(_LAM * _N) - 1)
            ),
        ),
        Step("h/N does not increase over whole N >= 2", lemma="proof per_rollout_monotone, its steps for h"),
        Step(
            "d/dx [x/(e^x - 1)] = m(x) / (e^x - 1)^2 with m = (1 - x) e^x - 1",
            lambda: vanishes(sp.diff(x / (sp.exp(x) - 1), x) - m / (sp.exp(x) - 1) ** 2),
        ),
        Step(
            "m(0) = 0 and m' = -x e^x < 0 for x > 0",
            lambda: vanishes(m.subs(x, 0)) and positive(-sp.diff(m, x)),
        ),
        Step(
            "so k strictly decreases, and so does the product of h/N and k",
            lemma="sign of the derivative; a product of positive factors, one not increasing and one strictly "
            "decreasing",
        ),
    )


def _partial(terms: Any, r: Any) -> Any:
    return (1 - r**terms) / (1 - r)


def _first_hit_counterexample() -> bool:
    miss, none_rare = _enumerated(sp.Rational(1, 2), sp.Rational(1, 4), 2), sp.Rational(9, 16)
    false = miss * none_rare / (1 - none_rare)
    two_groups = miss * (1 + none_rare)  # misses among the first two groups only: a lower bound for the count
    return bool(false == sp.Rational(9, 28) and two_groups > false)


MISSES_BEFORE_FIRST_HIT = Proof(
    name="misses_before_first_hit",
    statement="The expected number of tail-miss groups before the first group with a rare rollout is "
    "Pr(B) / (1 - (1 - tau)^N), strictly decreasing over whole N >= 2",
    assumptions=(_EVENT, "groups of N rollouts are drawn one after the other from a fixed policy"),
    source="this project",
    steps=_first_hit_steps(lambda pr, r: pr / (1 - r)),
    wrong=Wrong(
        statement="it is Pr(B) (1 - tau)^N / (1 - (1 - tau)^N)",
        steps=_first_hit_steps(lambda pr, r: pr * r / (1 - r)),
        counterexample="mu = 1/2, tau = 1/4, N = 2: the false formula gives 9/28, fewer than the misses among the "
        "first two groups alone, (1 + 9/16) / 4",
        refutes=_first_hit_counterexample,
    ),
)
