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


def test_epochs_that_were_persisted_need_no_other_write(parts: Parts) -> None:
    file = parts.durability.epoch_file
    parts.epochs.assign(3, 0)
    version = parts.epochs.version
    assert file.to_persist() == (str(parts.path / "leader-epoch-checkpoint"), b"0\n1\n3 0\n")
    parts.epochs.assign(4, 7)
    file.persisted(version)
    assert file.to_persist() == (file.path, b"0\n2\n3 0\n4 7\n"), "they have changed meanwhile"
    file.persisted(parts.epochs.version)
    assert file.is_durable and file.to_persist() is None and file.take_draft() is None
