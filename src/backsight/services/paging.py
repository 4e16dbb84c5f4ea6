"""Cursors: the position after a page, bound to the query and to the horizon of the first page.

A cursor is packed into bytes and written as a decimal number, because a model pays for every token of it, and a
tokenizer takes three digits at once: some 20 tokens instead of 100 of JSON in base64.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeVar, assert_never

from backsight.core.errors import Invalid
from backsight.core.ids import ID as DERIVED_ID
from backsight.core.ids import digest
from backsight.core.instants import EPOCH, Horizon

P = TypeVar("P")
Value = datetime | int | float | str
DIGEST_BYTES = 2
"""Bytes of the digest of a query: enough to notice a cursor that belongs to another one."""
ID_BYTES = 4
"""Bytes of the last id of a page, which only decides between rows with the same position."""
AFTER_ALL = "~"
"""Sorts after every character of an id."""
BEGINNING = b"\x01"
"""The first byte, so that a zero after it is not lost in the number."""
INSTANT, WHOLE, FLOAT, ID, TEXT = range(5)
"""What a packed value is."""
SECOND, MINUTE = 1_000_000, 60_000_000
UNITS = (1, SECOND, MINUTE)
"""Microseconds in which an instant is counted: the largest unit of which it is a multiple."""


def cursor_after(position: Sequence[Value], horizon: Horizon, *, now: datetime, query: dict[str, object]) -> str:
    """The cursor after the last row of a page.

    It fixes `seen_at`, so that a later record neither shifts the next pages nor changes a default of the query, such as
    its mode.
    """
    as_of, seen_at = microseconds(horizon.as_of), microseconds(horizon.seen_at or now)
    instants = _packed_instant(as_of) + _packed_whole(seen_at - as_of)
    return str(int.from_bytes(BEGINNING + _query_digest(query) + instants + b"".join(map(_packed, position))))


def read_cursor(
    cursor: str, read_position: Callable[..., P], *, query: dict[str, object], ids_descend: bool = False
) -> tuple[P, Horizon]:
    """The position of the last row before a cursor, and the horizon of its pages.

    `read_position` takes the values of the position. A cursor of another query is refused. Of an id, the position has
    the beginning, so that a row with this beginning is not after it in the order of the list.
    """
    try:
        number = int(cursor) if cursor.isascii() and cursor.isdigit() else 0
        packed = number.to_bytes((number.bit_length() + 7) // 8)
        query_digest, values = packed[1 : 1 + DIGEST_BYTES], _Unpacking(packed[1 + DIGEST_BYTES :])
        if query_digest == _query_digest(query) and packed.startswith(BEGINNING):
            as_of = values.instant()
            horizon = Horizon(as_of=instant_of(as_of), seen_at=instant_of(as_of + values.whole()))
            return read_position(*values.rest("" if ids_descend else AFTER_ALL)), horizon
    except (ValueError, TypeError, IndexError, OverflowError, struct.error, Invalid):
        raise _not_a_cursor() from None
    if not packed.startswith(BEGINNING) or len(packed) < 1 + DIGEST_BYTES:
        raise _not_a_cursor()
    raise Invalid("belongs to another query; repeat its arguments, or leave the cursor out", field="cursor")


def _query_digest(query: dict[str, object]) -> bytes:
    return bytes.fromhex(digest(query)[: 2 * DIGEST_BYTES])


def _packed(value: Value) -> bytes:
    match value:
        case datetime():
            return bytes([INSTANT]) + _packed_instant(microseconds(value))
        case int():
            return bytes([WHOLE]) + _packed_whole(value)
        case float():
            return bytes([FLOAT]) + struct.pack(">d", value)
        case str():
            if DERIVED_ID.fullmatch(value):
                return bytes([ID]) + bytes.fromhex(value.replace("-", ""))[:ID_BYTES]
            text = value.encode()
            return bytes([TEXT]) + _packed_whole(len(text)) + text
    assert_never(value)


def _packed_instant(number: int) -> bytes:
    unit = max(index for index, unit in enumerate(UNITS) if number % unit == 0)
    return _packed_whole(number // UNITS[unit] * len(UNITS) + unit)


def _packed_whole(number: int) -> bytes:
    r"""Seven bits a byte, the lowest first; a negative number is an odd one (zigzag and LEB128 of Protocol Buffers).

    >>> _packed_whole(0), _packed_whole(-1), _packed_whole(150).hex()
    (b'\x00', b'\x01', 'ac02')
    """
    rest = 2 * number if number >= 0 else -2 * number - 1
    groups = bytearray()
    while rest >= 128:
        groups.append(rest % 128 + 128)
        rest //= 128
    return bytes([*groups, rest])


class _Unpacking:
    """Reads packed values one after the other."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._at = 0

    def whole(self) -> int:
        rest, factor = 0, 1
        while True:
            byte = self._packed[self._at]
            self._at += 1
            rest += byte % 128 * factor
            if byte < 128:
                return rest // 2 if rest % 2 == 0 else -(rest + 1) // 2
            factor *= 128

    def instant(self) -> int:
        """Microseconds since 1970."""
        count, unit = divmod(self.whole(), len(UNITS))
        return count * UNITS[unit]

    def rest(self, after_an_id: str) -> Iterator[Value]:
        """All further values; `after_an_id` follows the beginning of an id."""
        while self._at < len(self._packed):
            kind = self._bytes(1)[0]
            if kind == INSTANT:
                yield instant_of(self.instant())
            elif kind == WHOLE:
                yield self.whole()
            elif kind == FLOAT:
                yield struct.unpack(">d", self._bytes(8))[0]
            elif kind == ID:
                beginning = self._bytes(ID_BYTES).hex()
                yield beginning + after_an_id
            elif kind == TEXT:
                yield self._bytes(self.whole()).decode()
            else:
                raise _not_a_cursor()

    def _bytes(self, count: int) -> bytes:
        taken = self._packed[self._at : self._at + count]
        if len(taken) != count:
            raise _not_a_cursor()
        self._at += count
        return taken


def instant_and_id(at: datetime, last_id: str) -> tuple[datetime, str]:
    """The position in a list that is ordered by instant and id."""
    if not isinstance(at, datetime):
        raise _not_a_cursor()
    return at, str(last_id)


def microseconds(at: datetime) -> int:
    """Microseconds since 1970.

    >>> microseconds(EPOCH + timedelta(seconds=1)), instant_of(1_000_000) - EPOCH
    (1000000, datetime.timedelta(seconds=1))
    """
    return (at - EPOCH) // timedelta(microseconds=1)


def instant_of(number: int) -> datetime:
    """The instant so many microseconds after 1970."""
    return EPOCH + timedelta(microseconds=number)


def _not_a_cursor() -> Invalid:
    return Invalid("is not a cursor; give the next_cursor of the previous page, or leave it out", field="cursor")
