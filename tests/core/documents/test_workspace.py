"""The files of a workspace, and what each of them holds."""

from backsight.core.documents.workspace import INITIAL_FILES, source_of


def test_every_file_of_a_new_workspace_is_memory() -> None:
    assert {path: source_of(path) for path in INITIAL_FILES if source_of(path) is None} == {}
