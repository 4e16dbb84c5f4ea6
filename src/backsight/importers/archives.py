"""ZIP archives: how they begin, and what reading a damaged one raises."""

import struct
import zipfile
import zlib

ZIP = b"PK\x03\x04"
"""How an archive begins."""
ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)
"""A name that is not UTF-8 is a ValueError, another compression NotImplementedError, a password RuntimeError."""
