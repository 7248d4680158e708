"""Data directories that cannot be taken, and those that hold something else."""

import os
from pathlib import Path

import pytest

from odradek.cli.errors import Failure
from odradek.cli.node.data_dir import NEXT, check_data_dirs


def test_a_new_directory_and_one_of_a_node_are_taken_silently(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / "lost+found").mkdir()
    assert check_data_dirs([str(tmp_path), str(tmp_path / "a/b")]) == []
    (tmp_path / "meta.properties").touch()
    (tmp_path / "orders-0").mkdir()
    assert check_data_dirs([str(tmp_path)]) == []


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(Failure, match="this is a file, not a directory") as refused:
        check_data_dirs([str(file)])
    assert refused.value.hint == NEXT
    with pytest.raises(Failure, match=f"^{file}/sub: {file} is a file, not a directory"):
        check_data_dirs([str(file / "sub")])


def test_a_directory_without_permission_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, _mode: path != str(tmp_path))
    with pytest.raises(Failure, match=f"^{tmp_path}/new: no permission to read and write in {tmp_path}$"):
        check_data_dirs([str(tmp_path / "new")])


def test_files_of_somebody_else_are_warned_about(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        (tmp_path / name).touch()
    assert check_data_dirs([str(tmp_path)]) == [
        f"The data directory {tmp_path} has no meta.properties, but holds a.txt, b.txt, c.txt, ..."
    ]
