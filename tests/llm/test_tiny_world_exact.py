"""The exact evaluator of the tiny world against literal enumeration and against samples; the modes by their law."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from fgrpo.llm.tiny_world.exact import exact_policy, measures, pass_at, world_policies
from fgrpo.llm.tiny_world.modes import answer_modes, third_digits
from fgrpo.llm.tiny_world.pretraining import RARE_FRACTION, SUCCESS_RATES, base_distribution, pretrained_model
from fgrpo.llm.tiny_world.task import SUMS, correct_completions, prompts
from fgrpo.llm.tiny_world.tokenizer import EOS, VOCABULARY
from reference.tiny_world import all_log_probabilities, literal_measures, opening_probabilities

WORLD = (6, 13, 21)  # sums of the prompts that are enumerated
SEED = 3


@pytest.fixture(scope="module")
def models() -> tuple[Any, Any]:
    """A model that has learned a little, and another one not far from it."""
    before = pretrained_model(SEED, 40)
    after = deepcopy(before)
    with torch.no_grad():
        for parameter in after.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return before, after


def by_kind(total: int, flags_A: np.ndarray) -> list[str]:
    return [text for text in correct_completions(total) if flags_A[int(text[:2])]]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_evaluator_is_the_literal_enumeration(models: tuple[Any, Any], dtype: torch.dtype, tolerance: float) -> None:
    before, after = (deepcopy(model).to(dtype) for model in models)
    modes = answer_modes(SEED)
    found = measures(world_policies(before), world_policies(after), modes)
    for total in WORLD:
        row, prompt = SUMS.index(total), f"a{total:02d}:"
        correct, rare = (by_kind(total, flags[row]) for flags in (modes.correct_PA, modes.rare_PA))
        literal = literal_measures(*(all_log_probabilities(model, prompt) for model in (before, after)), correct, rare)
        assert set(correct) == set(correct_completions(total))
        for name, value in literal.items():
            assert found[name][row] == pytest.approx(value, rel=tolerance, abs=tolerance), (total, name)
        openings = [opening_probabilities(model, prompt) for model in (before, after)]
        rest = [1 - sum(one.values()) for one in openings]
        divergence = sum(q * np.log(q / openings[0][answer]) for answer, q in openings[1].items())
        divergence += rest[1] * np.log(rest[1] / rest[0])
        assert found["kl"][row] == pytest.approx(divergence, rel=tolerance, abs=tolerance)
        hidden = by_kind(total, modes.hidden_PA[row])
        held_out = all_log_probabilities(after, f"x{total:02d}:")
        mass = sum(np.exp(held_out[answer]) for answer in hidden)
        for k in (1, 64, 256):
            expected = 1 - (1 - mass) ** k
            assert found[f"held_out_pass_at_{k}"][row] == pytest.approx(expected, rel=tolerance * k, abs=tolerance)


def test_double_precision_works_on_a_copy(models: tuple[Any, Any]) -> None:
    model = models[0]
    single, double = exact_policy(model, ["a13:"]), exact_policy(model, ["a13:"], dtype=torch.float64)
    assert next(model.parameters()).dtype == torch.float32
    assert double.log_correct_PA == pytest.approx(exact_policy(deepcopy(model).double(), ["a13:"]).log_correct_PA)
    difference = np.abs(single.correct_PA - double.correct_PA).max()
    assert 0 < difference < 1e-6
    with pytest.raises(ValueError, match="a prompt must be a letter"):
        exact_policy(model, ["b"])


def test_samples_agree_with_exact_probabilities(models: tuple[Any, Any]) -> None:
    """Two-sided normal bounds; false alarm 1e-5 each, 2 x 2 of them. Twice the rare mass must be rejected."""
    model, samples = models[1], 6000
    modes = answer_modes(SEED)
    policy = exact_policy(model, prompts())
    torch.manual_seed(0)
    for total in (6, 13):
        row = SUMS.index(total)
        ids = torch.tensor([[VOCABULARY[c] for c in f"a{total:02d}:"]])
        drawn = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, top_p=1.0, temperature=1.0,
            num_return_sequences=samples, max_new_tokens=4,
        )[:, 4:]  # fmt: skip
        for flags_PA, factor in ((modes.correct_PA, 1.5), (modes.rare_PA, 2.0)):
            accepted = {(*(VOCABULARY[c] for c in text), VOCABULARY[EOS]) for text in by_kind(total, flags_PA[row])}
            count = sum(tuple(answer) in accepted for answer in drawn.tolist())
            p = float(policy.correct_PA[row][flags_PA[row]].sum())

            def z(probability: float, count: int = count) -> float:
                return float((count - samples * probability) / np.sqrt(samples * probability * (1 - probability)))

            assert abs(z(p)) < 4.42
            assert abs(z(factor * p)) > 4.42


def test_modes_are_those_of_the_base_distribution() -> None:
    modes = answer_modes(SEED)
    base = base_distribution(SEED).reshape(16, 100, 10)
    third = third_digits()
    assert sorted(modes.success_rate_P) == pytest.approx(SUCCESS_RATES)
    assert modes.easy_P.sum() == 8
    assert modes.success_rate_P[modes.easy_P].min() > modes.success_rate_P[~modes.easy_P].max()
    assert (modes.common_PA.sum(axis=1) == 3).all()
    assert (modes.correct_PA == (third >= 0)).all()
    assert not (modes.hidden_PA & ~modes.rare_PA).any()
    assert (modes.hidden_PA.sum(axis=1) == np.maximum(1, modes.rare_PA.sum(axis=1) // 4)).all()
    for row, total in enumerate(SUMS):
        mass = {text: base[row, int(text[:2]), int(text[2])] for text in correct_completions(total)}
        rare = sum(mass[text] for text in by_kind(total, modes.rare_PA[row]))
        assert rare == pytest.approx(RARE_FRACTION * modes.success_rate_P[row])
        assert sum(mass.values()) == pytest.approx(modes.success_rate_P[row])
    assert (answer_modes(SEED).hidden_PA == modes.hidden_PA).all()
    assert (answer_modes(SEED + 1).hidden_PA != modes.hidden_PA).any()


def test_base_model_comes_near_its_distribution_on_both_families() -> None:
    base = base_distribution(SEED).reshape(16, 1000)

    def divergence(model: Any, family: str) -> float:
        openings = exact_policy(model, prompts(family)).openings_PO[:, :1000]
        return float(np.mean(np.sum(base * np.log(base / openings), axis=1)))

    assert divergence(pretrained_model(SEED, 1), "a") > 4
    trained = pretrained_model(SEED, 100)
    assert divergence(trained, "a") < 2
    assert divergence(trained, "x") == pytest.approx(divergence(trained, "a"), rel=0.1)


def test_pass_at_a_known_rate() -> None:
    assert pass_at(np.array([0.0, 0.5, 1.0]), 2) == pytest.approx([0.0, 0.75, 1.0])
    assert pass_at(np.array([1e-12]), 256) == pytest.approx([2.56e-10], rel=1e-9)
