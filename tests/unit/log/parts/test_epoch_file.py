"""leader-epoch-checkpoint: written only where the file lacks something."""

from tests.unit.log.parts.support import Parts


def test_epochs_are_written_once(parts: Parts) -> None:
    file = parts.durability.epoch_file
    parts.epochs.assign(3, 0)
    file.write()
    assert (parts.path / "leader-epoch-checkpoint").read_text() == "0\n1\n3 0\n"
    assert not file.is_durable, "no sync has covered it"
    changes = parts.dir.changes
    file.write()
    assert parts.dir.changes == changes
    assert file.take_draft() is None
    parts.epochs.assign(4, 0)
    file.write()
    assert parts.dir.changes == changes + 1
    assert parts.take_synced() == []


def test_a_draft_is_given_out_once(parts: Parts) -> None:
    file = parts.durability.epoch_file
    assert file.take_draft() is None
    parts.epochs.assign(3, 0)
    assert file.take_draft() == (str(parts.path / "leader-epoch-checkpoint"), b"0\n1\n3 0\n")
    assert file.take_draft() is None


def test_a_version_that_is_synced_is_durable(parts: Parts) -> None:
    file = parts.durability.epoch_file
    parts.epochs.assign(3, 0)
    version = parts.epochs.version
    parts.epochs.assign(4, 7)
    file.synced(version)
    assert not file.is_durable
    file.synced(parts.epochs.version)
    file.synced(version)
    assert file.is_durable


def test_what_must_not_come_back_is_synced_at_once(parts: Parts) -> None:
    file = parts.durability.epoch_file
    parts.epochs.assign(3, 0)
    file.persist()
    assert file.is_durable
    assert parts.take_synced() != []
    file.persist()
    assert parts.take_synced() == []
