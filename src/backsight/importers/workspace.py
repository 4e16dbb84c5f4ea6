"""A workspace on disk: its files and their text, and atomic writes that stay inside the workspace."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from backsight.core.documents.document import ChangeStamp, LoadedDocument
from backsight.core.documents.workspace import (
    INITIAL_FILES,
    MAX_FILE_BYTES,
    SHARED,
    SkipReason,
    agent_of,
    is_text,
    source_of,
)
from backsight.core.errors import Invalid, NotFound, Refused, Unavailable

FIELD = "workspace"
DRAFT = ".backsight-draft"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of a workspace that can be indexed, with their stamps, and those that cannot, with the reason."""

    files: Mapping[str, ChangeStamp] = field(default_factory=dict)
    skipped: Mapping[str, SkipReason] = field(default_factory=dict)


class Workspace:
    """A folder of documents, and folders shared with others, which are read and never written."""

    def __init__(self, root: Path, *, shared: Sequence[Path] = ()) -> None:
        self.root = root
        self.shared = {f"{SHARED}/{folder.name}/": folder for folder in shared}

    def list_files(self) -> Listing:
        """List the files without reading them; NotFound if the folder of the workspace does not exist."""
        if not self.root.is_dir():
            raise NotFound(
                f"the workspace {self.root} is not a folder; create it with 'backsight documents init'", field=FIELD
            )
        files: dict[str, ChangeStamp] = {}
        skipped: dict[str, SkipReason] = {}
        folders = {"": self.root, **self.shared}
        for path, result in chain.from_iterable(_walk(folder, prefix, folder) for prefix, folder in folders.items()):
            if isinstance(result, ChangeStamp):
                files[path] = result
            else:
                skipped[path] = result
        return Listing(files=files, skipped=skipped)

    def load(self, path: str) -> LoadedDocument | SkipReason:
        """Read a file, or return the reason why it is skipped."""
        source = source_of(path)
        try:
            with open(self._file(path), "rb", opener=_open_without_waiting) as file:
                status = os.fstat(file.fileno())
                content = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return "vanished"
        except OSError:
            return "cannot be read"
        if len(content) > MAX_FILE_BYTES:
            return "too large"
        if source is None or not is_text(content):
            return "not text"
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return "not UTF-8"
        written_at = datetime.fromtimestamp(status.st_mtime_ns // 1000 / 1e6, tz=UTC)
        stamp = _stamp(status)
        return LoadedDocument(
            path=path, source=source, agent=agent_of(path), written_at=written_at, stamp=stamp, text=text
        )

    def text(self, path: str) -> str | None:
        """The exact text of a file; None if the file does not exist."""
        try:
            return self._inside(path).read_bytes().decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"{path} cannot be read: {error}", field="path") from None

    def write(self, path: str, text: str) -> None:
        """Replace the text of a file atomically: even after a crash, the file has the old or the new text."""
        file = self._inside(path)
        draft = file.with_name(f"{file.name}{DRAFT}.{os.getpid()}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._inside(path)  # the folder that was just created must be inside, too
            with draft.open("xb") as opened:
                opened.write(text.encode())
                opened.flush()
                os.fsync(opened.fileno())
            draft.replace(file)
        except OSError as error:
            raise Unavailable(f"{path} cannot be written: {error.strerror or error}", field="path") from None
        finally:
            with suppress(OSError):
                draft.unlink()

    def lay_out(self) -> tuple[list[str], list[str]]:
        """Create the files of a new workspace; returns the created and the existing files, which stay unchanged."""
        created: list[str] = []
        existing: list[str] = []
        try:
            for path, text in INITIAL_FILES.items():
                file = self.root / path
                file.parent.mkdir(parents=True, exist_ok=True)
                try:
                    with file.open("x", encoding="utf-8", newline="") as opened:
                        opened.write(text)
                    created.append(path)
                except FileExistsError:
                    existing.append(path)
        except OSError as error:
            raise Unavailable(
                f"cannot create the workspace {self.root}: {error.strerror or error}", field="path"
            ) from None
        return created, existing

    def _file(self, path: str) -> Path:
        for prefix, folder in self.shared.items():
            if path.startswith(prefix):
                return folder / path.removeprefix(prefix)
        return self.root / path

    def _inside(self, path: str) -> Path:
        """The file of a path that was checked as text; links and other spellings of an existing name are refused."""
        file = self.root
        for part in path.split("/"):
            if file.is_dir():
                names = {entry.name for entry in os.scandir(file)}
                if part not in names and part.casefold() in {name.casefold() for name in names}:
                    raise Refused(
                        f"{path!r} differs only in case from an existing file; use the existing spelling", field="path"
                    )
            file = file / part
            if file.is_symlink():
                raise Refused(f"{path!r} goes through a symbolic link; give the path of the file itself", field="path")
        if not _is_inside(file, self.root):
            raise Refused(f"{path!r} leads out of the workspace; give a path within the workspace", field="path")
        return file


def workspace_at(folder: str | None, *, shared: Sequence[str] = ()) -> Workspace:
    """The workspace in a folder, with its shared folders."""
    if folder is None:
        raise Invalid("no workspace is set; set BACKSIGHT_WORKSPACE to a folder", field=FIELD)
    names = [Path(path).name for path in shared]
    if len(set(names)) < len(names):
        raise Invalid("two shared folders have the same name; rename one of them", field="shared_folders")
    return Workspace(Path(folder), shared=[Path(path) for path in shared])


def _walk(folder: Path, prefix: str, root: Path) -> Iterator[tuple[str, ChangeStamp | SkipReason]]:
    """The files below a folder, each with its stamp or the reason why it is skipped."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        if not prefix:
            raise Unavailable(f"{root} cannot be read: {error.strerror or error}", field=FIELD) from None
        yield prefix.rstrip("/"), "cannot be read"
        return
    for entry in entries:
        path = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(".") and path != SHARED:
                yield from _walk(Path(entry.path), f"{path}/", root)
        elif entry.is_symlink() and entry.is_dir():
            if not _is_inside(Path(entry.path), root):
                yield path, "leads out of the workspace"
        elif source_of(path) is not None and DRAFT not in entry.name:
            yield path, _stamp_or_reason(entry, root)


def _stamp_or_reason(entry: os.DirEntry[str], root: Path) -> ChangeStamp | SkipReason:
    try:
        entry.name.encode()
        if entry.is_symlink() and not _is_inside(Path(entry.path), root):
            return "leads out of the workspace"
        status = entry.stat()
    except UnicodeEncodeError:
        return "cannot be read"
    except OSError:
        return "vanished"
    if not stat.S_ISREG(status.st_mode):
        return "not text"
    return "too large" if status.st_size > MAX_FILE_BYTES else _stamp(status)


def _is_inside(file: Path, root: Path) -> bool:
    return file.resolve().is_relative_to(root.resolve())


def _stamp(status: os.stat_result) -> ChangeStamp:
    return ChangeStamp(size=status.st_size, changed=max(status.st_mtime_ns, status.st_ctime_ns))


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting for a writer, in case the file has become a pipe since it was listed."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
