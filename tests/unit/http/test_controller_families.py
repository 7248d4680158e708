"""Brokers and partitions of the cluster in numbers, under Kafka's names: each is moved by what it counts."""

from types import SimpleNamespace
from typing import Any

from odradek.controller.elections import ElectionKind
from odradek.controller.metrics import ControllerMetrics
from odradek.http.controller_families import controller
from odradek.http.quorum_families import decisions
from tests.unit.controller.harness import Harness

SESSION_MS = 9000


def seen(h: Harness) -> dict[str, float]:
    node: Any = SimpleNamespace(
        metadata=SimpleNamespace(image=h.image), quorum=SimpleNamespace(is_active=True)
    )
    found = {}
    for family in controller(node):
        for sample in () if family is None else family.samples:
            label = sample.labels.get("broker")
            name = sample.name.removeprefix("kafka_controller_kafkacontroller_")
            found[name if label is None else f"{name}/{label}"] = sample.value
    return found


def three_brokers() -> Harness:
    h = Harness()
    for broker_id in (1, 2, 3):
        h.start_broker(broker_id)
    h.create("t", -1, -1, assignments={0: [1, 2], 1: [2, 3], 2: [3, 1]})
    h.create("u", -1, -1, assignments={0: [3]})
    return h


def test_a_whole_cluster_has_nothing_to_complain_of() -> None:
    numbers = seen(three_brokers())
    assert numbers["activecontrollercount"] == 1
    assert (numbers["globaltopiccount"], numbers["globalpartitioncount"]) == (2, 4)
    assert (numbers["activebrokercount"], numbers["fencedbrokercount"]) == (3, 0)
    assert (numbers["offlinepartitionscount"], numbers["preferredreplicaimbalancecount"]) == (0, 0)
    assert numbers["controlledshutdownbrokercount"] == 0
    assert [numbers[f"brokerregistrationstate/{n}"] for n in (1, 2, 3)] == [30, 30, 30]


def test_a_fenced_broker_is_counted_and_what_it_led_is_elsewhere_or_nowhere() -> None:
    h = three_brokers()
    h.now_ms += SESSION_MS - 1
    h.heartbeat(1)
    h.heartbeat(2)
    h.now_ms += 1
    assert h.expire() == 3
    numbers = seen(h)
    assert (numbers["activebrokercount"], numbers["fencedbrokercount"]) == (2, 1)
    assert numbers["brokerregistrationstate/3"] == 10
    assert numbers["offlinepartitionscount"] == 1, "u-0 has no other replica"
    assert numbers["preferredreplicaimbalancecount"] == 2, "t-2 and u-0"
    h.heartbeat(3)
    numbers = seen(h)
    assert (numbers["activebrokercount"], numbers["fencedbrokercount"]) == (3, 0)
    assert (numbers["offlinepartitionscount"], numbers["preferredreplicaimbalancecount"]) == (0, 1)


def test_a_broker_that_stops_is_counted_until_it_registers_again() -> None:
    h = three_brokers()
    h.heartbeat(1, want_shut_down=True)
    numbers = seen(h)
    assert (numbers["controlledshutdownbrokercount"], numbers["brokerregistrationstate/1"]) == (1, 20)
    assert (numbers["activebrokercount"], numbers["fencedbrokercount"]) == (3, 0), "it is not fenced yet"
    for broker_id in (2, 3):
        h.heartbeat(broker_id)
    assert h.heartbeat(1, want_shut_down=True).should_shut_down
    assert seen(h)["brokerregistrationstate/1"] == 10
    h.register(1, process=2)
    assert seen(h)["controlledshutdownbrokercount"] == 0


def test_elections_from_outside_the_isr_are_counted_by_kind() -> None:
    metrics = ControllerMetrics()
    local: Any = SimpleNamespace(metrics=metrics)

    def numbers() -> dict[str, float]:
        return {s.name: s.value for family in decisions(local, 0) for s in family.samples}

    prefix = "kafka_controller_controllerstats"
    names = (f"{prefix}_uncleanleaderelections_total", f"{prefix}_electionfromeligibleleaderreplicas_total")
    assert [numbers()[name] for name in names] == [0, 0]
    metrics.elections[ElectionKind.ISR] += 7
    metrics.elections[ElectionKind.UNCLEAN] += 2
    metrics.elections[ElectionKind.ELR] += 1
    assert [numbers()[name] for name in names] == [2, 1]
