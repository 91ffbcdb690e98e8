"""Steps of the sparse engine: against the method written out, and against the reference engine on equal draws."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.simulate import UpdateConfig, engine_reference
from fgrpo.simulate.metrics import group_metrics, policy_metrics
from fgrpo.simulate.policy import initial_logits, softmax
from fgrpo.simulate.sparse import engine, groups, naps, payoffs, philox, rows, steps
from fgrpo.simulate.sparse.measures import MEASURES
from fgrpo.simulate.updates import WeightedGroup
from reference import simulation
from reference.sparse_runs import dense_counts, dense_logits, fields, in_use, keep_awake, single_actions, small

POLICY_MEASURES = MEASURES[:8]
RULES = {rule: changes for rule, changes in simulation.RULES.items() if engine.supports(small(**changes))}
LEFT_TO_OTHER_ENGINES: set[str] = set()


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
def test_follows_the_literal_method_step_by_step(monkeypatch, surrogate, optimizer, weight_decay):
    """Forty steps with the engine's own draws; gradients by autograd, optimizers and measures written out."""
    keep_awake(monkeypatch)
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


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("group_size", [3, 40])
def test_is_the_reference_engine_number_for_number_on_equal_draws(monkeypatch, rule, group_size):
    keep_awake(monkeypatch)
    config = small(**{"group_size": group_size, "record_every": 1, **RULES[rule]})
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


@pytest.mark.parametrize("rule", [*RULES, "default"])
def test_payoffs_by_successes_are_those_of_single_groups(rule):
    config = small(**{"group_size": 7, **RULES.get(rule, {})})
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
    assert set(simulation.RULES) - set(RULES) == LEFT_TO_OTHER_ENGINES
    for name in ("surrogate", "optimizer"):
        update = SimpleNamespace(**{"surrogate": "linear", "optimizer": "adam", name: "another"})
        assert not engine.supports(SimpleNamespace(update=update))


# --- sleeping, and steps that are small ---


@pytest.mark.parametrize("learning_rate", [0.05, 0.01])
def test_rows_asleep_change_a_run_by_less_than_the_stated_bound(learning_rate):
    """Against the literal method on all actions, with the engine's own draws; steps that may be large, small ones."""
    config = small(group_size=64, steps=1500, learning_rate=learning_rate, actions=6400, correct=500)
    start, table, group_size = single_actions(config.policy), payoffs.payoff_table(config), config.group_size
    rule, out = steps.rule_of(config.update, config.steps), np.empty(len(MEASURES))
    key, buffer = philox.stream_words(config.stream_key), groups.buffer_for(group_size)
    progress, origin = engine.begin(start, out)
    initial = logits = initial_logits(config.policy)
    memory, woken = {"m": np.zeros(6400), "v": np.zeros(6400)}, 0
    for step in range(1, config.steps + 1):
        progress, draws = engine.draw(progress, group_size, step, key, buffer, False)
        drawn, counts = progress.rows.drawn[: draws.found], np.zeros(6400, dtype=np.int64)
        counts[progress.rows.origin[drawn]] = progress.rows.times[drawn]
        _, first_wrong, _, moving_correct, moving_wrong = progress.extent
        woken += (drawn < np.where(drawn < first_wrong, moving_correct, moving_wrong)).sum()
        payoff = tuple(float(column[draws.successes]) for column in table)
        recorded = step % 100 == 0
        progress = engine.update(progress, draws, payoff, start, origin, rule, group_size, step, recorded, out)
        before, gradient = logits, counts * np.where(start.correct, *payoff[1:])
        logits = logits + literal_step("adam", gradient, memory, step, config.update)
        if recorded:
            active, leaves = 0 < draws.successes < group_size, slice(1, 500)
            group = WeightedGroup(counts, 500, group_size, (0, 0), (0, 0))
            expected = policy_metrics(logits, initial, 500)
            expected |= group_metrics(group, active, leaves, softmax(before), logits - before)
            for name, value in expected.items():
                assert out[MEASURES.index(name)] == pytest.approx(value, rel=1e-10, abs=1e-11), (step, name)

    correct, first_wrong, end, moving_correct, moving_wrong = progress.extent
    assert moving_correct / correct > 0.5
    assert (moving_wrong - first_wrong) / (end - first_wrong) > 0.5
    assert woken > 1000
    # of each nap a logit has had, some hundredths of LEAST_MOVE are left; of the last one, perhaps all
    np.testing.assert_allclose(dense_logits(progress, start), logits, rtol=0, atol=2 * naps.LEAST_MOVE)


def test_what_is_left_of_a_class_is_found_wherever_it_comes_to_stand():
    config = small(group_size=8, steps=900, actions=6400, correct=500)
    start = rows.start_of(config.policy)
    _, _, progress = engine.run(config, start)
    used, class_row = in_use(progress.extent), progress.rows.class_row
    multiplicity, origin = fields(progress, rows.MULTIPLICITY)[0], progress.rows.origin
    assert (class_row != rows.new_rows(start)[0].class_row).all()
    np.testing.assert_array_equal(origin[class_row], [0, 1, 2])
    np.testing.assert_array_equal(np.bincount(origin[used], multiplicity), start.multiplicity)
    assert (multiplicity[~np.isin(used, class_row)] == 1.0).all()


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
    rate, offset = rule.rate[step - 1], rule.offset[step - 1]
    least = naps.LEAST_MOVE / (rule.future + rule.future**2 / (2.0 * step)) / rate
    moment = least * (root + offset)
    m_hat = (1 - beta1) * moment * beta1 ** (horizon - step - 1) / (1 - beta1**horizon)
    v_hat = (1 - beta2) * (root * beta2 ** ((horizon - step - 1) / 2)) ** 2 / (1 - beta2**horizon)
    moved = (update.learning_rate * m_hat / (np.sqrt(v_hat) + eps)).sum()
    assert moved <= naps.LEAST_MOVE * (1 + 1e-9)


def sleepers(count, step):
    """Rows of single actions with different logits, correct and wrong ones, all asleep since `step`, and their rule."""
    is_correct = np.arange(2 * count) < count
    start = rows.Start(np.linspace(2.0, -2.0, 2 * count), np.ones(2 * count), is_correct, is_correct)
    state, extent = rows.new_rows(start)
    rows.compute_masses(state, extent.end, 0.0)
    state.values.reshape(-1, 7, rows.LANES)[:, rows.ROOT // rows.LANES] = 1.0
    rule = steps.rule_of(UpdateConfig(), 1000)._replace(small_until=0)
    extent = naps.put_to_sleep(state, extent, rule, step)
    assert extent == (count, extent.first_wrong, extent.end, count, extent.end)
    return state, extent, rule, start


def check_rows(state, extent, start):
    """Rows have moved with all that belongs to them, and the sums of the blocks hold."""
    blocks = state.values.reshape(-1, 7, rows.LANES)
    used = in_use(extent)
    logit, initial, mass = (blocks[:, one // rows.LANES].ravel()[used] for one in (rows.LOGIT, rows.INITIAL, rows.MASS))
    origin = state.origin[used]
    assert sorted(origin) == list(range(start.logit.size))
    np.testing.assert_array_equal(logit, start.logit[origin])
    np.testing.assert_allclose(initial, np.where(start.correct[origin], np.exp(logit - 2.0), 0.0), rtol=1e-14)
    np.testing.assert_array_equal(state.class_row[origin], used)
    np.testing.assert_allclose(mass, np.exp(logit), rtol=1e-14)
    asleep = np.r_[: extent.moving_correct // 64, extent.first_wrong // 64 : extent.moving_wrong // 64]
    # the sweep computes those of the others
    sums = blocks[asleep, rows.MASS // rows.LANES].sum(axis=1)
    np.testing.assert_allclose(state.block_mass[asleep], sums, rtol=1e-14)


@pytest.mark.parametrize("group_size", [1, 20, 300])
def test_what_is_drawn_wakes_with_the_discounts_that_it_missed(group_size):
    state, extent, rule, start = sleepers(128, 16)
    key, buffer = philox.stream_words(5), groups.buffer_for(group_size)
    total = rows.accumulate(state, extent.end)
    found = groups.draw_rows(state, extent.end, total, group_size, 48, key, buffer)
    drawn = state.drawn[:found].copy()
    expected = sorted(zip(state.origin[drawn].tolist(), state.times[drawn].tolist(), strict=True))
    extent = naps.wake_drawn(state, extent, found, rule, 48)
    drawn = state.drawn[:found]
    assert sorted(zip(state.origin[drawn].tolist(), state.times[drawn].tolist(), strict=True)) == expected
    assert state.times.sum() == group_size
    # those that move are those that were drawn
    moving = np.r_[extent.moving_correct : extent.correct, extent.moving_wrong : extent.end]
    assert sorted(drawn) == moving.tolist()
    # updated last in step 16, so steps 17 to 47 are missing, as they are where a block has woken
    root = state.values.reshape(-1, 7, rows.LANES)[:, rows.ROOT // rows.LANES].ravel()
    np.testing.assert_allclose(root[moving], 0.999**15.5, rtol=1e-13)
    for begin, first in ((0, extent.moving_correct), (extent.first_wrong, extent.moving_wrong)):
        np.testing.assert_allclose(root[first // 64 * 64 : first], 0.999**15.5, rtol=1e-13)
        asleep = slice(begin, first // 64 * 64)
        np.testing.assert_allclose(root[asleep], 0.999 ** ((state.asleep_since[asleep] - 16) / 2), rtol=1e-13)
    check_rows(state, extent, start)


def test_blocks_that_stay_asleep_keep_exact_sums():
    state, extent, rule, start = sleepers(128, 16)
    state.drawn[0], state.times[3] = 3, 1
    extent = naps.wake_drawn(state, extent, 1, rule, 48)
    assert state.drawn[0] == extent.moving_correct == 127
    check_rows(state, extent, start)


def test_rows_that_stop_come_to_stand_before_those_that_move():
    state, extent, rule, start = sleepers(128, 16)
    everything = extent._replace(moving_correct=0, moving_wrong=extent.first_wrong)
    state.values.reshape(-1, 7, rows.LANES)[:, rows.MOMENT // rows.LANES, ::3] = -1.0
    moves = set(state.origin[in_use(extent)[in_use(extent) % 64 % 3 == 0]].tolist())
    extent = naps.put_to_sleep(state, everything, rule, 32)
    moving = np.r_[extent.moving_correct : extent.correct, extent.moving_wrong : extent.end]
    assert set(state.origin[moving].tolist()) == moves
    check_rows(state, extent, start)
    assert (state.asleep_since[:64] == 32).all()
    assert (state.asleep_since[64:128] == 16).all()


def test_rows_that_stop_make_their_last_move():
    state, extent, rule, _ = sleepers(128, 16)
    values, used = state.values.reshape(-1, 7, rows.LANES), in_use(extent)
    values[:, rows.MOMENT // rows.LANES] = 1e-9
    logit, root, mass = (values[:, field // rows.LANES].ravel()[used] for field in (rows.LOGIT, rows.ROOT, rows.MASS))
    extent = naps.put_to_sleep(state, extent._replace(moving_correct=0, moving_wrong=extent.first_wrong), rule, 32)
    assert (extent.moving_correct, extent.moving_wrong) == (extent.correct, extent.end)
    moves = rule.rate[31] * 1e-9 / (root + rule.offset[31]) * rule.future
    assert 1e-11 < moves.min() <= moves.max() < naps.LEAST_MOVE
    after = state.values.reshape(-1, 7, rows.LANES)
    np.testing.assert_array_equal(after[:, rows.LOGIT // rows.LANES].ravel()[used], logit + moves)
    np.testing.assert_allclose(after[:, rows.MASS // rows.LANES].ravel()[used], mass * np.exp(moves), rtol=1e-15)
    assert not after[:, rows.MOMENT // rows.LANES].ravel()[used].any()


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
        assert rule.small_until < 200 or largest <= 0.1 * (1 + 1e-12)


def test_small_steps_are_recognised():
    def until(steps_=1000, farthest=0.0, **changes):
        return steps.rule_of(UpdateConfig(**changes), steps_, farthest).small_until

    assert until() == 1008
    assert until(betas=(0.99, 0.9)) == until(weight_decay=0.01) == 0
    # in the first steps, little can have added up
    assert 0 < until(learning_rate=0.02) < 1000
    # decay moves a logit the more the farther it is from 0
    decaying = {"surrogate": "linear", "weight_decay": 0.01}
    assert until(farthest=5.0, **decaying) == 1008
    assert until(farthest=1000.0, **decaying) == 0
    far = until(10_000, farthest=5.0, **decaying)
    assert 1008 < far < 10_000
    assert far == until(20_000, farthest=5.0, **decaying)


@pytest.mark.parametrize("preset", ["figure_matching", "appendix_j_literal"])
def test_masses_by_steps_equal_those_by_logits(monkeypatch, preset):
    config = small(preset, group_size=64, steps=95)
    start = rows.start_of(config.policy)
    _, by_steps, _ = engine.run(config, start)
    rule_of = engine.rule_of
    monkeypatch.setattr(engine, "rule_of", lambda *arguments: rule_of(*arguments)._replace(small_until=0))
    _, by_logits, _ = engine.run(config, start)
    assert (by_steps != by_logits).any()
    np.testing.assert_allclose(by_steps, by_logits, rtol=1e-13, atol=1e-13)
