"""Where the registered controllers can be reached: what DescribeCluster tells of them. Pure."""

from collections.abc import Mapping

from odradek.metadata.image import Endpoint, MetadataImage


def controllers_on(image: MetadataImage, listener: str) -> Mapping[int, Endpoint]:
    """The controllers that have a listener of this name, by id."""
    return {
        n: controller.endpoints[listener]
        for n, controller in sorted(image.controllers.items())
        if listener in controller.endpoints
    }
