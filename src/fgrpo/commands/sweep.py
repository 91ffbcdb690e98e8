"""Commands about sweeps of the simulator: fgrpo sweep run, status."""

import typer

app = typer.Typer(help="Sweeps of the simulator: run them, see how far they are.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def _sweep(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
