"""ID@HOST:PORT:DIRECTORY-ID, as `--initial-controllers` takes it. Kafka's words where it is wrong. Pure.

`cluster quorum add` takes one of them, and knows the directory id where it is left out.
"""

import re
from typing import Final

from odradek.core.types import ZERO_UUID, uuid_from_text
from odradek.raft.voters import Voter, VoterEndpoint, VoterSet

_MAX_PORT: Final = 65535


def parse_voters(text: str, listener_name: str) -> VoterSet:
    """The first voters of a cluster. ValueError says what is wrong with them."""
    voters: dict[int, Voter] = {}
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        voter = _parse_voter(entry, listener_name)
        if voter.id in voters:
            raise ValueError(f"Node id {voter.id} was specified more than once.")
        voters[voter.id] = voter
    if not voters:
        raise ValueError("No voters given.")
    return VoterSet(voters.values())


def parse_new_voter(text: str, listener_name: str) -> Voter:
    """One voter; ZERO_UUID where it names no directory. ValueError says what is wrong with it."""
    return _parse_voter(text, listener_name, needs_directory=False)


def _parse_voter(text: str, listener_name: str, *, needs_directory: bool = True) -> Voter:
    number, at, rest = text.partition("@")
    if not at:
        raise ValueError("No @ found in dynamic voter string.")
    if not number:
        raise ValueError("Invalid @ at beginning of dynamic voter string.")
    if not re.fullmatch(r"-?[0-9]+", number):
        raise ValueError("Failed to parse node id in dynamic voter string.")
    if number.startswith("-"):
        raise ValueError(f"Invalid negative node id {number} in dynamic voter string.")
    host, rest = _split_host(rest)
    port, colon, directory = rest.partition(":")
    if not colon and needs_directory:
        raise ValueError("No colon following port could be found.")
    if not re.fullmatch(r"-?[0-9]+", port):
        raise ValueError("Failed to parse port in dynamic voter string.")
    if not 0 <= int(port) <= _MAX_PORT:
        raise ValueError(f"Invalid port {port} in dynamic voter string.")
    try:
        directory_id = uuid_from_text(directory) if colon else ZERO_UUID
    except ValueError as e:
        raise ValueError("Failed to parse directory ID in dynamic voter string.") from e
    return Voter(int(number), directory_id, (VoterEndpoint(listener_name, host, int(port)),))


def _split_host(text: str) -> tuple[str, str]:
    """The host and what follows its colon; an IPv6 address stands in brackets."""
    if not text:
        raise ValueError("No hostname found after node id.")
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket:
            raise ValueError("Hostname began with left bracket, but no right bracket was found.")
        if not rest.startswith(":"):
            raise ValueError("Port section must start with a colon.")
        return host, rest[1:]
    host, colon, rest = text.partition(":")
    if not colon:
        raise ValueError("No colon following hostname could be found.")
    return host, rest
