import re
import subprocess
import sys
from pathlib import Path

import mpmath
import pytest
import sympy as sp

from fgrpo.theory import proofs
from fgrpo.theory.proofs import PROOFS, Proof, Report, Step, StepResult, to_markdown, verify, verify_all
from fgrpo.theory.proofs import _algebra as algebra
from fgrpo.theory.proofs import _policy as policy
from fgrpo.theory.proofs._small_groups import expectation, rare_right_wrong, tail_miss

NAMES = {
    "lemma_3_1",
    "log_concavity",
    "integer_peak",
    "per_rollout_monotone",
    "misses_before_first_hit",
    "logit_update",
    "correct_mass_change",
    "unsampled_mass_change",
    "sampled_mass_never_falls",
    "expected_change_positive",
    "finite_step_bound",
    "batch_baseline_monotone",
    "batch_baseline_dominance",
    "utility_gradient",
    "time_change",
    "focal_tail_miss",
    "advantage_weighted_tail_miss",
    "focal_weight_moments",
    "nll_identity",
    "matched_learning_rate",
}
each_proof = pytest.mark.parametrize("proof", PROOFS.values(), ids=PROOFS)


def test_registry_holds_the_named_proofs():
    assert set(PROOFS) == NAMES
    assert all(proof.name == name for name, proof in PROOFS.items())


@each_proof
def test_every_step_of_the_proof_stands(proof: Proof):
    report = proof.verify()
    assert report.ok, [step.text for step in report.failed]
    assert report.checked >= 1
    assert report.checked + report.on_lemmas == len(proof.steps)


@each_proof
def test_the_wrong_variant_fails_in_the_same_checks(proof: Proof):
    report = proof.wrong.verify()
    assert not report.ok
    assert report.failed
    assert all(step.how == "sympy" for step in report.failed)
    # nothing but the falsified statement differs: texts and lemmas are those of the proof
    assert [(s.text, s.lemma) for s in proof.wrong.steps] == [(s.text, s.lemma) for s in proof.steps]


@each_proof
def test_the_wrong_variant_is_false_not_merely_unproved(proof: Proof):
    assert proof.wrong.refutes() is True


def test_proofs_that_rest_on_each_other_exist_and_form_no_circle():
    rests_on = {
        name: {word for step in proof.steps for word in re.findall(r"proof (\w+)", step.lemma)}
        for name, proof in PROOFS.items()
    }
    assert set().union(*rests_on.values()) <= set(PROOFS)
    settled: set[str] = set()
    while len(settled) < len(PROOFS):
        ready = {name for name, needs in rests_on.items() if needs <= settled}
        assert ready > settled, f"circular: {set(PROOFS) - ready}"
        settled = ready


def test_docstrings_of_theory_name_only_proofs_that_exist():
    named = set()
    for path in Path(proofs.__file__).parents[1].glob("*.py"):
        for listing in re.findall(r"proofs? ((?:`\w+`(?:, | and )?)+)", path.read_text(encoding="utf-8")):
            named |= set(re.findall(r"`(\w+)`", listing))
    assert {"log_concavity", "integer_peak"} <= named <= set(PROOFS)


@each_proof
def test_source_says_where_in_the_paper_or_that_it_is_ours(proof: Proof):
    assert "this project" in proof.source or ("v1" in proof.source and "v2" in proof.source)
    assert proof.assumptions
    assert proof.statement


# --- verify and reports ---------------------------------------------------------------------------------------------


def test_verify_by_name_and_all():
    assert verify("integer_peak").name == "integer_peak"
    reports = verify_all()
    assert [report.name for report in reports] == list(PROOFS)
    assert all(report.ok for report in reports)


def test_unknown_proof_is_refused_in_one_line():
    with pytest.raises(
        ValueError, match="name must be a known proof, got 'lemma_9': choose one of lemma_3_1"
    ) as caught:
        verify("lemma_9")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("parts", [{}, {"check": lambda: True, "lemma": "Jensen's inequality"}])
def test_a_step_has_either_a_check_or_a_lemma(parts):
    with pytest.raises(ValueError, match="a step must have either a check or a lemma") as caught:
        Step("x = x", **parts)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("outcome", [False, None, sp.true, sp.Symbol("x"), 1])
def test_only_the_bool_true_passes_a_check(outcome):
    steps = (Step("sound", lambda: True), Step("undecided", lambda: outcome))
    report = Proof("p", "s", ("a",), "this project", steps, PROOFS["lemma_3_1"].wrong).verify()
    assert not report.ok
    assert [step.text for step in report.failed] == ["undecided"]


def test_a_proof_without_any_check_is_not_ok():
    assert not Report("p", (StepResult("all by authority", True, "lemma: somebody's", 0.0),)).ok


def test_report_prints_one_line_with_name_verdict_counts_and_seconds():
    good = StepResult("x = x", True, "sympy", 0.25)
    bad = StepResult("x = y", False, "sympy", 0.5)
    lemma = StepResult("cited", True, "lemma: Taylor's theorem", 0.0)
    assert str(Report("p", (good, lemma))) == "p: ok, 1 steps checked by sympy, 1 on named lemmas, 0.25 s"
    assert str(Report("p", (good, bad))) == "p: FAILED, 2 steps checked by sympy, 0 on named lemmas, 0.75 s"


@each_proof
def test_markdown_holds_the_statement_every_step_and_lemma(proof: Proof):
    text = to_markdown(proof)
    assert text.startswith(f"## {proof.name}\n")
    assert text.endswith(".\n")
    assert all(part in text for part in (proof.statement, proof.source, *proof.assumptions, proof.wrong.counterexample))
    assert all(step.text in text and step.lemma in text for step in proof.steps)
    assert text.count("*Checked by sympy.*") == sum(step.check is not None for step in proof.steps)


def test_theory_does_not_import_sympy():
    code = "import sys, fgrpo.theory, fgrpo.theory.tail_miss; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- the decisions that the checks rest on ----------------------------------------------------------------------------

X, Y, N = sp.symbols("x y N", positive=True)
REAL = sp.Symbol("z", real=True)
SIZE = sp.Symbol("n", integer=True, positive=True)
P = sp.IndexedBase("p", positive=True)
I = algebra.INDEX  # noqa: E741


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (X ** (N + 1) - X * X**N, True),
        (X ** (N + 1) - X**N, False),
        ((X + Y) ** N - X**N - Y**N, False),  # 0 at N = 1 only
        (sp.log(X * Y) - sp.log(X) - sp.log(Y), True),
        (sp.log(X + Y) - sp.log(X) - sp.log(Y), False),
        (sp.Sum(2 * P[I] + 3, (I, 1, SIZE)) - 2 * sp.Sum(P[I], (I, 1, SIZE)) - 3 * sp.Sum(1, (I, 1, SIZE)), True),
        (sp.Sum(P[I] ** 2, (I, 1, SIZE)) - sp.Sum(P[I], (I, 1, SIZE)) ** 2, False),  # 0 at n = 1 only
        (sp.Sum(P[I], (I, 1, SIZE)) - sp.Sum(P[I], (I, 1, SIZE + 1)), False),
    ],
)
def test_vanishes(expression, expected):
    assert algebra.vanishes(expression) is expected


@pytest.mark.parametrize(
    ("expression", "non_negative", "positive"),
    [
        (X + Y, True, True),
        (REAL**2, True, False),
        (X**2 - 2 * X * Y + Y**2, True, False),  # by factoring
        (REAL, False, False),
        (X - Y, False, False),
        (-X, False, False),
        (sp.Integer(0), True, False),
    ],
)
def test_signs(expression, non_negative, positive):
    assert algebra.non_negative(expression) is non_negative
    assert algebra.positive(expression) is positive


def test_linearity_keeps_the_value_of_nested_sums():
    k = sp.Symbol("k", integer=True)
    double = sp.Sum(sp.Sum(P[I] * (P[I] - 2 * P[k]) ** 2, (k, 1, SIZE)), (I, 1, SIZE))
    values = {P[1]: sp.Rational(1, 3), P[2]: sp.Rational(2, 5), P[3]: sp.Rational(1, 7)}
    split = algebra.by_linearity(double)
    assert split != double
    literal = sum(a * (a - 2 * b) ** 2 for a in values.values() for b in values.values())
    assert split.subs(SIZE, 3).doit().subs(values) == literal
    assert split.subs(SIZE, 3).doit().subs(values) != literal + 1


@pytest.mark.parametrize("order", [1, 2])
def test_mass_rate_is_the_derivative_of_the_softmax(order):
    """Two actions of each of the four kinds, against numerical differentiation of the literal softmax."""
    weights = [3, 1, 4, 1, 5, 9, 2, 6]
    probabilities = [sp.Rational(w, sum(weights)) for w in weights]
    rewards = [sp.Rational(3, 2)] * 2 + [sp.Rational(-1, 2)] * 2 + [0] * 4
    baseline = sum(p * r for p, r in zip(probabilities, rewards, strict=True))
    steps = [float(p * (r - baseline)) for p, r in zip(probabilities, rewards, strict=True)]
    members = (0, 1, 4, 5)

    def mass(t):
        terms = [float(p) * mpmath.exp(t * d) for p, d in zip(probabilities, steps, strict=True)]
        return sum(terms[i] for i in members) / sum(terms)

    rate = policy.mass_rate((policy.SAMPLED_CORRECT, policy.UNSAMPLED_CORRECT), policy.distinct_update(), order)
    values = {policy.R_C: sp.Rational(3, 2), policy.R_W: sp.Rational(-1, 2), policy.S_R: baseline}
    rate = rate.subs({group.size: 2 for group in policy.GROUPS}).doit()
    for k, group in enumerate(policy.GROUPS):
        base = group.probability.base
        values |= {base[1]: probabilities[2 * k], base[2]: probabilities[2 * k + 1]}
    assert float(rate.subs(values)) == pytest.approx(float(mpmath.diff(mass, 0, order)), rel=1e-8)


def test_enumeration_of_small_groups():
    p = rare_right_wrong(sp.Rational(1, 4), sp.Rational(1, 2))
    assert p == (sp.Rational(1, 4), sp.Rational(1, 4), sp.Rational(1, 2))
    assert expectation(p, 3, lambda group: 1) == 1
    # (1, 2) and (2, 1) are the only tail misses of two rollouts
    assert expectation(p, 2, tail_miss) == 2 * p[1] * p[2]
