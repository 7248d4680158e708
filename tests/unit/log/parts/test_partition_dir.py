"""The directory of a partition: how it fails, and which of its changes a sync covers."""

import errno

import pytest

from odradek.core.errors import ExhaustedError, StorageError
from tests.unit.log.parts.support import Parts


def test_the_first_failure_is_kept_and_reported_once(parts: Parts) -> None:
    heard: list[tuple[str, StorageError]] = []
    parts.dir.on_failed = lambda log_dir, failure: heard.append((log_dir, failure))
    first = parts.dir.fail(OSError(errno.EIO, "Input/output error"), "reading from")
    parts.dir.fail(OSError(errno.EROFS, "Read-only file system"), "appending records to")
    assert parts.dir.failure is first
    assert heard == [(str(parts.path.parent), first)]
    assert "Error while reading from orders-0 in" in first.message
    with pytest.raises(StorageError):
        parts.dir.check_online()


def test_exhaustion_is_no_failure(parts: Parts) -> None:
    found = parts.dir.fail(OSError(errno.EMFILE, "Too many open files"), "rolling")
    assert isinstance(found, ExhaustedError)
    parts.dir.check_online()


def test_exhaustion_halfway_gives_up_this_log_and_not_its_log_directory(parts: Parts) -> None:
    heard: list[StorageError] = []
    parts.dir.on_failed = lambda _, failure: heard.append(failure)
    found = parts.dir.fail(OSError(errno.EMFILE, "Too many open files"), "truncating", halfway=True)
    assert parts.dir.failure is found and heard == []


def test_a_sync_covers_the_changes_before_it_began(parts: Parts) -> None:
    directory, log_dir = str(parts.path), str(parts.path.parent)
    assert parts.dir.to_sync() == [directory, log_dir], "its own entry may not be durable"
    began = parts.dir.changes
    parts.dir.changes += 1
    parts.dir.synced(began)
    assert parts.dir.to_sync() == [directory]
    parts.dir.synced(parts.dir.changes)
    assert parts.dir.to_sync() == []
    parts.dir.synced(began)
    assert not parts.dir.has_unsynced_changes, "a sync that ends late takes nothing back"


def test_no_sync_covers_changes_to_come(parts: Parts) -> None:
    with pytest.raises(AssertionError):
        parts.dir.synced(parts.dir.changes + 1)


def test_a_renamed_directory_stays_in_its_log_directory(parts: Parts) -> None:
    there = str(parts.path.parent / "orders-0.abc-delete")
    parts.dir.rename(there)
    assert (parts.dir.path, parts.dir.log_dir) == (there, str(parts.path.parent))


def test_a_directory_that_cannot_be_renamed_keeps_its_name(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = OSError(errno.EIO, "broken")

    def refuse(*_: object) -> None:
        raise broken

    monkeypatch.setattr(type(parts.disk), "rename", refuse)
    path = parts.dir.path
    with pytest.raises(StorageError, match="renaming") as failed:
        parts.dir.rename(path + "-delete")
    assert failed.value.__cause__ is broken
    assert parts.dir.path == path
