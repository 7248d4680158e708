"""`odradek sim`: whole clusters under virtual time. The simulation itself is odradek.sim's."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from odradek.sim.main import StoryKind

app = typer.Typer()

_Transactions = Annotated[
    bool, typer.Option("--transactions", help="The story of transactions, not that of producers and groups.")
]
_Pipelines = Annotated[
    bool, typer.Option("--pipelines", help="The story of a Spark query that writes exactly once.")
]


@app.command("run")
def run(
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="COUNT", help="How many seeds to play.")
    ] = 100,
    start: Annotated[int, typer.Option("--start", min=0, metavar="SEED", help="The first seed.")] = 0,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", metavar="MINUTES", help="Stop after so long.", show_default=False),
    ] = None,
    transactions: _Transactions = False,
    pipelines: _Pipelines = False,
) -> None:
    """Play seeds until one has a finding.

    Exits with 3 then.
    """
    from odradek.sim.main import run as run_seeds

    raise typer.Exit(run_seeds(seeds, start, minutes, story=_story(transactions, pipelines)))


@app.command("replay")
def replay(
    seed: Annotated[int, typer.Argument(metavar="SEED", help="The seed to play again.")],
    trace: Annotated[bool, typer.Option("--trace", help="Show every event as it happens.")] = False,
    transactions: _Transactions = False,
    pipelines: _Pipelines = False,
) -> None:
    """Play one seed again and tell what befell the node."""
    from odradek.sim.main import replay as replay_seed

    raise typer.Exit(replay_seed(seed, trace=trace, story=_story(transactions, pipelines)))


def _story(transactions: bool, pipelines: bool) -> "StoryKind":
    from odradek.sim.main import StoryKind

    if transactions and pipelines:
        raise typer.BadParameter("one story at a time: --transactions or --pipelines")
    return StoryKind.TRANSACTIONS if transactions else StoryKind.PIPELINES if pipelines else StoryKind.GROUPS
