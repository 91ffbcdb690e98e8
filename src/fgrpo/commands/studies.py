"""Commands that run or read a sweep and draw conclusions from it: fgrpo sweep compare, readings, zone."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fgrpo.commands.options import Json, Out, Quiet, Workers, list_of

if TYPE_CHECKING:
    from pandas import DataFrame

Preset = Annotated[str, typer.Option("--preset", metavar="NAME", help="Update rule, e.g. figure_matching.")]
Seeds = Annotated[int, typer.Option("--seeds", metavar="K", help="Seeds 0 to K - 1, at least 2 for an interval.")]


def compare(
    group_size: Annotated[
        str, typer.Option("--group-size", metavar="N,N,...", help="Arms are compared within each.")
    ] = "64,512,8192",
    gamma: Annotated[
        str, typer.Option("--gamma", metavar="G,G,...", help="Focal exponents above 0; the baseline has none.")
    ] = "0.1,0.25,0.5,1,1.5,2,4",
    seeds: Seeds = 8,
    steps: Annotated[int, typer.Option("--steps", metavar="T", help="Updates of each run.")] = 2000,
    preset: Preset = "figure_matching",
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", metavar="ETA", help="Default: the preset's.")
    ] = None,
    success_estimate: Annotated[
        str, typer.Option("--success-estimate", metavar="NAME,...", help="What the focal weights see, an arm for each.")
    ] = "empirical",
    against: Annotated[
        str, typer.Option("--against", metavar="ARM", help="Arm to which the others are compared.")
    ] = "baseline",
    record_every: Annotated[int, typer.Option("--record-every", metavar="K", help="Steps between two records.")] = 10,
    out: Out = Path("results/compare"),
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare focal weights with none at matched rollouts, correct mass and KL to the start.

    Controls: for each gamma the paper's low learning rate, and a constant scale. Runs what --out does not hold, writes
    comparison.png, .pdf and .csv there, and prints retained mass with 95 % intervals over seeds (the CSV and --json
    also have the entropy within the correct actions). Example: fgrpo sweep compare --group-size 512 --gamma 0.5,1
    """
    from fgrpo.simulate.comparison import against as arms_against
    from fgrpo.simulate.comparison import comparison_arms, comparison_text
    from fgrpo.studies import compare as run
    from fgrpo.sweep_request import warn_of_no_gradient

    changes = {} if learning_rate is None else {"learning_rate": learning_rate}
    arms = comparison_arms(
        preset,
        group_sizes=list_of(int, "--group-size", group_size),
        gammas=list_of(float, "--gamma", gamma),
        seeds=range(seeds),
        success_estimates=success_estimate.split(","),
        steps=steps,
        record_every=record_every,
        **changes,
    )
    arms = arms_against(arms, against)
    warn_of_no_gradient(run for arm in arms for run in arm.runs)
    table, written = run(arms, out, workers=workers, progress=not quiet)
    _show(table, comparison_text, written, as_json=as_json, quiet=quiet)


def readings(
    reading: Annotated[
        str | None, typer.Option("--reading", metavar="NAME;NAME;...", help="Some of them, separated by semicolons.")
    ] = None,
    group_size: Annotated[
        str, typer.Option("--group-size", metavar="N,N,...", help="At least three, ascending.")
    ] = "2,32,512,8192,131072",
    seeds: Seeds = 8,
    steps: Annotated[int, typer.Option("--steps", metavar="T", help="Updates of each run.")] = 1000,
    actions: Annotated[int, typer.Option("--actions", metavar="A", help="Actions of the policy.")] = 128_000,
    correct: Annotated[int, typer.Option("--correct", metavar="C", help="Correct ones of them.")] = 10_000,
    out: Out = Path("results/readings"),
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the update rules that Appendix J may mean, and judge the paper's sentences S1 to S4 about its figure by each.

    S1: Q_pos increases for all N. S2: small and large N retain M_ret, the middle collapses. S3: the largest N keeps it
    near 1 throughout. S4: only that one does. The rules are in fgrpo.simulate.readings. Writes readings.png, .pdf and
    .csv into --out. Example: fgrpo sweep readings --seeds 8
    """
    from fgrpo.simulate.readings import READINGS, readings_sweep, readings_text
    from fgrpo.studies import readings as run
    from fgrpo.sweep_request import warn_of_no_gradient

    plan = readings_sweep(
        READINGS if reading is None else reading.split(";"),
        group_sizes=list_of(int, "--group-size", group_size),
        seeds=range(seeds),
        steps=steps,
        actions=actions,
        correct=correct,
    )
    warn_of_no_gradient(run for runs in plan.values() for run in runs)
    table, written = run(plan, out, workers=workers, progress=not quiet)
    _show(table, readings_text, written, as_json=as_json, quiet=quiet)


def zone(
    steps: Annotated[
        str, typer.Option("--steps", metavar="T,T,...", help="Numbers of updates, recorded ones.")
    ] = "1000",
    out: Out = Path("results"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say where the collapse zone of the sweep in --out lies, by setting and number of updates.

    The zone: group sizes whose mean M_ret over the seeds is below 1/2. Writes zone.png, .pdf and .csv into --out.
    Example: fgrpo sweep run --config docs/studies/zone.yaml --out results/zone,
    then fgrpo sweep zone --steps 1000,2000,4000 --out results/zone
    """
    from fgrpo.simulate.zones import zone_text
    from fgrpo.studies import zone as run

    table, written = run(out, list_of(int, "--steps", steps))
    _show(table, zone_text, written, as_json=as_json, quiet=quiet)


def _show(
    table: "DataFrame", text: Callable[["DataFrame"], str], written: list[Path], *, as_json: bool, quiet: bool
) -> None:
    if as_json:
        print(table.to_json(orient="records", indent=2, double_precision=15))
        return
    print(text(table))
    if not quiet:
        print("\n".join(["", *map(str, written)]))
