"""The heads file: an append-only file outside the database with the head of the audit chain after every command."""

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from backsight.core.chain_heads import RecordedChain, RecordedHead, head_line, recorded_chain
from backsight.core.errors import Unavailable

LOG = logging.getLogger("backsight")
FIELD = "heads_file"
PRIVATE_MODE = 0o600


@dataclass(frozen=True, slots=True)
class HeadsFile:
    """A file to which heads are appended and of which nothing is ever changed, and the key that signs them."""

    path: Path
    key: bytes | None = field(default=None, repr=False)

    def append(self, record: RecordedHead) -> None:
        """Record a head. The command is committed already, so a file that cannot be written is logged as an error.

        A line is one write to the end of the file, so that lines of several processes do not mix.
        """
        line = f"{head_line(record, self.key)}\n".encode()
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE_MODE)
            try:
                written = os.write(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError as error:
            LOG.error("link %s is not in the heads file %s: %s", record.head.sequence, self.path, error)
            return
        if written < len(line):
            LOG.error("link %s is only partly in the heads file %s: no space", record.head.sequence, self.path)

    def read(self, owner: str) -> RecordedChain:
        """What the file says about an owner's chain; nothing if the file does not exist yet."""
        try:
            with self.path.open(encoding="utf-8", errors="replace") as lines:
                return recorded_chain(lines, owner, self.key)
        except FileNotFoundError:
            return RecordedChain()
        except OSError as error:
            reason = error.strerror or str(error)
            raise Unavailable(f"{self.path} cannot be read ({reason}); give access to it", field=FIELD) from None
