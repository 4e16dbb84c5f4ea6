"""A workspace on disk: its files and their text, and atomic writes that stay inside the workspace."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from threading import get_ident

from backsight.core.documents.document import ChangeStamp, LoadedDocument
from backsight.core.documents.workspace import (
    INITIAL_FILES,
    MAX_FILE_BYTES,
    SHARED,
    SkipReason,
    agent_of,
    is_text,
    is_utf16,
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
        if is_utf16(content):
            return "not UTF-8"
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
        self._inside(path)
        try:
            with self._folder_of(path) as folder, os.fdopen(folder.open(path, os.O_RDONLY), "rb") as file:
                return file.read().decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"{path} cannot be read: {error}", field="path") from None

    def write(self, path: str, text: str) -> None:
        """Replace the text of a file atomically: even after a crash, the file has the old or the new text.

        The folders are opened one inside the other and never through a link, so that a link that is put in place of a
        folder meanwhile leads nowhere.
        """
        self._inside(path)
        draft = f"{path}{DRAFT}.{os.getpid()}-{get_ident()}"  # a draft of this name is left over from a process before
        try:
            with self._folder_of(path, create=True) as folder:
                folder.remove(draft)
                try:
                    with os.fdopen(folder.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as opened:
                        opened.write(text.encode())
                        opened.flush()
                        os.fsync(opened.fileno())
                    folder.replace(draft, path)
                finally:
                    folder.remove(draft)
        except OSError as error:
            raise Unavailable(f"{path} cannot be written: {error.strerror or error}", field="path") from None

    @contextmanager
    def _folder_of(self, path: str, *, create: bool = False) -> Iterator["_OpenFolder"]:
        """The folder of a file, opened below the root without following links."""
        if os.open not in os.supports_dir_fd:  # Windows: the path was checked right before
            if create:
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            yield _OpenFolder((self.root / path).parent, None)
            return
        if create:
            self.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in path.split("/")[:-1]:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield _OpenFolder(None, descriptor)
        finally:
            os.close(descriptor)

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


class _OpenFolder:
    """An open folder: its files are reached from it, not by their whole path; on Windows by their path."""

    def __init__(self, path: Path | None, descriptor: int | None) -> None:
        self._path = path
        self._descriptor = descriptor

    def open(self, path: str, flags: int) -> int:
        """Open the file with the name at the end of a path, unless it is a link."""
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        return os.open(self._name(path), flags, 0o666, dir_fd=self._descriptor)

    def replace(self, draft: str, path: str) -> None:
        """Give a draft the name of a file, durably."""
        os.replace(self._name(draft), self._name(path), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(self._name(path), dir_fd=self._descriptor)

    def _name(self, path: str) -> str:
        name = path.rpartition("/")[2]
        return name if self._path is None else str(self._path / name)


def workspace_at(folder: str | None, *, shared: Sequence[str] = ()) -> Workspace:
    """The workspace in a folder, with its shared folders."""
    if folder is None:
        raise Invalid("no workspace is set; set BACKSIGHT_WORKSPACE to a folder", field=FIELD)
    names = [Path(path).name for path in shared]
    if len(set(names)) < len(names):
        raise Invalid("two shared folders have the same name; rename one of them", field="shared_folders")
    return Workspace(Path(folder), shared=[Path(path) for path in shared])


def _walk(folder: Path, prefix: str, root: Path) -> Iterator[tuple[str, ChangeStamp | SkipReason]]:
    """The files below a folder, each with its stamp or the reason why it is skipped; however deep the folders are."""
    try:
        open_folders = [(prefix, _entries(folder))]
    except OSError as error:
        if not prefix:
            raise Unavailable(f"{root} cannot be read: {error.strerror or error}", field=FIELD) from None
        yield prefix.rstrip("/"), "cannot be read"  # a shared folder
        return
    while open_folders:
        prefix, entries = open_folders[-1]
        entry = next(entries, None)
        if entry is None:
            open_folders.pop()
            continue
        path = prefix + entry.name
        if not _is_utf8(entry.name) or not entry.is_dir(follow_symlinks=False):
            yield from _listed(entry, path, root)
        elif not entry.name.startswith(".") and path != SHARED:
            try:
                open_folders.append((f"{path}/", _entries(entry.path)))
            except OSError:
                yield path, "cannot be read"


def _entries(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    return iter(sorted(os.scandir(folder), key=lambda entry: entry.name))


def _listed(entry: os.DirEntry[str], path: str, root: Path) -> Iterator[tuple[str, ChangeStamp | SkipReason]]:
    """A file or a link with its stamp, or with the reason why it is skipped; nothing if it is no document."""
    if not _is_utf8(entry.name):
        yield path.encode(errors="surrogateescape").decode(errors="backslashreplace"), "name is not UTF-8"
    elif entry.is_symlink() and _leads_to_folder(entry):
        if not _is_inside(Path(entry.path), root):
            yield path, "leads out of the workspace"
    elif source_of(path) is not None and DRAFT not in entry.name:
        yield path, _stamp_or_reason(entry, root)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _stamp_or_reason(entry: os.DirEntry[str], root: Path) -> ChangeStamp | SkipReason:
    try:
        status = entry.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "cannot be read"
        status = None
    if entry.is_symlink() and not _is_inside(Path(entry.path), root):
        return "leads out of the workspace"
    if status is None:
        return "vanished"
    if not stat.S_ISREG(status.st_mode):
        return "not text"
    return "too large" if status.st_size > MAX_FILE_BYTES else _stamp(status)


def _is_utf8(name: str) -> bool:
    """Whether a file name can be decoded; Python puts surrogates in place of bytes that cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_inside(file: Path, root: Path) -> bool:
    try:
        return file.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # a link to itself
        return False


def _stamp(status: os.stat_result) -> ChangeStamp:
    return ChangeStamp(size=status.st_size, changed=max(status.st_mtime_ns, status.st_ctime_ns))


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting for a writer, in case the file has become a pipe since it was listed."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
