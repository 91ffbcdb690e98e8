"""Steps of the sparse engine: against the method written out, and against the reference engine on equal draws."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.simulate import UpdateConfig, engine_reference
from fgrpo.simulate.metrics import policy_metrics
from fgrpo.simulate.policy import initial_logits, softmax
from fgrpo.simulate.sparse import engine, payoffs, rows, steps
from fgrpo.simulate.sparse.measures import MEASURES
from reference import simulation
from reference.sparse_runs import dense_counts, dense_logits, in_use, single_actions, small

POLICY_MEASURES = MEASURES[:8]


# --- the update, step by step ---


def literal_step(optimizer, gradient, memory, t, update):
    beta1, beta2 = update.betas
    memory["m"] = beta1 * memory["m"] + (1 - beta1) * gradient
    memory["v"] = beta2 * memory["v"] + (1 - beta2) * gradient**2
    return (
        update.learning_rate
        * {
            "adam": memory["m"] / (1 - beta1**t) / (np.sqrt(memory["v"] / (1 - beta2**t)) + update.eps),
            "rmsprop": gradient / (np.sqrt(memory["v"]) + update.eps),
            "signsgd": np.sign(gradient),
            "sgd": gradient,
        }[optimizer]
    )


@pytest.mark.parametrize("surrogate", ["importance_ratio", "linear", "linear_distinct"])
@pytest.mark.parametrize("optimizer", ["adam", "rmsprop", "signsgd", "sgd"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_follows_the_literal_method_step_by_step(surrogate, optimizer, weight_decay):
    """Forty steps with the engine's own draws; gradients by autograd, optimizers and measures written out."""
    rule = {"surrogate": surrogate, "optimizer": optimizer, "weight_decay": weight_decay, "eps": 1e-3}
    sizes = {"group_size": 6, "steps": 40, "record_every": 1, "actions": 12, "correct": 4}
    config = small(**sizes, **rule, gamma=0.7, learning_rate=0.02)
    update, rewards = config.update, [1.0] * 4 + [-1.0] * 8
    start = initial_logits(config.policy) + 0.1 * np.arange(12)
    _, measured, progress = engine.run(config, single_actions(config.policy, start))

    logits, memory = start, {"m": np.zeros(12), "v": np.zeros(12)}
    for step in range(1, 41):
        counts, before = dense_counts(config, logits, step), softmax(logits)
        successes = counts[:4].sum()
        weight = (1 - successes / 6) ** 0.7
        gradient = simulation.surrogate_gradient(logits, counts.tolist(), rewards, weight, surrogate=surrogate)
        # where the gradient is exactly zero autograd leaves rounding
        if surrogate == "importance_ratio":
            gradient[counts == 0] = 0.0
        if surrogate != "linear_distinct" and successes in (0, 6):
            gradient[:] = 0.0
        decayed = logits * (1 - update.learning_rate * weight_decay)
        logits = decayed + literal_step(optimizer, gradient, memory, step, update)
        expected = policy_metrics(logits, start, 4)
        expected |= simulation.group_metrics(before, softmax(logits), counts, 4, range(1, 4))
        expected |= {"active_share": float(0 < successes < 6), "distinct_correct": np.count_nonzero(counts[:4])}
        for name, value in zip(MEASURES, measured[step], strict=True):
            if name != "mean_weight":
                assert value == pytest.approx(expected[name], rel=1e-9, abs=1e-12), (step, name)
            elif 0 < successes < 6:
                assert value == pytest.approx(weight, rel=1e-14)
    np.testing.assert_allclose(dense_logits(progress, single_actions(config.policy, start)), logits, rtol=1e-10)


@pytest.mark.parametrize("rule", simulation.RULES)
@pytest.mark.parametrize("group_size", [3, 40])
def test_is_the_reference_engine_number_for_number_on_equal_draws(monkeypatch, rule, group_size):
    config = small(**{"group_size": group_size, "record_every": 1, **simulation.RULES[rule]})
    step = iter(range(1, 61))

    def sample_counts(probabilities, group_size, rng, cumulative):
        np.cumsum(probabilities, out=cumulative)
        return dense_counts(config, np.log(probabilities), next(step))

    monkeypatch.setattr(engine_reference, "sample_counts", sample_counts)
    theirs = engine_reference.simulate(config)
    _, ours, _ = engine.run(config, single_actions(config.policy))
    for name, column in zip(MEASURES, ours.T, strict=True):
        np.testing.assert_allclose(column, getattr(theirs, name), rtol=1e-9, atol=1e-12, err_msg=name)


def test_signs_of_gradients_whose_squares_underflow_are_full_steps():
    # the last action has a probability of 1e-174
    config = small(actions=3, correct=1, surrogate="linear", optimizer="signsgd", steps=1, learning_rate=0.5)
    start = np.array([0.5, 0.0, -400.0])
    _, _, progress = engine.run(config, single_actions(config.policy, start))
    moved = np.abs(dense_logits(progress, single_actions(config.policy, start)) - start)
    assert moved.tolist() in ([0.5, 0.5, 0.5], [0.0, 0.0, 0.0])
    assert moved.any()


# --- what rollouts are worth ---


@pytest.mark.parametrize("rule", [*simulation.RULES, "default"])
def test_payoffs_by_successes_are_those_of_single_groups(rule):
    config = small(**{"group_size": 7, **simulation.RULES.get(rule, {})})
    table = payoffs.payoff_table(config)
    assert (table is None) == (config.success_estimate in ("ema", "population"))
    if table is not None:
        estimate = engine_reference.SUCCESS_ESTIMATES[config.success_estimate](config)
        for successes in range(8):
            rate = successes / 7
            one = payoffs.payoffs(config, rate, estimate(rate, math.nan))
            np.testing.assert_allclose([column[successes] for column in table], one, rtol=1e-14)


def test_payoffs_are_focal_weights_times_advantages():
    weight, of_correct, of_wrong = payoffs.payoff_table(small(group_size=4, gamma=2.0))
    np.testing.assert_allclose(weight, [1, 9 / 16, 1 / 4, 1 / 16, 0])
    np.testing.assert_allclose(of_correct, [2 / 4, 9 / 16 * 1.5 / 4, 1 / 16 * 4 / 4, 1 / 16 * 0.5 / 4, 0])
    np.testing.assert_allclose(of_wrong, [0, -9 / 16 * 0.5 / 4, -1 / 4 * 1 / 4, -1 / 16 * 1.5 / 4, 0])


def test_large_groups_and_tables_give_the_same_run(monkeypatch):
    config = small(gamma=0.7, advantage_scale="std")
    _, by_table, _ = engine.run(config, rows.start_of(config.policy))
    monkeypatch.setattr(payoffs, "LARGEST_TABLE", 1)
    assert payoffs.payoff_table(config) is None
    _, by_step, _ = engine.run(config, rows.start_of(config.policy))
    np.testing.assert_allclose(by_step, by_table, rtol=1e-12, atol=1e-15)


def test_a_rule_without_a_kernel_is_not_supported():
    assert all(engine.supports(small(**changes)) for changes in simulation.RULES.values())
    for name in ("surrogate", "optimizer"):
        update = SimpleNamespace(**{"surrogate": "linear", "optimizer": "adam", name: "another"})
        assert not engine.supports(SimpleNamespace(update=update))


# --- sleeping, and steps that are small ---


def test_sleeping_blocks_change_a_run_by_less_than_the_stated_bound(monkeypatch):
    config = small(group_size=64, steps=1500, learning_rate=0.05, actions=12_800, correct=1000)
    start = rows.start_of(config.policy)
    _, measured, progress = engine.run(config, start)
    asleep = progress.rows.asleep_since[in_use(progress.extent)[:: rows.LANES] // rows.LANES] > 0
    assert 0.5 < asleep.mean() < 1.0

    rule_of = engine.rule_of
    monkeypatch.setattr(engine, "rule_of", lambda *arguments: rule_of(*arguments)._replace(future=np.inf))
    _, always_awake, awake = engine.run(config, start)
    assert (awake.rows.asleep_since[in_use(awake.extent) // rows.LANES] == rows.NEVER).all()
    # a logit misses less than LEAST_MOVE in each nap, of which it can have one in 16 steps; most have but a few
    bound = 1500 / steps.STEPS_BETWEEN_CHECKS * steps.LEAST_MOVE
    assert bound < 1e-10
    np.testing.assert_allclose(dense_logits(progress, start), dense_logits(awake, start), rtol=0, atol=bound / 10)
    np.testing.assert_allclose(measured, always_awake, rtol=1e-10, atol=1e-11)


decays = st.floats(0.0, 0.999)


@given(beta1=decays, beta2=decays, eps=st.floats(1e-12, 1.0), root=st.floats(1e-6, 10.0), step=st.integers(1, 2000))
def test_what_falls_asleep_would_have_moved_less_than_its_bound(beta1, beta2, eps, root, step):
    update = UpdateConfig(betas=(beta1, beta2), eps=eps)
    horizon = np.arange(step + 1, step + 20_000, dtype=float)
    rule = steps.rule_of(update, step)
    if not beta1 < math.sqrt(beta2):
        assert rule.future == math.inf
        return
    # the largest M that put_to_sleep lets pass at this S
    least = steps.LEAST_MOVE / (rule.future + rule.future**2 / (2.0 * step)) / rule.rate[-1]
    moment = least * (root + rule.offset[-1])
    m_hat = (1 - beta1) * moment * beta1 ** (horizon - step - 1) / (1 - beta1**horizon)
    v_hat = (1 - beta2) * (root * beta2 ** ((horizon - step - 1) / 2)) ** 2 / (1 - beta2**horizon)
    moved = (update.learning_rate * m_hat / (np.sqrt(v_hat) + eps)).sum()
    assert moved <= 1e-12 * (1 + 1e-9)


def test_a_sleeper_takes_the_discounts_that_it_missed():
    rule = steps.rule_of(UpdateConfig(), 100)._replace(small_steps=False)
    values, asleep_since = np.ones(rows.STRIDE), np.array([16])
    steps.wake(values, asleep_since, 0, rule, 48)
    # updated last in step 16, so steps 17 to 47 are missing
    np.testing.assert_allclose(values[rows.MOMENT : rows.MOMENT + 64], 0.9**31, rtol=1e-13)
    np.testing.assert_allclose(values[rows.ROOT : rows.ROOT + 64], 0.999**15.5, rtol=1e-13)
    assert (values[rows.LOGIT : rows.LOGIT + 64] == 1.0).all()
    assert asleep_since[0] == rows.NEVER


@given(beta1=st.floats(0.0, 0.95), beta2=st.floats(0.5, 0.9999), growth=st.floats(0.5, 1.5), rate=st.floats(1e-4, 1.0))
def test_where_steps_are_called_small_none_is_large(beta1, beta2, growth, rate):
    update = UpdateConfig(betas=(beta1, beta2), learning_rate=rate, eps=1e-30)
    rule = steps.rule_of(update, 200)
    # gradients that grow by beta2 / beta1 a step are the worst case; try others too
    for factor in (growth, min(beta2 / max(beta1, 0.05), 1.9)):
        m = s = largest = 0.0
        for step in range(200):
            gradient = 1e-10 * factor**step
            m, s = rule.beta1 * m + gradient, math.hypot(rule.root_beta2 * s, gradient)
            largest = max(largest, rule.rate[step] * m / (s + rule.offset[step]))
        assert not rule.small_steps or largest <= 0.1 * (1 + 1e-12)


def test_small_steps_are_recognised():
    assert steps.rule_of(UpdateConfig(), 1000).small_steps
    for changes in ({"learning_rate": 0.05}, {"weight_decay": 0.1}, {"betas": (0.99, 0.9)}):
        assert not steps.rule_of(UpdateConfig(**changes), 1000).small_steps
    # decay moves a logit the more the farther it is from 0
    assert not steps.rule_of(UpdateConfig(weight_decay=0.01), 1000).small_steps
    decaying = UpdateConfig(surrogate="linear", weight_decay=0.01)
    assert steps.rule_of(decaying, 1000, farthest=5.0).small_steps
    assert not steps.rule_of(decaying, 1000, farthest=500.0).small_steps
    assert not steps.rule_of(decaying, 10_000, farthest=5.0).small_steps


@pytest.mark.parametrize("preset", ["figure_matching", "appendix_j_literal"])
def test_masses_by_steps_equal_those_by_logits(monkeypatch, preset):
    config = small(preset, group_size=64, steps=95)
    start = rows.start_of(config.policy)
    _, by_steps, _ = engine.run(config, start)
    rule_of = engine.rule_of
    monkeypatch.setattr(engine, "rule_of", lambda *arguments: rule_of(*arguments)._replace(small_steps=False))
    _, by_logits, _ = engine.run(config, start)
    assert (by_steps != by_logits).any()
    np.testing.assert_allclose(by_steps, by_logits, rtol=1e-13, atol=1e-13)
