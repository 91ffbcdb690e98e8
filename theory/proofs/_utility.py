"""Proofs about what the weighted update follows in expectation, its large-N flow, and the rise of rare answers' NLL."""

from collections.abc import Callable
from typing import Any

import sympy as sp

from fgrpo.theory.proofs._algebra import INDEX, by_linearity, positive, vanishes
from fgrpo.theory.proofs._policy import (
    GROUPS,
    M_N,
    M_P,
    SAMPLED_CORRECT,
    UNSAMPLED_CORRECT,
    Q,
    explicit_rate,
    mass_rate,
)
from fgrpo.theory.proofs._proof import Proof, Step, Wrong
from fgrpo.theory.proofs._small_groups import Rollouts, expectation

_N, _MU_SYMBOL = sp.symbols("N mu", positive=True)
_HALF = sp.Rational(1, 2)

# --- utility --------------------------------------------------------------------------------------------------------


def _score_mean(mass: Any, probabilities: Any, parameter: Any, size: Any) -> Any:
    """Mean of d log p over the actions of a set, each with its share p / mass."""
    return sp.Sum(probabilities / mass * sp.diff(sp.log(probabilities), parameter), (INDEX, 1, size))


def _limit_utilities() -> tuple[tuple[Any, Any], ...]:
    """Pairs of gamma and F at N -> infinity with the population standard deviation."""
    mu = _MU_SYMBOL
    return (
        (sp.Integer(0), 2 * sp.asin(sp.sqrt(mu))),
        (_HALF, 2 * sp.sqrt(mu)),
        (sp.Integer(1), sp.sqrt(mu * (1 - mu)) + sp.asin(sp.sqrt(mu))),
    )


def _squares_vanish(difference: Any) -> bool:
    """For an expression in sqrt(mu), sqrt(1 - mu) with 0 < mu < 1: put mu = odds/(1 + odds)."""
    odds = sp.Symbol("odds", positive=True)
    return vanishes(sp.simplify(difference.subs(_MU_SYMBOL, odds / (1 + odds))))


def _utility_steps(slope: Callable[[Any], Any]) -> tuple[Step, ...]:
    """With slope(w) = the claimed F' for the mean strength w."""
    mu = _MU_SYMBOL
    theta = sp.Symbol("theta", real=True)
    size = sp.Symbol("n", integer=True, positive=True)
    p = sp.Function("p", positive=True)(INDEX, theta)
    m, kappa, gap, gamma = sp.symbols("m kappa D gamma", positive=True)
    mass = sp.Sum(p, (INDEX, 1, size))
    right, wrong = kappa * gap * (1 - m), -kappa * gap * m
    strength = kappa * gap * m * (1 - m)
    x, y = sp.symbols("x y", positive=True)
    generating = (mu * x + (1 - mu) * y) ** _N
    once = x * sp.diff(generating, x)
    twice = y * sp.diff(y * sp.diff(once, y), y)
    weighted = (twice / _N**3).subs({x: 1, y: 1})

    def pass_at(k: Any) -> Any:
        return 1 - (1 - mu) ** k

    return (
        Step(
            "mean score of a right rollout: E[d log p | right] = d mu / mu, any number of actions, any parametrisation",
            lambda: vanishes(_score_mean(mu, p, theta, size) - sp.diff(mass, theta) / mu),
        ),
        Step(
            "of a wrong one: -d mu / (1 - mu), since mu = 1 - (sum of the wrong probabilities)",
            lambda: vanishes(_score_mean(1 - mu, p, theta, size) + sp.diff(1 - mass, theta) / (1 - mu)),
        ),
        Step(
            "Given X the right rollouts are independent draws from the right answers, the wrong ones from the wrong",
            lemma="conditioning independent draws on their labels",
        ),
        Step(
            "With advantages kappa D (1 - m) and -kappa D m, m = X/N, kappa = g / (std + eps), the conditional mean of "
            "(1/N) sum A d log p is w(X) / (mu (1 - mu)) d mu, w = kappa D m (1 - m)",
            lambda: vanishes(m * right / mu - (1 - m) * wrong / (1 - mu) - slope(strength)),
        ),
        Step("F' = E[w(X)] / (mu (1 - mu)), and the direction is always d mu", lemma="tower property of expectation"),
        Step(
            "sum over groups of Pr x^X y^Y = (mu x + (1 - mu) y)^N",
            lemma="binomial theorem, for independent rollouts",
        ),
        Step(
            "gamma = 1, no standard deviation, N symbolic: F'/D = (N-1)/N^2 [(N-2)(1 - mu) + 1]",
            lambda: vanishes(slope(weighted) - (_N - 1) / _N**2 * ((_N - 2) * (1 - mu) + 1)),
        ),
        Step(
            "so F is proportional to (N-2) pass@2/2 + pass@1, pass@k = 1 - (1 - mu)^k",
            lambda: vanishes(slope(weighted) - (_N - 1) / _N**2 * sp.diff((_N - 2) * pass_at(2) / 2 + pass_at(1), mu)),
        ),
        Step(
            "N -> infinity: m -> mu, so F' -> g(mu) D / std", lemma="law of large numbers; w is bounded and continuous"
        ),
        Step(
            "no standard deviation: F = pass@(gamma + 1) / (gamma + 1) has slope (1 - mu)^gamma, gamma symbolic",
            lambda: vanishes(_in_failures(sp.diff(pass_at(gamma + 1) / (gamma + 1), mu) - (1 - mu) ** gamma)),
        ),
        Step(
            "population standard deviation: mu^(-1/2) (1 - mu)^(gamma - 1/2) is the slope of 2 arcsin sqrt(mu), 2 "
            "sqrt(mu), sqrt(mu (1 - mu)) + arcsin sqrt(mu) at gamma = 0, 1/2, 1",
            lambda: all(
                _squares_vanish(sp.diff(utility, mu) - (1 - mu) ** (power - _HALF) / sp.sqrt(mu))
                for power, utility in _limit_utilities()
            ),
        ),
    )


def _in_failures(difference: Any) -> Any:
    """The same in q = 1 - mu > 0, where powers combine."""
    return sp.powsimp(sp.expand(difference.subs(_MU_SYMBOL, 1 - sp.Symbol("q", positive=True))))


def _enumerated_update(q: Any) -> Any:
    """Mean update of q for p = (q, 1 - q), N = 2, centred rewards 1 and 0, no weight: A d log p / dq, exactly."""
    p = (q, 1 - q)
    score = (1 / q, -1 / (1 - q))

    def update(group: Rollouts) -> Any:
        mean = sp.Rational(group.count(0), 2)
        return sum((int(i == 0) - mean) * score[i] for i in group) / 2

    return expectation(p, 2, update)


UTILITY_GRADIENT = Proof(
    name="utility_gradient",
    statement="E[update] = F'(mu) grad mu with F'(mu) = E[w(X)] / (mu (1 - mu)), w = g D m (1 - m) / (std + eps), m = "
    "X/N: a weight of the success rate changes the length of the expected update, never its direction within a prompt",
    assumptions=(
        "one prompt, 0 < mu < 1; on-policy, unclipped, advantages weighted per sequence",
        "two reward levels, D = R_c - R_w; g, std functions of X/N alone",
    ),
    source="this project (Section 4 of v1 and v2 motivates the weight)",
    steps=_utility_steps(lambda w: w / (_MU_SYMBOL * (1 - _MU_SYMBOL))),
    wrong=Wrong(
        statement="F'(mu) = E[w(X)] / mu, as if only right rollouts carried a score",
        steps=_utility_steps(lambda w: w / _MU_SYMBOL),
        counterexample="two actions, mu = 1/2, N = 2, no weight, D = 1: the mean update of mu is 1/2; E[w] = 1/8, so "
        "the false formula gives 1/4",
        refutes=lambda: bool(_enumerated_update(_HALF) == _HALF != sp.Rational(1, 8) / _HALF),
    ),
)

# --- time change ----------------------------------------------------------------------------------------------------


def _mean_field() -> tuple[Any, Any]:
    """E[n_i (R_i - Rbar)] / (N (R_c - R_w)) for a correct and for a wrong action i of probability p, N symbolic."""
    p, q = sp.symbols("p Q", positive=True)
    mark, right, wrong = sp.symbols("s x y", positive=True)

    def mean(own: Any, rest_right: Any, rest_wrong: Any, is_right: int) -> Any:
        generating = (own * mark + rest_right * right + rest_wrong * wrong) ** _N
        count = mark * sp.diff(generating, mark)
        right_ones = right * sp.diff(count, right) + (mark * sp.diff(count, mark) if is_right else 0)
        # own + rest_right + rest_wrong = 1 makes every remaining power of the base 1
        at_one = {mark: 1, right: 1, wrong: 1}
        return sp.simplify(((count * is_right - right_ones / _N) / _N).subs(at_one))

    stated = p * (_N - 1) / _N
    return mean(p, q - p, 1 - q, 1) - stated * (1 - q), mean(p, q, 1 - q - p, 0) + stated * q


def _orbit(first_only: bool) -> tuple[Any, Any]:
    """Residual of dz/dt = weight v(z), z = Z(s), dZ/ds = v(Z), dt/ds = 1/g(Z), in two coordinates, right and wrong."""
    s = sp.Symbol("s", real=True)
    coordinates = [sp.Function(f"Z_{k}")(s) for k in (1, 2)]
    speeds = [sp.Function(f"v_{k}")(*coordinates) for k in (1, 2)]
    g = sp.Function("g", positive=True)(*coordinates)
    time = sp.Function("t")(s)
    flow = {sp.diff(z, s): v for z, v in zip(coordinates, speeds, strict=True)} | {sp.diff(time, s): 1 / g}
    weights = (g, 1 if first_only else g)
    rates = [(sp.diff(z, s) / sp.diff(time, s)).subs(flow) for z in coordinates]
    residuals = [rate - weight * v for rate, weight, v in zip(rates, weights, speeds, strict=True)]
    return residuals[0], residuals[1]


def _time_steps(first_only: bool) -> tuple[Step, ...]:
    """With first_only: the weight multiplies the advantages of right rollouts only."""
    q, gap, failure, gamma = sp.symbols("Q D 1-mu gamma", positive=True)
    gains = (1 - q, -q, 1 - q, -q)  # sampled or not, an action moves by p_i Q_neg if right and by -p_i Q if wrong
    step = [(group, gap * group.probability * gain) for group, gain in zip(GROUPS, gains, strict=True)]
    value = gap * ((1 - Q) ** 2 * M_P + Q**2 * M_N)
    return (
        Step(
            "E[n_i (R_i - Rbar)] / N = D (N-1)/N p_i (Q_neg if correct, -Q if wrong), N symbolic",
            lambda: all(vanishes(residual) for residual in _mean_field()),
        ),
        Step(
            "so at N -> infinity the flow of GRPO is dz_i/dt = v_i(z) = D p_i (Q_neg | -Q), up to one positive scalar "
            "1/std, and that of F-GRPO is g(Q) v(z)",
            lemma="law of large numbers: m -> Q; the mean of the multinomial is checked in the step before",
        ),
        Step("g = (1 - mu)^gamma > 0 for mu < 1", lambda: positive(failure**gamma)),
        Step(
            "If Z(s) solves dZ/ds = v(Z) and dt/ds = 1/g(Z), then z = Z(s(t)) solves dz/dt = g(z) v(z), in each "
            "coordinate",
            lambda: all(vanishes(residual) for residual in _orbit(first_only)),
        ),
        Step(
            "t is a strictly increasing function of s, so both flows run through the same curve in the same order",
            lemma="Picard-Lindelof uniqueness; a positive derivative makes t(s) invertible",
        ),
        Step(
            "The mass rises along it: dQ/ds = D (Q_neg^2 M_P + Q^2 M_N), so Q labels the points of the curve",
            lambda: vanishes(by_linearity(mass_rate((SAMPLED_CORRECT, UNSAMPLED_CORRECT), step)).subs(q, Q) - value),
        ),
    )


def _share_of_rise(weight_right: Any, weight_wrong: Any) -> Any:
    """Change of the second action over that of Q_pos, for p = (1/2 right, 1/4 right, 1/4 wrong)."""
    p = (_HALF, _HALF / 2, _HALF / 2)
    dz = [p[0] / 4 * weight_right, p[1] / 4 * weight_right, -p[2] * sp.Rational(3, 4) * weight_wrong]
    return explicit_rate(p, dz, (1,)) / explicit_rate(p, dz, (0, 1))


TIME_CHANGE = Proof(
    name="time_change",
    statement="As N -> infinity GRPO and F-GRPO run through identical curves of logits from the same start, hence "
    "identical curves (Q_pos, M_ret); the focal weight changes only the time, dt = ds / g",
    assumptions=(
        "one prompt, tabular softmax, exact gradient flow (no Adam, no clipping, small steps)",
        "the weight is one positive scalar for all actions; mu < 1 along the curve",
    ),
    source="this project",
    steps=_time_steps(False),
    wrong=Wrong(
        statement="the same holds if the weight multiplies only the advantages of right rollouts",
        steps=_time_steps(True),
        counterexample="p = (1/2 right, 1/4 right, 1/4 wrong): the second action takes 1/7 of the rise of Q_pos "
        "without a weight and with weight 1/2 on all, but 5/23 with weight 1/2 on the right rollouts only",
        refutes=lambda: bool(
            _share_of_rise(1, 1) == _share_of_rise(_HALF, _HALF) == sp.Rational(1, 7)
            and _share_of_rise(_HALF, 1) == sp.Rational(5, 23)
        ),
    ),
)

# --- NLL ------------------------------------------------------------------------------------------------------------


def _nll_steps(set_mass_term: int) -> tuple[Step, ...]:
    """With set_mass_term = 1 as stated, 0 to leave log(pi_0(S) / pi_t(S)) out."""
    before, after = (sp.IndexedBase(name, positive=True)[INDEX] for name in ("p", "q"))
    size = sp.Symbol("n", integer=True, positive=True)
    mass_0, mass_t, x, single_0, single_t = sp.symbols("P_0 P_t x p q", positive=True)

    def mean(log_ratio: Any) -> Any:
        """Sum over S of (p / P_0) times an expanded logarithm, with the sum of p equal to P_0."""
        total = sp.Sum(before / mass_0 * sp.expand_log(log_ratio), (INDEX, 1, size))
        return by_linearity(total).subs(sp.Sum(before, (INDEX, 1, size)), mass_0)

    above = x - 1 - sp.log(x)
    conditional = (before / mass_0) / (after / mass_t)
    return (
        Step(
            "action by action: log(p/q) = log((p/P_0) / (q/P_t)) + log(P_0/P_t)",
            lambda: vanishes(
                sp.expand_log(sp.log(single_0 / single_t))
                - sp.expand_log(sp.log((single_0 / mass_0) / (single_t / mass_t)))
                - set_mass_term * sp.expand_log(sp.log(mass_0 / mass_t))
            ),
        ),
        Step(
            "in the mean over S with weights p/P_0, any number of actions: E[log(p/q)] = KL + log(P_0/P_t)",
            lambda: vanishes(
                mean(sp.log(before / after))
                - mean(sp.log(conditional))
                - set_mass_term * sp.expand_log(sp.log(mass_0 / mass_t))
            ),
        ),
        Step(
            "x - 1 - log x has value 0 and slope 0 at x = 1 and second derivative 1/x^2 > 0",
            lambda: (
                vanishes(above.subs(x, 1))
                and vanishes(sp.diff(above, x).subs(x, 1))
                and positive(sp.diff(above, x, 2))
                and vanishes(sp.diff(above, x, 2) - 1 / x**2)
            ),
        ),
        Step(
            "so -log x >= 1 - x, and KL >= sum over S of (p/P_0 - q/P_t)",
            lemma="a convex function lies above its tangents",
        ),
        Step(
            "which is 0",
            lambda: vanishes(
                by_linearity(sp.Sum(before / mass_0 - after / mass_t, (INDEX, 1, size)))
                .subs(sp.Sum(before, (INDEX, 1, size)), mass_0)
                .subs(sp.Sum(after, (INDEX, 1, size)), mass_t)
            ),
        ),
    )


def _rise_and_kl() -> tuple[Any, Any]:
    before, after = sp.Matrix([1, 1]) / 4, sp.Matrix([1, 1]) / 8

    def mean_log_ratio(p: Any, q: Any) -> Any:
        return sp.simplify(sum(a / sum(p) * sp.log(a / b) for a, b in zip(p, q, strict=True)))

    return mean_log_ratio(before, after), mean_log_ratio(before / sum(before), after / sum(after))


NLL_IDENTITY = Proof(
    name="nll_identity",
    statement="E[log pi_0/pi_t under pi_0 given S] = KL(pi_0(.|S) || pi_t(.|S)) + log(pi_0(S)/pi_t(S)), KL >= 0: the "
    "rise of the NLL over a set mixes redistribution within it with the change of its mass",
    assumptions=(
        "NLL summed over the sequence (a length-normalised NLL has no such identity)",
        "finite S, pi_0 and pi_t positive on it",
    ),
    source="this project (the diagnostic: App. M in v2)",
    steps=_nll_steps(1),
    wrong=Wrong(
        statement="the same without the term log(pi_0(S)/pi_t(S))",
        steps=_nll_steps(0),
        counterexample="pi_0 = (1/4, 1/4), pi_t = (1/8, 1/8) on S: the rise is log 2, the conditional laws agree and "
        "KL = 0",
        refutes=lambda: bool(_rise_and_kl() == (sp.log(2), 0)),
    ),
)
