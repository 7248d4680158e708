"""`odradek sim`: whole clusters under virtual time. odradek.sim simulates them."""

from typing import TYPE_CHECKING, Annotated

from odradek.cli.declaring import Argument, Command, Noun, option, parameters_of
from odradek.cli.errors import Usage

if TYPE_CHECKING:
    from odradek.sim.main import StoryKind

_Transactions = Annotated[
    bool, option("--transactions", help="Simulate transactions instead of producers and groups.")
]
_Pipelines = Annotated[bool, option("--pipelines", help="Simulate a Spark query that writes exactly once.")]
_Quorum = Annotated[bool, option("--quorum", help="Simulate the metadata quorum's machine alone.")]
_Cluster = Annotated[bool, option("--cluster", help="Simulate clusters of several nodes.")]
_Replication = Annotated[
    bool, option("--replication", help="Simulate clusters of several nodes with replicated topics.")
]
_Seconds = Annotated[
    float | None,
    option(
        "--seconds", metavar="SECONDS", help="How long each story lasts, in virtual time.", show_default=False
    ),
]


def run(
    seeds: Annotated[int, option("--seeds", min=1, metavar="COUNT", help="How many seeds to run.")] = 100,
    start: Annotated[int, option("--start", min=0, metavar="SEED", help="The first seed.")] = 0,
    minutes: Annotated[
        float | None,
        option("--minutes", metavar="MINUTES", help="Stop after this many minutes.", show_default=False),
    ] = None,
    transactions: _Transactions = False,
    pipelines: _Pipelines = False,
    quorum: _Quorum = False,
    cluster: _Cluster = False,
    replication: _Replication = False,
    seconds: _Seconds = None,
) -> None:
    """Run seeds until one has a finding.

    Exits with 3 if one has.
    """
    from odradek.sim.main import run as run_seeds

    story = _story(transactions, pipelines, quorum, cluster, replication, seconds)
    raise SystemExit(run_seeds(seeds, start, minutes, story=story, seconds=seconds))


def replay(
    seed: Annotated[int, Argument(metavar="SEED", help="The seed to replay.")],
    trace: Annotated[bool, option("--trace", help="Show every event as it happens.")] = False,
    transactions: _Transactions = False,
    pipelines: _Pipelines = False,
    quorum: _Quorum = False,
    cluster: _Cluster = False,
    replication: _Replication = False,
    seconds: _Seconds = None,
) -> None:
    """Replay one seed and show what happened to the node."""
    from odradek.sim.main import replay as replay_seed

    story = _story(transactions, pipelines, quorum, cluster, replication, seconds)
    raise SystemExit(replay_seed(seed, trace=trace, story=story, seconds=seconds))


def _story(
    transactions: bool,
    pipelines: bool,
    quorum: bool,
    cluster: bool,
    replication: bool,
    seconds: float | None,
) -> "StoryKind":
    from odradek.sim.main import StoryKind

    asked = [
        story
        for story, wanted in (
            (StoryKind.TRANSACTIONS, transactions),
            (StoryKind.PIPELINES, pipelines),
            (StoryKind.QUORUM, quorum),
            (StoryKind.CLUSTER, cluster),
            (StoryKind.REPLICATION, replication),
        )
        if wanted
    ]
    if len(asked) > 1:
        raise Usage(f"{asked[0].value} and {asked[1].value} cannot be combined")
    if quorum and seconds is not None:
        raise Usage(f"{StoryKind.QUORUM.value} counts steps: it takes no --seconds")
    return asked[0] if asked else StoryKind.GROUPS


app = Noun()
app.add(Command("run", run, parameters_of(run)))
app.add(Command("replay", replay, parameters_of(replay)))
