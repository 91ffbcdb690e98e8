"""Commands that need theory alone: tail-miss, advise, prove."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fgrpo.commands.options import Json, list_of

PROOF_FAILED = 1


def tail_miss(
    success_rate: Annotated[float, typer.Option("--success-rate", metavar="MU", help="mu, in [0, 1].")],
    rare_mass: Annotated[float, typer.Option("--rare-mass", metavar="TAU", help="tau, in [0, mu].")],
    group_size: Annotated[
        str, typer.Option("--group-size", metavar="N,N,...", help="Group sizes, comma-separated.")
    ] = "2,4,8,16,32,64,128",
    as_json: Json = False,
) -> None:
    """Probability that a group is active and misses the rare-correct region (Lemma 3.1), by group size.

    Example: fgrpo tail-miss --success-rate 0.3 --rare-mass 0.03 --group-size 2,8,32
    """
    from fgrpo.theory import active_probability, peak_group_size, tail_miss_probability

    sizes = list_of(int, "--group-size", group_size)
    active = active_probability(success_rate, sizes)
    miss = tail_miss_probability(success_rate, rare_mass, sizes)
    peak = float(peak_group_size(success_rate, rare_mass))
    if as_json:
        rows = [
            {"group_size": n, "active_probability": a, "tail_miss_probability": b}
            for n, a, b in zip(sizes, active.tolist(), miss.tolist(), strict=True)
        ]
        finite_peak = int(peak) if math.isfinite(peak) else None
        print(json.dumps({"peak_group_size": finite_peak, "rows": rows}, indent=2))
        return
    print(f"{'N':>10}  {'Pr(active)':>12}  {'Pr(tail miss)':>13}")
    for n, a, b in zip(sizes, active, miss, strict=True):
        print(f"{n:>10}  {a:>12.6g}  {b:>13.6g}")
    if math.isnan(peak):
        print("no group size has a tail miss")
    elif math.isinf(peak):
        print("a region of no mass is always missed: tail misses are the active groups and rise with N")
    else:
        print(f"Pr(tail miss) of a group is highest at N = {peak:.0f}")


def advise(
    success_rate: Annotated[
        float | None, typer.Option("--success-rate", metavar="MU", help="mu of one prompt, in [0, 1].")
    ] = None,
    rare_mass: Annotated[
        float | None, typer.Option("--rare-mass", metavar="TAU", help="Assumed tau of that prompt, in [0, mu].")
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option("--counts", metavar="FILE", help="Samples and correct per prompt: CSV, JSONL, JSON or parquet."),
    ] = None,
    rare_fraction: Annotated[
        float | None, typer.Option("--rare-fraction", metavar="RHO", help="Assumed tau / mu; needed with --counts.")
    ] = None,
    group_size: Annotated[int, typer.Option("--group-size", metavar="N", help="Rollouts per prompt.")] = 8,
    rollouts_per_step: Annotated[
        int | None, typer.Option("--rollouts-per-step", metavar="R", help="A multiple of N: compares budgets.")
    ] = None,
    gamma: Annotated[
        float | None, typer.Option("--gamma", metavar="G", help="Focal exponent: says what it changes.")
    ] = None,
    level: Annotated[
        float, typer.Option("--level", metavar="P", help="Tail-miss probability that counts as risky.")
    ] = 0.5,
    as_json: Json = False,
) -> None:
    """Say in words where a group size stands: inactive, miss-prone or covered, and what a focal weight changes.

    The rare mass is an assumption. With --counts it is --rare-fraction times each prompt's estimated success rate.

    Example: fgrpo advise --success-rate 0.3 --rare-mass 0.03 --group-size 8 --rollouts-per-step 512 --gamma 1
    """
    from fgrpo.advice import advise as run
    from fgrpo.advice_text import advice_text
    from fgrpo.counts import read_counts

    advice = run(
        success_rate=success_rate,
        rare_mass=rare_mass,
        counts=None if counts is None else read_counts(counts),
        rare_fraction=rare_fraction,
        group_size=group_size,
        rollouts_per_step=rollouts_per_step,
        gamma=gamma,
        level=level,
    )
    print(json.dumps(advice.to_dict(), indent=2, allow_nan=False) if as_json else advice_text(advice))


def prove(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Proofs; default: all.")] = None,
    as_json: Json = False,
) -> None:
    """Run the proofs of the theory with sympy; exit code 1 if one fails.

    Example: fgrpo prove lemma_3_1 log_concavity
    """
    from fgrpo.theory._validation import one_of
    from fgrpo.theory.proofs import PROOFS, verify

    reports = []
    for name in [one_of("name", name, tuple(PROOFS)) for name in names or PROOFS]:
        report = verify(name)
        reports.append(report)
        if not as_json:
            print(report, *(f"  not established: {step.text}" for step in report.failed), sep="\n", flush=True)
    if as_json:
        rows = [
            {
                "name": report.name,
                "ok": report.ok,
                "checked": report.checked,
                "on_lemmas": report.on_lemmas,
                "seconds": report.seconds,
                "steps": [asdict(step) for step in report.steps],
            }
            for report in reports
        ]
        print(json.dumps(rows, indent=2))
    if not all(report.ok for report in reports):
        raise typer.Exit(PROOF_FAILED)
