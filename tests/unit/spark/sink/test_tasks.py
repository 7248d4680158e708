"""Which batch a task writes for, by what Spark says of its job and by what the options say."""

import pytest

from odradek.spark.ledger.ledger import Stream, participant_id, run_of
from odradek.spark.options import OptionError, SinkOptions, sink_options
from odradek.spark.sink import tasks
from odradek.spark.sink.tasks import BATCH, GROUP, QUERY, Task

RUN = "0f8fad5b-d9cb-469f-a165-70867728950e"
OF_BATCH = {QUERY: "q", BATCH: "37", GROUP: RUN}
JOB = "abcdef012345"


def options(**given: str) -> SinkOptions:
    return sink_options({"kafka.bootstrap.servers": "x", "checkpointLocation": "/here", **given})


def test_a_write_in_a_batch_is_told_the_checkpoint_or_refused() -> None:
    bare = {"kafka.bootstrap.servers": "x"}
    keyed = {**bare, "idempotencyKey": "k", "batchId": "5"}
    for given in (bare, keyed):
        with pytest.raises(
            OptionError, match=r'Add this line to the write.*\.option\("checkpointLocation", '
        ):
            tasks.of_write(OF_BATCH.get, sink_options(given), JOB)
        tasks.of_write({}.get, sink_options(given), JOB)
        tasks.of_write(OF_BATCH.get, sink_options({**given, "delivery": "at-least-once"}), JOB)


def test_of_a_stream() -> None:
    assert tasks.of_stream(OF_BATCH.get, options(sinkId="s")) == Task(Stream("q", "s"), "0f8fad5b", 37)


def test_of_a_write_in_a_batch_of_a_query() -> None:
    found = tasks.of_write(OF_BATCH.get, options(), JOB)
    assert found == Task(Stream("q", "sink"), "0f8fad5b", 37)
    assert tasks.is_of_batches(found, options(), JOB)


@pytest.mark.parametrize("group", ["etl.daily", "nightly", "", None])
def test_a_group_that_a_program_named_is_no_run(group: str | None) -> None:
    """Two drivers may name it alike, and with a dot in it nobody would find what the run has left open."""
    of = {**OF_BATCH, GROUP: group}
    found = tasks.of_write(of.get, options(), JOB)
    assert found == Task(Stream("q", "sink"), JOB[:8], 37)
    taken = participant_id("p", found.stream, found.run, "worker", 0)
    assert run_of("p", found.stream, taken) == found.run


def test_of_a_plain_write() -> None:
    plain = tasks.of_write({}.get, options(), JOB)
    assert plain == Task(Stream(JOB, "sink"), JOB[:8], 0)
    keyed = tasks.of_write({}.get, options(idempotencyKey="k"), JOB)
    assert keyed == Task(Stream("k", "sink"), JOB[:8], 0)
    assert not tasks.is_of_batches(plain, options(), JOB)
    assert not tasks.is_of_batches(keyed, options(idempotencyKey="k"), JOB)


@pytest.mark.parametrize("of", [{}, OF_BATCH])
def test_a_number_that_is_given_goes_before_what_spark_says(of: dict[str, str]) -> None:
    """So that a program in foreachBatch is the same on Spark Connect, and in threads of its own."""
    given = options(idempotencyKey="k", batchId="5")
    found = tasks.of_write(of.get, given, JOB)
    assert found == Task(Stream("k", "sink"), JOB[:8], 5)
    assert tasks.is_of_batches(found, given, JOB)
