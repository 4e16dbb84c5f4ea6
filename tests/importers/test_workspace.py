"""Writes of a workspace: atomic, inside it whatever happens meanwhile, and not stopped by what a crash left."""

import os
from pathlib import Path
from threading import get_ident

import pytest

from backsight.core.errors import Unavailable
from backsight.importers.workspace import DRAFT, Workspace

NOTE = "memory/notes/today.md"


class RacingWorkspace(Workspace):
    """A workspace in which someone replaces a folder by a link right after the path was checked."""

    def __init__(self, root: Path, elsewhere: Path) -> None:
        super().__init__(root)
        self.elsewhere = elsewhere

    def _inside(self, path: str) -> Path:
        file = super()._inside(path)
        file.parent.rename(file.parent.with_name("moved"))
        file.parent.symlink_to(self.elsewhere)
        return file


def test_a_note_is_never_written_through_a_link_that_appears_after_the_check(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    (root / "memory" / "notes").mkdir(parents=True)
    elsewhere.mkdir()
    with pytest.raises(Unavailable, match=r"memory/notes/today\.md cannot be written"):
        RacingWorkspace(root, elsewhere).write(NOTE, "text")
    assert list(elsewhere.iterdir()) == []


def test_a_file_is_never_read_through_a_link_that_appears_after_the_check(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    (root / "memory" / "notes").mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "today.md").write_text("secret")
    with pytest.raises(Unavailable, match=r"memory/notes/today\.md cannot be read"):
        RacingWorkspace(root, elsewhere).text(NOTE)


def test_a_draft_that_a_process_of_the_same_id_left_does_not_stop_the_next_note(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.write(NOTE, "before")
    draft = tmp_path / f"{NOTE}{DRAFT}.{os.getpid()}-{get_ident()}"
    draft.write_text("half a no")
    workspace.write(NOTE, "after")
    assert workspace.text(NOTE) == "after"
    assert [file.name for file in (tmp_path / "memory" / "notes").iterdir()] == ["today.md"]


def test_a_missing_file_has_no_text(tmp_path: Path) -> None:
    assert Workspace(tmp_path).text(NOTE) is None


def test_a_link_to_itself_is_listed_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("# Soul\n")
    (tmp_path / "memory").mkdir()
    for name in ("memory/loop.md", "memory/loop"):
        (tmp_path / name).symlink_to(tmp_path / name)
    listing = Workspace(tmp_path).list_files()
    assert list(listing.files) == ["SOUL.md"]
    assert listing.skipped["memory/loop.md"] == "cannot be read"


def test_folders_may_be_nested_deeper_than_python_recurses(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("# Soul\n")
    folders = [Path(f"{tmp_path}/memory{'/d' * depth}") for depth in range(1_200)]
    for folder in folders:
        folder.mkdir()
    try:
        assert list(Workspace(tmp_path).list_files().files) == ["SOUL.md"]
    finally:
        for folder in reversed(folders):
            folder.rmdir()
