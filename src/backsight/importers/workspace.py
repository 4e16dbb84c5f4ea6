"""A workspace on disk: which files it has, what they say, and writes that are whole and stay inside."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from backsight.core.documents.document import Read, Stamp
from backsight.core.documents.workspace import LAID_OUT, LARGEST, SHARED, Skip, agent_of, is_text, source_of
from backsight.core.errors import Invalid, NotFound, Refused, Unavailable

FIELD = "workspace"
DRAFT = ".backsight-draft"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of a workspace that are memory, with their stamps, and those that cannot be."""

    files: Mapping[str, Stamp] = field(default_factory=dict)
    skipped: Mapping[str, Skip] = field(default_factory=dict)


class Workspace:
    """A folder of documents, and folders that are shared with others: these are read and never written."""

    def __init__(self, root: Path, *, shared: Sequence[Path] = ()) -> None:
        self.root = root
        self.shared = {f"{SHARED}/{folder.name}/": folder for folder in shared}

    def list_files(self) -> Listing:
        """Its files, without reading them; a workspace that is not there is an error, and not empty."""
        if not self.root.is_dir():
            raise NotFound(f"{self.root} is no folder; make one with backsight documents init", field=FIELD)
        files: dict[str, Stamp] = {}
        skipped: dict[str, Skip] = {}
        places = {"": self.root, **self.shared}
        for path, found in chain.from_iterable(_walk(folder, prefix, folder) for prefix, folder in places.items()):
            if isinstance(found, Stamp):
                files[path] = found
            else:
                skipped[path] = found
        return Listing(files=files, skipped=skipped)

    def read(self, path: str) -> Read | Skip:
        """What a file says, or why it cannot be said."""
        source = source_of(path)
        try:
            with open(self._place(path), "rb", opener=_opened) as file:
                status = os.fstat(file.fileno())
                content = file.read(LARGEST + 1)
        except FileNotFoundError:
            return "vanished"
        except OSError:
            return "cannot be read"
        if len(content) > LARGEST:
            return "too large"
        if source is None or not is_text(content):
            return "not text"
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return "not UTF-8"
        written_at = datetime.fromtimestamp(status.st_mtime_ns // 1000 / 1e6, tz=UTC)
        stamp = _stamp(status)
        return Read(path=path, source=source, agent=agent_of(path), written_at=written_at, stamp=stamp, text=text)

    def text(self, path: str) -> str | None:
        """What a file says, byte by byte as far as it is text; None where there is none."""
        try:
            return self._inside(path).read_bytes().decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"{path} cannot be read: {error}", field="path") from None

    def write(self, path: str, text: str) -> None:
        """Put a text in the place of a file's: a reader finds the one or the other, also after a crash."""
        file = self._inside(path)
        draft = file.with_name(f"{file.name}{DRAFT}.{os.getpid()}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._inside(path)  # what was just made must be inside, too
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
        """Make what a new workspace holds; the files that were made, and those that were there and are left alone."""
        made: list[str] = []
        kept: list[str] = []
        try:
            for path, text in LAID_OUT.items():
                file = self.root / path
                file.parent.mkdir(parents=True, exist_ok=True)
                try:
                    with file.open("x", encoding="utf-8", newline="") as opened:
                        opened.write(text)
                    made.append(path)
                except FileExistsError:
                    kept.append(path)
        except OSError as error:
            raise Unavailable(f"cannot lay out {self.root}: {error.strerror or error}", field="path") from None
        return made, kept

    def _place(self, path: str) -> Path:
        for prefix, folder in self.shared.items():
            if path.startswith(prefix):
                return folder / path.removeprefix(prefix)
        return self.root / path

    def _inside(self, path: str) -> Path:
        """The file of a path that was confined as text; a link that leads out, or another spelling, is refused."""
        here = self.root
        for part in path.split("/"):
            if here.is_dir():
                names = {name.name for name in os.scandir(here)}
                if part not in names and part.casefold() in {name.casefold() for name in names}:
                    raise Refused(f"{path!r} is spelt otherwise in the workspace; give its own spelling", field="path")
            here = here / part
            if here.is_symlink():
                raise Refused(f"{path!r} leads through a link; give the file itself", field="path")
        if not _is_inside(here, self.root):
            raise Refused(f"{path!r} leads out of the workspace; give a path in it", field="path")
        return here


def workspace_at(folder: str | None, *, shared: Sequence[str] = ()) -> Workspace:
    """The workspace in this folder, with what is shared."""
    if folder is None:
        raise Invalid("no workspace is set; set BACKSIGHT_WORKSPACE to a folder", field=FIELD)
    names = [Path(each).name for each in shared]
    if len(set(names)) < len(names):
        raise Invalid("two shared folders have one name; give each its own", field="shared_folders")
    return Workspace(Path(folder), shared=[Path(each) for each in shared])


def _walk(folder: Path, prefix: str, root: Path) -> Iterator[tuple[str, Stamp | Skip]]:
    """The files below a folder with their stamps, or why they cannot be indexed."""
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
            yield path, _judged(entry, root)


def _judged(entry: os.DirEntry[str], root: Path) -> Stamp | Skip:
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
    return "too large" if status.st_size > LARGEST else _stamp(status)


def _is_inside(file: Path, root: Path) -> bool:
    return file.resolve().is_relative_to(root.resolve())


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(size=status.st_size, changed=max(status.st_mtime_ns, status.st_ctime_ns))


def _opened(path: str, flags: int) -> int:
    """Open what may have become a pipe since it was listed, without waiting for it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
