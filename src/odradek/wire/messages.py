"""Kafka's requests and responses by API key and version, in one form for all versions.

A decoded message has the fields of all versions, in the form of the newest. An encoder takes such a message
and writes the fields of its version. compat.py converts renamed and regrouped fields.
"""

from functools import cache, partial
from importlib import import_module
from typing import Any

from odradek.core.errors import ProtocolError
from odradek.core.types import Buffer
from odradek.runtime.slices import Paced, at_once
from odradek.wire import compat, offset_fetch
from odradek.wire.api_keys import ApiKey
from odradek.wire.codec import Codec, Decoder, Encoder, SlicedDecoder, SlicedEncoder


@cache
def request_codec(api_key: int) -> Codec:
    return Codec(_definitions(api_key).REQUEST)


@cache
def response_codec(api_key: int) -> Codec:
    return Codec(_definitions(api_key).RESPONSE)


def request_types(api_key: int) -> Any:
    """The classes of a request as a namespace: `request_types(ApiKey.METADATA).MetadataRequestTopic`."""
    return request_codec(api_key).types


def response_types(api_key: int) -> Any:
    return response_codec(api_key).types


def versions(api_key: int) -> tuple[int, int]:
    """The first and the last version that this package can read and write."""
    return request_codec(api_key).schema.versions


@cache
def request_decoder(api_key: int, version: int) -> Decoder:
    upgrade = compat.REQUEST_UPGRADES.get(api_key)
    return _decoder(request_codec(api_key), version, upgrade)


@cache
def response_decoder(api_key: int, version: int) -> Decoder:
    upgrade = compat.RESPONSE_UPGRADES.get(api_key)
    return _decoder(response_codec(api_key), version, upgrade)


@cache
def sliced_request_decoder(api_key: int, version: int) -> SlicedDecoder:
    """A decoder for requests that may be long."""
    codec, rule = request_codec(api_key), compat.REQUEST_UPGRADES.get(api_key)
    decode = codec.sliced_decoder(version)
    if rule is None or version > rule.last_version:
        return decode
    convert = partial(rule.convert, types=codec.types, version=version)

    def decode_and_upgrade(buffer: Buffer, position: int) -> Paced[tuple[Any, int]]:
        message, position = yield from decode(buffer, position)
        yield from convert(message)
        return message, position

    return decode_and_upgrade


@cache
def sliced_response_encoder(api_key: int, version: int) -> SlicedEncoder:
    """An encoder for answers that may be long."""
    if api_key == ApiKey.OFFSET_FETCH and version >= offset_fetch.FIRST_BY_HAND:
        return partial(offset_fetch.encode_in_slices, version)
    codec, rule = response_codec(api_key), compat.RESPONSE_DOWNGRADES.get(api_key)
    encode = codec.sliced_encoder(version)
    if rule is None or version > rule.last_version:
        return encode
    convert = partial(rule.convert, types=codec.types, version=version)

    def downgrade_and_encode(message: Any) -> Paced[list[bytes]]:
        yield from convert(message)
        return (yield from encode(message))

    return downgrade_and_encode


@cache
def request_encoder(api_key: int, version: int) -> Encoder:
    downgrade = compat.REQUEST_DOWNGRADES.get(api_key)
    return _encoder(request_codec(api_key), version, downgrade)


@cache
def response_encoder(api_key: int, version: int) -> Encoder:
    if api_key == ApiKey.OFFSET_FETCH and version >= offset_fetch.FIRST_BY_HAND:
        return partial(offset_fetch.encode_response, version)
    downgrade = compat.RESPONSE_DOWNGRADES.get(api_key)
    return _encoder(response_codec(api_key), version, downgrade)


def _definitions(api_key: int) -> Any:
    try:
        name = ApiKey(api_key).name.lower()
    except ValueError:
        raise ProtocolError(f"unknown api key {api_key}") from None
    return import_module(f"odradek.wire.definitions.{name}")


def _decoder(codec: Codec, version: int, rule: "compat.Rule | None") -> Decoder:
    decode = codec.decoder(version)
    if rule is None or version > rule.last_version:
        return decode
    convert = partial(rule.convert, types=codec.types, version=version)

    def decode_and_upgrade(buffer: Buffer, position: int) -> tuple[Any, int]:
        message, position = decode(buffer, position)
        at_once(convert(message))
        return message, position

    return decode_and_upgrade


def _encoder(codec: Codec, version: int, rule: "compat.Rule | None") -> Encoder:
    encode = codec.encoder(version)
    if rule is None or version > rule.last_version:
        return encode
    convert = partial(rule.convert, types=codec.types, version=version)

    def downgrade_and_encode(message: Any) -> bytes:
        at_once(convert(message))
        return encode(message)

    return downgrade_and_encode
