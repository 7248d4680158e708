"""`odradek sim`: whole clusters under virtual time. The simulation itself is odradek.sim's."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from odradek.sim.main import Story

app = typer.Typer()

_Transactions = Annotated[
    bool, typer.Option("--transactions", help="Simulate transactions instead of producers and groups.")
]
_Pipelines = Annotated[
    bool, typer.Option("--pipelines", help="Simulate a Spark query that writes exactly once.")
]


@app.command("run")
def run(
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="COUNT", help="How many seeds to run.")
    ] = 100,
    start: Annotated[int, typer.Option("--start", min=0, metavar="SEED", help="The first seed.")] = 0,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes", metavar="MINUTES", help="Stop after this many minutes.", show_default=False
        ),
    ] = None,
    transactions: _Transactions = False,
    pipelines: _Pipelines = False,
) -> None:
    """Run seeds until one has a finding.

    Exits with 3 if one has.
    """
    from odradek.sim.main import run as run_seeds

    raise typer.Exit(run_seeds(seeds, start, minutes, story=_story(transactions, pipelines)))


@app.command("replay")
def replay(
    seed: Annotated[int, typer.Argument(metavar="SEED", help="The seed to replay.")],
    trace: Annotated[bool, typer.Option("--trace", help="Show every event as it happens.")] = False,
    transactions: _Transactions = False,
    pipelines: _Pipelines = False,
) -> None:
    """Replay one seed and show what happened to the node."""
    from odradek.sim.main import replay as replay_seed

    raise typer.Exit(replay_seed(seed, trace=trace, story=_story(transactions, pipelines)))


def _story(transactions: bool, pipelines: bool) -> "Story":
    from odradek.sim.main import Story

    if transactions and pipelines:
        raise typer.BadParameter("--transactions and --pipelines cannot be combined")
    return Story.TRANSACTIONS if transactions else Story.PIPELINES if pipelines else Story.GROUPS
