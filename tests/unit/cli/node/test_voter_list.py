"""--initial-controllers: what is taken, and Kafka's words for what is not."""

import pytest

from odradek.cli.node.voter_list import parse_voters
from odradek.core.types import uuid_to_text
from odradek.raft.voters import VoterEndpoint

DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"


def test_voters_have_an_id_an_address_and_a_directory() -> None:
    voters = parse_voters(f"1@example.com:8082:{DIRECTORY},2@[::1]:8083:MvDxzVmcRsaTz33bUuRU6A", "C")
    assert voters.ids == (1, 2)
    first, second = voters.voters
    assert first.endpoints == (VoterEndpoint("C", "example.com", 8082),)
    assert uuid_to_text(first.directory_id) == DIRECTORY
    assert second.endpoints == (VoterEndpoint("C", "::1", 8083),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "No voters given."),
        ("localhost:8082", "No @ found in dynamic voter string."),
        (f"@localhost:8082:{DIRECTORY}", "Invalid @ at beginning of dynamic voter string."),
        (f"x@localhost:8082:{DIRECTORY}", "Failed to parse node id in dynamic voter string."),
        (f"-1@localhost:8082:{DIRECTORY}", "Invalid negative node id -1 in dynamic voter string."),
        ("5@", "No hostname found after node id."),
        (f"5@[::1:8082:{DIRECTORY}", "Hostname began with left bracket, but no right bracket was found."),
        ("5@[::1]8082", "Port section must start with a colon."),
        ("5@localhost", "No colon following hostname could be found."),
        ("5@localhost:8082", "No colon following port could be found."),
        (f"5@localhost:x:{DIRECTORY}", "Failed to parse port in dynamic voter string."),
        (f"5@localhost:65536:{DIRECTORY}", "Invalid port 65536 in dynamic voter string."),
        ("5@localhost:8082:nope", "Failed to parse directory ID in dynamic voter string."),
        (f"5@h:1:{DIRECTORY},5@h:2:{DIRECTORY}", "Node id 5 was specified more than once."),
    ],
)
def test_a_wrong_list_is_refused_in_kafkas_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace(".", r"\.") + "$"):
        parse_voters(text, "C")
