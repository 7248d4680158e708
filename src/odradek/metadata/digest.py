"""A digest of an image: two nodes at the same offset have the same, however they came there. Pure."""

from hashlib import blake2b

from odradek.metadata.image import MetadataImage
from odradek.metadata.records import encode_record
from odradek.metadata.snapshot import image_records


def image_digest(image: MetadataImage) -> str:
    """Of all that the records of a snapshot would say, in whatever order it was put together."""
    digest = blake2b(f"{image.offset} {image.epoch} {image.timestamp_ms}".encode(), digest_size=16)
    for value in sorted(encode_record(record) for record in image_records(image)):
        digest.update(len(value).to_bytes(4, "big"))
        digest.update(value)
    return digest.hexdigest()
