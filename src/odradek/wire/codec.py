"""Codec: encodes and decodes one message in all its versions. It builds each encoder and decoder at its first
use.

It does not know which messages exist. messages.py makes the codecs of the protocol, and the record types of
the metadata log and the coordinators have their own.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from odradek.core.errors import ProtocolError
from odradek.runtime.slices import Paced
from odradek.wire.classes import Message, build_classes
from odradek.wire.decoding import Decoder, SlicedDecoder, build_decoder, build_sliced_decoder
from odradek.wire.encoding import build_encoder, build_sliced_encoder
from odradek.wire.schema import Struct, parse

Encoder = Callable[[Any], bytes]
SlicedEncoder = Callable[[Any], Paced[list[bytes]]]

__all__ = ["Codec", "Decoder", "Encoder", "Message", "SlicedDecoder", "SlicedEncoder"]


class Codec:
    """One message: its classes (`types.Name`, `root` for the outermost), encoders and decoders by version."""

    __slots__ = ("_decoders", "_encoders", "classes", "root", "schema", "types")

    def __init__(self, definition: str | Struct, classes: dict[str, type[Message]] | None = None) -> None:
        self.schema = parse(definition) if isinstance(definition, str) else definition
        self.classes = build_classes(self.schema) if classes is None else classes
        self.root: Any = self.classes[self.schema.name]
        self.types: Any = SimpleNamespace(**self.classes)
        self._encoders: dict[int, Encoder] = {}
        self._decoders: dict[int, Decoder] = {}

    def encoder(self, version: int) -> Encoder:
        """Takes any object with the attributes of the version. Other attributes are ignored."""
        found = self._encoders.get(version)
        if found is None:
            self._check(version)
            found = self._encoders[version] = build_encoder(self.schema, version, self.classes)
        return found

    def decoder(self, version: int) -> Decoder:
        """Takes a buffer that ends with its frame, and a position. Returns (object, position after it)."""
        found = self._decoders.get(version)
        if found is None:
            self._check(version)
            found = self._decoders[version] = build_decoder(self.schema, version, self.classes)
        return found

    def sliced_encoder(self, version: int) -> SlicedEncoder:
        """For messages that may be long. It is built at each call, so callers keep it."""
        self._check(version)
        return build_sliced_encoder(self.schema, version, self.classes)

    def sliced_decoder(self, version: int) -> SlicedDecoder:
        self._check(version)
        return build_sliced_decoder(self.schema, version, self.classes)

    def _check(self, version: int) -> None:
        first, last = self.schema.versions
        if not first <= version <= last:
            raise ProtocolError(f"{self.schema.name} has no version {version}")
