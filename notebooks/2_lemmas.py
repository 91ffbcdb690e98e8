# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 2. The lemmas, tested live
#
# After this page you can
#
# - check the paper's formulas yourself: hypothesis draws cases, exact fractions or an exact step are the judge,
# - tell what a lemma says from what is sometimes read into it: hypothesis *finds* the smallest counterexample,
# - run the proof of a statement, checked by sympy.
#
# A property that fails prints the case in which it does. Change a formula below and see.

# %%
from fractions import Fraction
from math import comb
from random import Random

import numpy as np
from hypothesis import find, given, settings
from hypothesis import strategies as st

from fgrpo import theory
from fgrpo.theory.proofs import PROOFS, verify

live = settings(max_examples=200, derandomize=True, database=None, deadline=None)
twentieths = st.integers(1, 19).map(lambda k: Fraction(k, 20))

# %% [markdown]
# ## Lemma 3.1: the probability of a tail miss
#
# The judge enumerates every way in which N rollouts fall on 'rare and right', 'right', 'wrong', in exact fractions.


# %%
def enumerated_tail_miss(mu: Fraction, tau: Fraction, n: int) -> Fraction:
    """Groups without a rare rollout, with k right ones and 0 < k < N: the definition, word for word."""
    return sum((comb(n, k) * (mu - tau) ** k * (1 - mu) ** (n - k) for k in range(1, n)), Fraction(0))


@live
@given(mu=twentieths, share=twentieths, n=st.integers(1, 40))
def lemma_3_1(mu, share, n):
    closed_form = theory.tail_miss_probability(float(mu), float(share * mu), n)
    assert np.isclose(closed_form, float(enumerated_tail_miss(mu, share * mu, n)), rtol=1e-12)


lemma_3_1()
print("Lemma 3.1: no counterexample")

# %% [markdown]
# Would it notice a wrong formula? Leave out groups that are all right, and let hypothesis look:

# %%
mu, share, n = find(
    st.tuples(twentieths, twentieths, st.integers(2, 40)),
    lambda case: (
        (1 - case[0] * case[1]) ** case[2] - (1 - case[0]) ** case[2]
        != enumerated_tail_miss(case[0], case[0] * case[1], case[2])
    ),
    settings=live,
    random=Random(0),
)
print(f"(1 - tau)^N - (1 - mu)^N is wrong at mu = {mu}, tau = {mu * share}, N = {n}")

# %% [markdown]
# ## One peak, and per rollout a fall
#
# The paper shows the peak on its curves. It is there for all mu and tau: the probability is log-concave in N.


# %%
@live
@given(mu=st.floats(0.01, 0.99), share=st.floats(0.01, 0.99))
def one_peak_and_cheaper_per_rollout(mu, share):
    n = np.arange(2, 200)
    log_slope = np.diff(theory.tail_miss_probability(mu, mu * share, n, log=True))
    assert np.all(np.diff(log_slope) <= 1e-9)
    assert np.all(np.diff(theory.tail_miss_per_rollout(mu, mu * share, n)) <= 0)


one_peak_and_cheaper_per_rollout()
print("log-concave in N, and falling per rollout: no counterexample")

# %% [markdown]
# ## Proposition 3.2 and Eq 17: what one update moves
#
# A small softmax policy, some actions drawn, the update of Eq 5. The judge takes the step exactly; the formulas are
# first order in it, and the remainder is at most (range of the step)^2 / 8.


# %%
@st.composite
def drawn_groups(draw):
    """Policy, which actions are correct, and which were drawn, each of them once; one of either kind at least."""
    weights = draw(st.lists(st.integers(1, 5), min_size=3, max_size=5))
    flags = st.lists(st.booleans(), min_size=len(weights), max_size=len(weights))
    correct = draw(flags.filter(lambda these: 0 < sum(these) < len(these)))
    drawn = draw(flags.filter(any))
    return weights, correct, drawn


def arrays(group):
    weights, correct, drawn = group
    return np.array(weights) / sum(weights), np.array(correct), np.array(drawn)


@live
@given(group=drawn_groups(), learning_rate=st.floats(1e-4, 0.3))
def masses_move_as_stated(group, learning_rate):
    policy, correct, drawn = arrays(group)
    step = theory.logit_update(policy, correct, drawn, learning_rate=learning_rate)
    for formula, part in (
        (theory.correct_mass_change, correct),
        (theory.unsampled_correct_mass_change, correct & ~drawn),
    ):
        moved = theory.exact_mass_change(policy, step, part)
        stated = formula(policy, correct, drawn, learning_rate=learning_rate).total
        assert abs(moved - stated) <= theory.finite_step_bound(step) + 1e-15


masses_move_as_stated()
print("Eq 17 and Proposition 3.2: no counterexample")

# %% [markdown]
# ## What they do not say
#
# 'A positive batch baseline S_R pulls mass away from the correct answers that were not drawn': often, but Proposition
# 3.2 does not imply it. 'It raises the correct mass': in expectation, not in each step. The smallest cases that
# hypothesis finds (rewards 1 and 0):

# %%
rewards = {"reward_correct": 1.0, "reward_wrong": 0.0}


def counterexample(formula, wrong_sign):
    weights, correct, drawn = find(
        drawn_groups(),
        lambda group: (
            wrong_sign(formula(*arrays(group), **rewards).total)
            and theory.batch_baseline(*arrays(group), **rewards) > 0
        ),
        settings=settings(live, max_examples=5000),
        random=Random(0),
    )
    for weight, right, was_drawn in zip(weights, correct, drawn, strict=True):
        words = ("correct" if right else "wrong") + (", drawn" if was_drawn else ", not drawn")
        print(f"  p = {Fraction(weight, sum(weights))}  {words}")
    change = formula(*arrays((weights, correct, drawn)), **rewards).total
    print(f"  change: {Fraction(float(change)).limit_denominator(100_000)} times the step size\n")


print("S_R > 0, and the correct mass that was not drawn rises:")
counterexample(theory.unsampled_correct_mass_change, lambda change: change > 1e-12)
print("S_R > 0, and the correct mass falls:")
counterexample(theory.correct_mass_change, lambda change: change < -1e-12)

# %% [markdown]
# GRPO centres the rewards and uses ratios. Then the correct mass rises in *every* active group, to first order:


# %%
@live
@given(group=drawn_groups())
def centred_updates_raise_the_correct_mass(group):
    policy, correct, drawn = arrays(group)
    if (drawn & correct).any() and (drawn & ~correct).any():
        assert theory.centred_mass_change(policy, correct, drawn).correct > 0


centred_updates_raise_the_correct_mass()
print("centred: no counterexample")

# %% [markdown]
# ## The focal weight on active groups
#
# It is never 0 there, but at least N^-gamma. At N = 2 every active group is half right: the weight is a constant, and
# does nothing that a smaller step would not.


# %%
@live
@given(n=st.integers(2, 64), gamma=st.floats(0, 4), data=st.data())
def focal_weight_of_an_active_group(n, gamma, data):
    weight = theory.focal_weight(data.draw(st.integers(1, n - 1)) / n, gamma)
    assert n**-gamma * (1 - 1e-12) <= weight <= 1
    if n == 2:
        assert np.isclose(weight, 2**-gamma)


focal_weight_of_an_active_group()
print("N^-gamma <= g <= 1, and 2^-gamma at N = 2: no counterexample")

# %% [markdown]
# ## And the proof
#
# A test draws cases; a proof does not need to. `fgrpo prove` runs all of them.

# %%
proof = PROOFS["lemma_3_1"]
report = verify("lemma_3_1")
print(proof.statement, "\n")
for step in report.steps:
    print(f"[{step.how}] {step.text}")
print(f"\nstands: {report.ok}; its falsified variant stands: {proof.wrong.verify().ok}")

# %% [markdown]
# Next: [the categorical sweep](3_categorical_sweep.ipynb).
