"""The torch engine: random words by known answers, draws by law, rules and measures against the reference engine."""

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fgrpo import theory
from fgrpo.simulate import (
    PolicyConfig,
    RunConfig,
    engine_reference,
    run_sweep,
    simulate,
    simulate_many,
    torch_draws,
    torch_engine,
)
from fgrpo.simulate.config import PRESETS
from fgrpo.simulate.policy import initial_logits, softmax
from fgrpo.simulate.torch_draws import Sampler, ordered_uniforms, random_words, step_keys
from fgrpo.simulate.torch_engine import simulate_batch, simulate_torch, tail_miss_probability, torch_batches
from fgrpo.simulate.trajectory import MEASURES
from reference.simulation import RULES, goodness_of_fit

# Each statistical test has one fixed seed; over seeds it would reject a right engine with this probability.
FALSE_ALARM = 1e-4


def run(rule="figure_matching", **changes):
    preset = rule if rule in PRESETS else "figure_matching"
    small = {"group_size": 8, "steps": 30, "actions": 259, "correct": 40}
    return RunConfig.preset(preset, **{**small, **RULES[rule], **changes})


def splitmix64(state, number):
    """As its authors publish it, on Python's integers."""
    words = []
    for _ in range(number):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        words.append(z ^ (z >> 31))
    return words


def test_random_words_are_those_of_splitmix64():
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert splitmix64(1234567, 5) == known
    keys = torch.tensor([1234567, 0, -1, 2**63 - 1])
    for first in (0, 3):
        words = random_words(keys, first, 5)
        for key, row in zip(keys.tolist(), words.tolist(), strict=True):
            assert [word % 2**64 for word in row] == splitmix64(key % 2**64, first + 5)[first:]


def test_keys_are_a_function_of_run_and_step():
    one, other = run(), run(seed=1)
    keys = step_keys([one, other], 9)
    assert keys.shape == (9, 2)
    assert len(set(keys.flatten().tolist())) == 18
    assert torch.equal(step_keys([other], 4)[:, 0], keys[:4, 1])


def draws(weights, group_size, *, groups, cumulative=None):
    """Counts of `groups` independent groups together."""
    counts = torch.zeros(groups, len(weights), dtype=torch.float64)
    sums = torch.cumsum(torch.from_numpy(weights), 0) if cumulative is None else cumulative
    keys = torch.from_numpy(np.random.default_rng(5).integers(-(2**63), 2**63, size=(1, groups)))
    Sampler([group_size] * groups, keys).add_group(counts, sums.repeat(groups, 1))
    assert (counts.sum(1) == group_size).all()
    return counts.numpy()


def start():
    return softmax(initial_logits(PolicyConfig()))


def concentrated():
    """A late policy: wrong logits between -5 and -8, that is probabilities of 3e-8 and less."""
    logits = initial_logits(PolicyConfig())
    logits[10_000:] = np.linspace(-5, -8, 118_000)
    return softmax(logits)


@pytest.mark.parametrize("policy", [start, concentrated])
@pytest.mark.parametrize(("group_size", "groups"), [(1, 100), (8, 100), (8192, 50), (2_000_000, 1)])
def test_draws_follow_the_exact_law(policy, group_size, groups):
    counts = draws(policy(), group_size, groups=groups).sum(0).astype(int)
    assert goodness_of_fit(counts, policy()) > FALSE_ALARM


def test_the_rare_tail_by_itself_follows_the_exact_law_and_a_float32_sum_does_not():
    probabilities = concentrated()
    tail, float32 = slice(10_000, None), np.cumsum(probabilities.astype(np.float32))
    right = draws(probabilities, 4_000_000, groups=1)[0]
    wrong = draws(probabilities, 4_000_000, groups=1, cumulative=torch.from_numpy(float32).double())[0]
    assert goodness_of_fit(right[tail].astype(int), probabilities[tail]) > FALSE_ALARM
    assert goodness_of_fit(wrong[tail].astype(int), probabilities[tail]) < FALSE_ALARM
    assert goodness_of_fit(wrong.astype(int), probabilities) < FALSE_ALARM


@pytest.mark.parametrize("at_once", [2**20, 1, 2])
def test_joint_law_of_a_small_group_is_multinomial_in_one_part_or_several(monkeypatch, at_once):
    monkeypatch.setattr(torch_draws, "DRAWS_AT_ONCE", at_once)
    probabilities, group_size = np.array([0.5, 0.3, 0.2]), 3
    counts = draws(probabilities, group_size, groups=20_000).astype(int)
    outcomes = [one for one in itertools.product(range(4), repeat=3) if sum(one) == group_size]
    seen = [int((counts == one).all(1).sum()) for one in outcomes]
    exact = [
        6 / math.prod(map(math.factorial, one)) * math.prod(p**n for p, n in zip(probabilities, one, strict=True))
        for one in outcomes
    ]
    assert scipy.stats.chisquare(seen, np.array(exact) * 20_000).pvalue > FALSE_ALARM


@pytest.mark.parametrize("draws", [1, 1000])
def test_uniforms_are_ordered_below_one_and_fine(draws):
    """Uniform down to the last bits, too: float32 would put all of the upper half on multiples of 2^-24."""
    keys = torch.from_numpy(np.random.default_rng(7).integers(-(2**63), 2**63, size=(2000 // draws, 3)))
    uniforms = ordered_uniforms(keys, 0, draws)
    assert uniforms.dtype == torch.float64
    assert (uniforms.diff(dim=-1) >= 0).all()
    assert 0.0 <= uniforms.min() <= uniforms.max() < 1.0
    assert scipy.stats.kstest(uniforms.flatten().numpy(), "uniform").pvalue > FALSE_ALARM
    fine = (uniforms * 2.0**30).frac().flatten().numpy()
    assert scipy.stats.kstest(fine, "uniform").pvalue > FALSE_ALARM
    coarse = (uniforms.float().double() * 2.0**30).frac().flatten().numpy()
    assert scipy.stats.kstest(coarse, "uniform").pvalue < FALSE_ALARM


def test_impossible_actions_are_never_drawn():
    counts = draws(np.array([0.0, 3.0, 0.0, 1.0, 0.0]), 1000, groups=20)
    assert counts[:, [0, 2, 4]].sum() == 0.0
    assert scipy.stats.binomtest(int(counts[:, 1].sum()), 20_000, 0.75).pvalue > FALSE_ALARM


@pytest.mark.parametrize("rule", RULES)
def test_with_the_same_draws_it_is_the_reference_engine(monkeypatch, rule):
    config = run(rule, record_every=1, seed=4)
    sampler = Sampler([config.group_size], step_keys([config], config.steps))

    def sample_counts(probabilities, group_size, rng, cumulative):
        np.cumsum(probabilities, out=cumulative)
        counts = torch.zeros(1, probabilities.size, dtype=torch.float64)
        sampler.add_group(counts, torch.from_numpy(cumulative)[None])
        return counts[0].numpy().astype(np.int64)

    monkeypatch.setattr(engine_reference, "sample_counts", sample_counts)
    expected, [actual] = engine_reference.simulate(config), simulate_torch([config])
    assert (actual.engine, actual.device, actual.config) == ("torch", "cpu", config)
    np.testing.assert_array_equal(actual.step, expected.step)
    for name in MEASURES:
        if name != "share_improved":  # rounding decides it for actions that did not move
            ours, theirs = getattr(actual, name), getattr(expected, name)
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-14, err_msg=name)


def assert_same(one, other):
    assert one.config == other.config
    for name in MEASURES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("rule", RULES)
def test_a_run_is_bit_identical_alone_and_in_a_batch(rule):
    configs = [
        run(rule, group_size=size, gamma=gamma, seed=seed)
        for size in (2, 7, 300)
        for gamma, seed in ((0.0, 0), (0.7, 1), (1.3, 2))
    ]
    assert len(torch_batches(configs, "cpu")) == 1
    together = simulate_batch(configs)
    for trajectory in together:
        assert_same(simulate_batch([trajectory.config])[0], trajectory)
    for part in (together[1:3], together[3:8]):
        for one, other in zip(simulate_batch([one.config for one in part]), part, strict=True):
            assert_same(one, other)


def test_threads_change_nothing_and_stay_as_they_were():
    config, threads = run(actions=70_001), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        [one] = simulate_torch([config])
        torch.set_num_threads(3)
        [other] = simulate_torch([config])
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)
    assert_same(one, other)


def test_a_longer_run_repeats_the_first_steps_of_a_shorter_one():
    short, long = (simulate(run(steps=steps), engine="torch") for steps in (20, 50))
    for name in MEASURES:
        np.testing.assert_array_equal(getattr(long, name)[:3], getattr(short, name), err_msg=name)


def test_batches_hold_runs_that_differ_in_group_size_gamma_and_seed_only():
    configs = [run(group_size=n, seed=seed, steps=steps) for n in (300, 2) for seed in (0, 1) for steps in (3, 4)]
    parts = torch_batches(configs, "cpu")
    assert [[(one.steps, one.group_size) for one in part] for part in parts] == [
        [(3, 2), (3, 2), (3, 300), (3, 300)],
        [(4, 2), (4, 2), (4, 300), (4, 300)],
    ]
    assert {len(part) for part in torch_batches([run(actions=128_000, seed=s) for s in range(3)], "cpu")} == {1}
    assert {len(part) for part in torch_batches([run(group_size=2**17, seed=s) for s in range(3)], "cpu")} == {1}
    many = simulate_many(configs, engine="torch")
    assert [one.config for one in many] == configs


def test_a_run_that_does_not_fit_on_the_gpu_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10**6, 10**9))
    assert [len(part) for part in torch_batches([run(seed=seed) for seed in range(40)], "cuda")] == [36, 4]
    with pytest.raises(ValueError, match=r"memory of the GPU, got one that needs .* of 0\.001 GB: ") as refused:
        torch_batches([run(actions=128_000)], "cuda")
    assert "\n" not in str(refused.value)


class NoWaiting(TorchDispatchMode):
    """Raises where a program would wait for the device: to read a value, or to learn a size that depends on values."""

    WAITING = ("_local_scalar_dense", "nonzero", "is_nonzero", "item", "equal", "masked_select", "unique", "bincount")

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        name = function.overloadpacket.__name__
        indexed = name.startswith("index") and any(
            one is not None and one.dtype == torch.bool for one in arguments[1] if isinstance(arguments[1], list)
        )
        if name.startswith(self.WAITING) or indexed:
            raise AssertionError(f"{name} waits for the device")
        return function(*arguments, **(keywords or {}))


def test_what_waits_is_noticed():
    x = torch.tensor([1.0, 0.0])
    for waits in (lambda: x[0].item(), lambda: bool(x[0]), lambda: x[x > 0], lambda: x.nonzero(), lambda: float(x[1])):
        with pytest.raises(AssertionError, match="waits for the device"), NoWaiting():
            waits()


@pytest.mark.parametrize("rule", RULES)
def test_the_loop_never_waits_for_the_device(rule):
    with NoWaiting():
        simulate_batch([run(rule, steps=3, record_every=1), run(rule, steps=3, record_every=1, group_size=64)])


def test_tail_misses_are_those_of_theory():
    rng = np.random.default_rng(1)
    mu = np.concatenate([rng.random(300), [0.0, 1.0, 0.5, 1.0, 1e-12, 1 - 1e-12]])
    tau = mu * np.concatenate([rng.random(300) ** 4, [0.0, 1.0, 1.0, 0.2, 0.3, 1e-3]])
    for group_size in (1, 2, 8, 1000, 131_072):
        expected = theory.tail_miss_probability(mu, tau, group_size, failure_rate=1 - mu)
        as_tensors = (torch.from_numpy(one) for one in (mu, tau, np.full_like(mu, group_size), 1 - mu))
        np.testing.assert_allclose(tail_miss_probability(*as_tensors), expected, rtol=1e-12, atol=1e-300)


def final(trajectories):
    names = ("correct_mass", "retained_mass", "entropy", "unsampled_correct_mass_change")
    return {name: np.array([getattr(one, name)[-1] for one in trajectories]) for name in names}


@pytest.mark.parametrize("group_size", [8, 128])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_runs_have_the_law_of_the_reference_engine_and_other_rules_have_not(group_size, gamma):
    """Kolmogorov-Smirnov over seeds, four measures: false-alarm rate at most 4e-4 in all."""
    configs = [run(group_size=group_size, gamma=gamma, seed=seed, steps=40) for seed in range(300)]
    faster = [dataclasses.replace(one, update=dataclasses.replace(one.update, learning_rate=0.0125)) for one in configs]
    ours, wrong = final(simulate_torch(configs)), final(simulate_torch(faster))
    theirs = final([engine_reference.simulate(one) for one in configs[:150]])
    for name, values in theirs.items():
        assert scipy.stats.ks_2samp(ours[name], values).pvalue > FALSE_ALARM, name
    rejected = [scipy.stats.ks_2samp(wrong[name], values).pvalue < FALSE_ALARM for name, values in theirs.items()]
    assert any(rejected)


def test_rules_that_replace_those_of_the_registries_are_few():
    assert {name for name, one in torch_engine.ESTIMATES.items() if one.__module__ != "fgrpo.simulate.updates"} == {
        "shrunk",
        "ema",
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_is_bit_identical_alone_and_among_others_in_one_or_two_processes(workers):
    configs = [run(group_size=n, seed=s, actions=40_000, steps=4) for n in (3, 700, 2, 40) for s in (0, 1)]
    assert {len(part) for part in torch_batches(configs, "cpu")} == {3, 2}
    many = simulate_many(configs, engine="torch", device="cpu", workers=workers)
    assert [(one.engine, one.device) for one in many] == [("torch", "cpu")] * len(configs)
    for one, config in zip(many, configs, strict=True):
        assert_same(one, simulate(config, engine="torch", device="cpu"))


def test_a_sweep_by_this_engine_does_not_depend_on_the_processes(tmp_path):
    configs = [run(group_size=n, seed=seed, steps=5) for n in (2, 300) for seed in (0, 1)]
    tables = [run_sweep(configs, tmp_path / str(n), engine="torch", device="cpu", workers=n) for n in (1, 2)]
    pd.testing.assert_frame_equal(*tables)
    assert set(tables[0]["engine"]) == {"torch"}
    assert set(tables[0]["device"]) == {"cpu"}
