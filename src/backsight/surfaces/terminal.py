"""Output to terminals of any encoding: what an encoding cannot show is replaced by what it can."""

import codecs
import json
import sys
import unicodedata
from io import TextIOWrapper
from typing import Any, TextIO

import click

REPLACED = "backsight.plain"
"""The name of the error handler of the codecs."""
UNKNOWN = "?"
_SIGNS = {
    **dict.fromkeys("\N{MINUS SIGN}–‐‑‒•·─━┄┈╌═", "-"),
    **dict.fromkeys("│┃║▏▎┆┊", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼┏┓┗┛┡┩┢┪┠┨┯┷┿╇╈╭╮╰╯╔╗╚╝╠╣╦╩╬╺╸╴╶", "+"),
    **dict.fromkeys("‘’‚′", "'"),
    **dict.fromkeys("“”„″«»", '"'),
    **dict.fromkeys("\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}", " "),
    **dict(zip("▁▂▃▄▅▆▇█", "_.-:=+*#", strict=True)),
    "…": "...",
    "—": "--",
    "×": "x",
    "→": "->",
    "←": "<-",
    "↑": "^",
    "↓": "v",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "≈": "~",
    "±": "+/-",
    "÷": "/",
    "°": " deg",
    "µ": "u",
    "σ": "sigma",
    "√": "sqrt",
    "✓": "yes",
    "✗": "no",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "ß": "ss",
    "ø": "o",
    "æ": "ae",
}


def plain_sign(sign: str) -> str:
    """A sign in ASCII: a replacement that reads like it, its letter without accents, or a question mark.

    >>> "".join(plain_sign(sign) for sign in "− … × é 雪")
    '- ... x e ?'
    """
    if sign.isascii():
        return sign
    letters = unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode()
    return _SIGNS.get(sign) or letters or UNKNOWN


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(plain_sign(sign) for sign in error.object[error.start : error.end]), error.end


class AsciiOutput(TextIOWrapper):
    """Output in ASCII. Its encoding has another name, because click takes `ascii` for a mistake and writes UTF-8."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "plain-ascii"


def prepare_output() -> None:
    """Let standard output and standard error replace what their encoding cannot show."""
    codecs.register_error(REPLACED, _replace)
    for name in ("stdout", "stderr"):
        setattr(sys, name, tolerant(getattr(sys, name)))


def tolerant(stream: TextIO) -> TextIO:
    """A stream that writes every text; a stream in UTF-8 writes it as it is."""
    if not isinstance(stream, TextIOWrapper) or isinstance(stream, AsciiOutput):
        return stream
    name = codecs.lookup(stream.encoding).name
    if name == "ascii":
        buffering = stream.line_buffering
        return AsciiOutput(stream.detach(), "ascii", errors=REPLACED, line_buffering=buffering, write_through=True)
    if not name.startswith("utf"):
        stream.reconfigure(errors=REPLACED)
    return stream


def echo_json(value: Any, *, indent: int | None = 2, err: bool = False) -> None:
    """Print JSON; signs that the output cannot show are escaped, so that nothing is lost."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    encoding = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode("ascii" if encoding == "plain-ascii" else encoding)
    except UnicodeEncodeError:
        text = json.dumps(value, indent=indent)
    click.echo(text, err=err)
