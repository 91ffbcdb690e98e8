"""What a run would be, without starting it: the configuration, its batch arithmetic, the theory of its group size."""

from collections.abc import Mapping
from fractions import Fraction

from fgrpo.llm.batch_arithmetic import BatchArithmetic, counted
from fgrpo.llm.config import FocalGRPOConfig
from fgrpo.llm.presets import METHODS, tiny_preset
from fgrpo.llm.recipe_files import yaml_line
from fgrpo.llm.settings import Settings
from fgrpo.theory import (
    active_probability,
    focal_weight,
    matched_learning_rate,
    peak_group_size,
    tail_miss_probability,
    tail_miss_regime,
)

SUCCESS_RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
RARE_FRACTIONS = (0.01, 0.05, 0.1, 0.2)
_LETTER = {"inactive": "i", "miss-prone": "m", "covered": "c"}


def dry_run_text(settings: Settings) -> str:
    """The resolved configuration as YAML that `--config` takes, the rest as comments in it.

    Args:
        settings: The settings; they are checked as for a run, on a CPU.

    Returns:
        Lines of at most 120 characters but for long values, without a newline at the end.

    Raises:
        ValueError: If the settings do not fit together.

    Source: Lemma 3.1 (v1 and v2) for the tail-miss probability; the rest: this project.
    """
    settings.refuse_misfits()
    batches = settings.batches
    # checked as one process with the same batch, so that this works where the devices of the run are not
    settings.build(
        FocalGRPOConfig,
        use_cpu=True,
        per_device_train_batch_size=batches.per_device_train_batch_size * settings.processes_to_start,
        per_device_eval_batch_size=settings.get("per_device_eval_batch_size") * settings.processes_to_start,
    )
    lines = ["# the resolved configuration; every other key has TRL's default", *_keys(settings.values), ""]
    lines += [f"# {line}".rstrip() for line in [*_batch_lines(batches), "", *_theory_lines(settings, batches)]]
    return "\n".join(lines)


def _keys(values: Mapping[str, object]) -> list[str]:
    return [yaml_line(key, value) for key, value in values.items()]


def _batch_lines(batches: BatchArithmetic) -> list[str]:
    b, n = batches, batches.group_size
    updates = _number(b.updates_per_generation)
    clipping = "can bind from the second on" if b.updates_per_generation > 1 else "never binds"
    return [
        f"Batches: {counted('process', b.world_size)}, N = {n} rollouts per prompt",
        f"  forward pass   {b.per_device_train_batch_size:>6} rollouts on each device",
        f"  update         {b.rollouts_per_update:>6} rollouts = {_number(b.prompts_per_update)} prompts x {n}",
        f"  generation     {b.rollouts_per_generation:>6} rollouts = {b.prompts_per_generation} prompts x {n}",
        f"  updates per generation {updates}: clipping {clipping}",
    ]


def _number(value: Fraction) -> str:
    return f"{float(value):g}"


def _theory_lines(settings: Settings, batches: BatchArithmetic) -> list[str]:
    n, gamma = batches.group_size, float(settings.get("focal_gamma"))
    lines = [
        f"Theory at N = {n}: probability that a group is active and misses the rare-correct region (Lemma 3.1), by",
        "success rate mu of a prompt and rare fraction rho, which no log measures; after it the regime at level .5:",
        "i inactive (a larger group is active, and misses, more often), m miss-prone, c covered",
        f"  {'mu':>5} {'Pr(active)':>11}" + "".join(f"{f'rho {rho:g}':>11}" for rho in RARE_FRACTIONS),
    ]
    for mu in SUCCESS_RATES:
        cells = [
            f"{float(tail_miss_probability(mu, rho * mu, n)):>9.3f} {_LETTER[str(tail_miss_regime(mu, rho * mu, n))]}"
            for rho in RARE_FRACTIONS
        ]
        lines.append(f"  {mu:>5g} {float(active_probability(mu, n)):>11.3f}" + "".join(cells))
    peaks = " ".join(f"{float(peak_group_size(0.5, 0.5 * rho)):g}" for rho in RARE_FRACTIONS)
    lines.append(f"  at mu = .5 misses are most frequent at N = {peaks} for these rho")
    if gamma > 0:
        weights = "  ".join(f"{float(focal_weight(mu, gamma)):.2f} at {mu:g}" for mu in SUCCESS_RATES)
        lines.append(f"Focal weight (1 - mu)^{gamma:g}: {weights}")
        lines.append(
            f"  it leaves {float(matched_learning_rate(gamma)):.3g} of the mean advantage (success rates uniform): "
            "the learning-rate factor of the low-LR control"
        )
    else:
        lines.append("Focal weight: off (focal_gamma 0)")
    return lines


def recipes_text() -> str:
    """The names that `--config` takes, with a sentence each."""
    rows = [("tiny", tiny_preset().summary), *((name, method.summary) for name, method in METHODS.items())]
    return "\n".join(f"{name:<20} {summary}" for name, summary in rows)
