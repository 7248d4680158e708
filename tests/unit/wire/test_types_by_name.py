"""`requests` and `responses`: the classes of messages by the name of their API."""

import pytest

from odradek.wire import requests, responses
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types, response_types


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: key.name)
def test_every_api_has_its_classes_under_its_name(key: ApiKey) -> None:
    name = key.name.lower()
    assert getattr(requests, name) is request_types(key)
    assert getattr(responses, name) is response_types(key)


def test_a_class_is_found_without_a_call_from_the_second_time_on() -> None:
    assert requests.create_topics is vars(requests)["create_topics"]


def test_what_no_api_is_called_is_an_error() -> None:
    with pytest.raises(AttributeError, match="there is no API create_topic"):
        _ = requests.create_topic  # type: ignore[attr-defined]
