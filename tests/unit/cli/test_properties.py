"""Which source of a property wins, and which names are taken."""

import re

import pytest

from odradek.cli.properties import DEFAULTS, parse_pairs, resolve_properties


def test_defaults_need_no_configuration() -> None:
    assert resolve_properties(None, [], {}) == DEFAULTS
    assert DEFAULTS["bootstrap.servers"] == "localhost:9092"


def test_option_wins_over_property_over_environment_over_default() -> None:
    environment = {"ODRADEK_BOOTSTRAP_SERVERS": "env:1", "ODRADEK_CLIENT_ID": "me"}
    assert resolve_properties(None, [], environment)["bootstrap.servers"] == "env:1"
    given = ["bootstrap.servers=x:2"]
    assert resolve_properties(None, given, environment)["bootstrap.servers"] == "x:2"
    assert resolve_properties("b:3", given, environment)["bootstrap.servers"] == "b:3"
    assert resolve_properties("b:3", given, environment)["client.id"] == "me"


def test_librdkafka_names_are_taken() -> None:
    given = ["metadata.broker.list=a:1", "compression.codec = zstd", "security.protocol=plaintext"]
    properties = resolve_properties(None, given, {})
    assert properties["bootstrap.servers"] == "a:1"
    assert properties["compression.type"] == "zstd"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("client.id", "not in the form key=value"),
        ("bootstrap.server=x", "unknown property; did you mean bootstrap.servers?"),
        ("zzz=1", "unknown property (one of bootstrap.servers"),
        ("acks=2", "acks=2: one of all, -1, 0, 1"),
        ("security.protocol=SSL", "security.protocol: SSL is not supported yet; use PLAINTEXT"),
        ("security.protocol=sasl_ssl", "security.protocol: sasl_ssl is not supported yet; use PLAINTEXT"),
        ("security.protocol=TLS", "security.protocol: TLS is not a security protocol; use PLAINTEXT"),
        ("ssl.ca.location=/ca", "-X ssl.ca.location: SSL is not supported yet; use PLAINTEXT"),
        ("sasl.username=me", "-X sasl.username: SASL is not supported yet; use PLAINTEXT"),
        ("request.timeout.ms=soon", "not a number of milliseconds"),
    ],
)
def test_what_cannot_be_taken_is_named(setting: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        resolve_properties(None, [setting], {})


def test_pairs() -> None:
    assert parse_pairs("-c", ["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(ValueError, match="-c a: not in the form key=value"):
        parse_pairs("-c", ["a"])
