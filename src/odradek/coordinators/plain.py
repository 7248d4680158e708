"""Dataclasses with fields only: without comparison and repr, which would make imports slow."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform()
def plain(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    return dataclass(slots=True, eq=False, repr=False, match_args=False, kw_only=kw_only)
