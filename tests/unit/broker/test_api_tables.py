"""What each kind of listener serves, beside what Apache Kafka 4.3.1 advertised on it."""

import json
from pathlib import Path

import pytest

from odradek.broker.apis import BROKER_APIS, CONTROLLER_APIS, ApiTable
from odradek.broker.dispatch import handler_of
from odradek.wire.api_keys import ApiKey

APACHE = json.loads((Path(__file__).parents[2] / "golden/api-versions.json").read_text())
LACKING = {"sasl_handshake", "sasl_authenticate", "alter_client_quotas", "alter_user_scram_credentials"}


def advertised(listener: str) -> dict[str, tuple[int, int]]:
    return {api["name"]: (api["min"], api["max"]) for api in APACHE[listener]["apis"]}


def test_a_controller_listener_serves_what_apache_serves_there_at_the_same_versions() -> None:
    ours = {key.name.lower(): tuple(versions) for key, versions in CONTROLLER_APIS.served.items()}
    theirs = advertised("controller")
    assert ours == {name: versions for name, versions in theirs.items() if name not in LACKING}


def test_no_listener_serves_what_apache_does_not_serve_there() -> None:
    assert {key.name.lower() for key in BROKER_APIS.served} <= advertised("broker").keys()


@pytest.mark.parametrize("table", [BROKER_APIS, CONTROLLER_APIS], ids=["broker", "controller"])
def test_every_row_has_a_handler(table: ApiTable) -> None:
    for api_key in table.served:
        if api_key not in (ApiKey.PRODUCE, ApiKey.FETCH) or table is CONTROLLER_APIS:
            assert handler_of(api_key, table) is not None, api_key.name


def test_produce_is_only_a_brokers() -> None:
    assert BROKER_APIS.produce_key == ApiKey.PRODUCE
    assert not CONTROLLER_APIS.serves(ApiKey.PRODUCE, 9)
    assert not BROKER_APIS.serves(ApiKey.VOTE, 0)
    assert not BROKER_APIS.serves(ApiKey.PRODUCE, 2)
