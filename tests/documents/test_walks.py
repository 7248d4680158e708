"""The walks that ARCHITECTURE.md lists are those that requests take, and no request goes up a layer.

Violations are planted to see that the tracer notices them: into code of the tests' own, and into a node.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from odradek.log.log import Log
from odradek.runtime.reply import Reply
from tests.documents import node_walks, walks
from tests.documents.layers import Place, is_upward, layers, place
from tests.documents.tracer import Tracer, Upward
from tests.documents.walks import MICRO_BATCH, WALKS, listed, lists, returns, trace

pytestmark = pytest.mark.xdist_group("walks")  # each is traced once for all tests

TEXT = walks.DOCUMENT.read_text()
OF_NODE = [title for title in WALKS if title != MICRO_BATCH]


@pytest.mark.parametrize("title", WALKS)
def test_a_request_enters_the_modules_that_the_document_lists(title: str) -> None:
    assert lists(TEXT)[title] == listed(trace(title).entered), "`make docs` writes the walk as it is now"


@pytest.mark.parametrize("title", WALKS)
def test_no_request_goes_up_a_layer(title: str) -> None:
    assert trace(title).requests_upwards() == []


@pytest.mark.parametrize("title", WALKS)
def test_what_returns_to_a_layer_is_listed(title: str) -> None:
    assert _pairs(trace(title)) - set(returns(TEXT)) == set()


def test_every_return_that_is_listed_is_made() -> None:
    made = set().union(*(_pairs(trace(title)) for title in OF_NODE))
    assert [pair for pair in returns(TEXT) if pair not in made] == []


def test_every_walk_is_listed_once() -> None:
    assert list(lists(TEXT)) == list(WALKS)


def _pairs(tracer: Tracer) -> set[tuple[str, str]]:
    return {(call.caller, call.called) for call in tracer.gave}


# --- what is planted is noticed -----------------------------------------------------------------------


def planted(module: str, source: str, **known: Any) -> Callable[..., Any]:
    """A function as a module of the package would have it."""
    names: dict[str, Any] = {"__name__": f"odradek.{module}", "asyncio": asyncio, **known}
    exec(source, names)
    function: Callable[..., Any] = names["f"]
    return function


def followed(function: Callable[[], Any]) -> Tracer:
    tracer = Tracer()
    tracer.begin()
    try:
        function()
    finally:
        tracer.end()
    return tracer


ANSWER = planted("broker.planted", "def f(): return 1")
HEAR = planted("broker.planted", "def f(*_): pass")
STEPS = planted("broker.planted", "def f():\n yield 3\n yield 4")
COUNT = planted("broker.planted", "def f():\n yield 3\n return 4")
LATER = planted("broker.planted", "async def f(): return None")
ASK = planted("log.planted", "def f(g): return g()")
UPWARD = [Upward("log/planted", "broker/planted", "f")]


def test_a_request_from_below_is_noticed() -> None:
    assert followed(lambda: ASK(ANSWER)).requests_upwards() == UPWARD


def test_a_call_from_below_that_gives_nothing_back_is_a_return() -> None:
    tracer = followed(lambda: ASK(HEAR))
    assert (tracer.requests_upwards(), list(tracer.gave)) == ([], UPWARD)


def test_steps_of_paced_work_are_no_answer_but_its_result_is() -> None:
    carry_out = planted("log.planted", "def f(g):\n for _ in g(): pass")
    assert followed(lambda: carry_out(STEPS)).requests_upwards() == []
    result_of = planted("log.planted", "def f(g): return (yield from g())")
    assert followed(lambda: list(result_of(COUNT))).requests_upwards() == UPWARD


def test_a_request_to_a_layer_beside_is_noticed() -> None:
    ask = planted("controller.planted", "def f(g): return g()")
    answer = planted("replication.planted", "def f(): return 1")
    beside = Upward("controller/planted", "replication/planted", "f")
    assert followed(lambda: ask(answer)).requests_upwards() == [beside]


def test_a_request_through_tools_and_wiring_is_noticed() -> None:
    ask = planted("log.planted", "def f(g): return Reply(1).then(lambda _: g())", Reply=Reply)
    wire = planted("broker.node", "def f(): return g()", g=ANSWER)
    assert followed(lambda: ask(wire)).requests_upwards() == UPWARD


def test_a_task_of_a_layer_above_is_noticed() -> None:
    spawn = planted("log.planted", "async def f(g): await asyncio.create_task(g())")
    assert followed(lambda: asyncio.run(spawn(LATER))).requests_upwards() == UPWARD


def test_what_the_loop_calls_is_no_request_of_a_layer_below() -> None:
    source = "async def f(hear):\n asyncio.get_running_loop().call_soon(hear)\n await asyncio.sleep(0)"
    replies = planted("log.planted", source)
    tracer = followed(lambda: asyncio.run(replies(ANSWER)))
    assert (list(tracer.entered), tracer.gave) == ([Place("log", "planted"), Place("broker", "planted")], {})


def test_a_request_upwards_within_a_node_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Log.append_as_leader
    asks = planted("log.log", "def f(*args): return answer() and append(*args)", answer=ANSWER, append=append)
    monkeypatch.setattr(Log, "append_as_leader", asks)
    found = node_walks.traced(node_walks.record_in)
    assert found.requests_upwards() == [Upward("log/log", "broker/planted", "f")]
    assert Place("broker", "planted") in found.entered


def test_a_module_that_is_missing_or_in_another_place_is_noticed() -> None:
    moved = TEXT.replace("manager, partition\n", "partition, manager\n", 1)
    missing = TEXT.replace(", handlers/create_topics,", ",", 1)
    assert TEXT not in (moved, missing)
    for text in (moved, missing):
        assert any(lists(text)[title] != listed(trace(title).entered) for title in OF_NODE)


# --- the rules ----------------------------------------------------------------------------------------


THING = """
class f:
    def __init__(self): self.value = 1
    @property
    def double(self): return 2 * self.value
    def use(self): return self.double
"""


def test_to_look_at_an_object_is_not_to_enter_its_module() -> None:
    make = planted("raft.planted", THING)
    assert list(followed(lambda: make().double).entered) == []
    assert list(followed(lambda: make().use()).entered) == [Place("raft", "planted")]


def test_places_are_modules_folders_or_layers() -> None:
    assert place("broker/network/connection") == Place("broker", "network/connection")
    assert place("log/parts/reading") == Place("log", "parts")
    assert place("log/manager") == Place("log", "manager")
    assert place("records/check") == Place("records", "")
    assert place("broker/node") is place("core/types") is place("runtime/reply") is None
    assert place("records/twins/kernel") is None


def test_the_layers_are_those_of_the_import_linter() -> None:
    assert layers()[-1] == "core" and set(layers()) > {"cli", "broker", "spark", "raft", "libraries"}
    assert is_upward("log/log", "raft/driver") and is_upward("log/log", "client/client")
    assert not is_upward("raft/driver", "log/log") and not is_upward("log/log", "log/manager")
