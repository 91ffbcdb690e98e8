"""Commands about sweeps of the simulator: fgrpo sweep run, status."""

import json
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from fgrpo.commands.options import Json, Out, Quiet, Workers

app = typer.Typer(
    help="Sweeps of the simulator: run them, see how far they are, draw conclusions.", rich_markup_mode=None
)


@app.callback(invoke_without_command=True)
def _sweep(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def _values(name: str, text: str) -> Any:
    """An option for one field of the grid."""
    return typer.Option(name, metavar="V,V,...", help=text, show_default=False)


@app.command()
def run(
    preset: Annotated[str | None, _values("--preset", "Update rules; default: figure_matching.")] = None,
    group_size: Annotated[str | None, _values("--group-size", "Rollouts per prompt.")] = None,
    gamma: Annotated[str | None, _values("--gamma", "Focal exponents; default: 0.")] = None,
    steps: Annotated[str | None, _values("--steps", "Updates per run; default: 1000.")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", metavar="K", help="Number of seeds, from 0 on.")] = None,
    seed: Annotated[str | None, _values("--seed", "The seed itself; default: 0.")] = None,
    learning_rate: Annotated[str | None, _values("--learning-rate", "Step sizes.")] = None,
    weight_decay: Annotated[str | None, _values("--weight-decay", "Decoupled weight decays.")] = None,
    optimizer: Annotated[str | None, _values("--optimizer", "adam, sgd, signsgd, rmsprop.")] = None,
    surrogate: Annotated[str | None, _values("--surrogate", "importance_ratio, linear, linear_distinct.")] = None,
    advantage_scale: Annotated[str | None, _values("--advantage-scale", "none, std.")] = None,
    weight: Annotated[str | None, _values("--weight", "focal, constant, hard_upweight, step.")] = None,
    success_estimate: Annotated[
        str | None, _values("--success-estimate", "empirical, population, shrunk, ema.")
    ] = None,
    actions: Annotated[str | None, _values("--actions", "Numbers of actions.")] = None,
    correct: Annotated[str | None, _values("--correct", "Numbers of correct actions.")] = None,
    record_every: Annotated[str | None, _values("--record-every", "Steps between records.")] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=V,V,...", help="Any other field of a run, e.g. eps=1e-8,1e-20."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="YAML with these names and lists; options go before it."),
    ] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME", help="auto, reference, sparse, torch.")
    ] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="NAME", help="cpu, cuda, cuda:1.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for results; default: results.")
    ] = None,
    workers: Workers = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="A dask scheduler whose workers compute.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Compute finished runs again.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be computed, and stop.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compute one run for each combination of the values, and keep each as soon as it is finished.

    Lists are comma-separated. A broken-off call goes on where it was; finished runs are reused whichever engine
    computed them. Example: fgrpo sweep run --group-size 2,8,32 --gamma 0,1 --seeds 4 --out results/small
    """
    from fgrpo.simulate.scheduler import scheduler_executor
    from fgrpo.simulate.status import sweep_status
    from fgrpo.simulate.summary import counted
    from fgrpo.simulate.sweep import plan_sweep, run_sweep
    from fgrpo.sweep_request import sweep_request, warn_of_no_gradient
    from fgrpo.words import plain

    lists = {
        "--preset": preset,
        "--group-size": group_size,
        "--gamma": gamma,
        "--steps": steps,
        "--seed": seed,
        "--learning-rate": learning_rate,
        "--weight-decay": weight_decay,
        "--optimizer": optimizer,
        "--surrogate": surrogate,
        "--advantage-scale": advantage_scale,
        "--weight": weight,
        "--success-estimate": success_estimate,
        "--actions": actions,
        "--correct": correct,
        "--record-every": record_every,
    }
    settings = {"engine": engine, "device": device, "out": out, "workers": workers, "scheduler": scheduler}
    request = sweep_request(lists, fields or [], seeds, settings, config)
    warn_of_no_gradient(request.configs)
    how: dict[str, Any] = {name: getattr(request, name) for name in ("engine", "device", "workers")}
    how["overwrite"] = overwrite
    if dry_run:
        plan = plan_sweep(request.configs, request.out, **how)
        print(json.dumps(asdict(plan), indent=2) if as_json else plan)
        return
    with scheduler_executor(request.scheduler, tell=_tell) if request.scheduler else nullcontext() as executor:
        table = run_sweep(request.configs, request.out, **how, executor=executor, progress=not quiet)
    if others := request.computed_otherwise(table):
        print(
            f"fgrpo: stored before, computed otherwise: {counted(others, 'run')}; --overwrite computes them again",
            file=sys.stderr,
        )
    if as_json:
        print(json.dumps(plain(sweep_status(request.out).to_dict()), indent=2, allow_nan=False))
    elif not quiet:
        print(sweep_status(request.out))


def _tell(text: str) -> None:
    print(f"fgrpo: {text}", file=sys.stderr, flush=True)


@app.command()
def status(
    folder: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="The same as --out.")] = None,
    out: Out = Path("results"),
    as_json: Json = False,
) -> None:
    """Say how far the sweep last asked for is, what computed it, and the final values so far; also while it runs.

    M_ret (retained_mass) and Q_pos (correct_mass) are means over seeds. Example: fgrpo sweep status results/small
    """
    from fgrpo.simulate.status import sweep_status
    from fgrpo.words import plain

    found = sweep_status(folder or out)
    print(json.dumps(plain(found.to_dict()), indent=2, allow_nan=False) if as_json else found)
