"""The beginning of a file, from which its format is recognised."""

import gzip
from pathlib import Path

import pytest

from backsight.importers.formats import HEAD_BYTES, head_of


@pytest.mark.parametrize(
    ("content", "symbol"),
    [
        (b'{"symbol": "BTC"}', "BTC"),
        (b'\xef\xbb\xbf [ {"symbol": "BTC"}, {"symbol": "ETH"}]', "BTC"),
        (b'{"symbol": "BTC"}\n{"symbol": "ETH"}\n', "BTC"),
        ('{"symbol": "BTC"}'.encode("utf-16"), "BTC"),
        (gzip.compress(b'{"symbol": "BTC"}', mtime=0), "BTC"),
        (gzip.compress(b'{"symbol": "BTC"}', mtime=0)[:15], None),
        (b"\x1f\x8bnot gzip", None),
        (b'{"symbol": "BTC"', None),
        (b"symbol\nBTC\n", None),
        (b"[1, 2]", None),
        (b"\x00\x01{}", None),
        (b"", None),
    ],
)
def test_first_object(tmp_path: Path, content: bytes, symbol: str | None) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    first = head_of(path).first_object
    assert (None if first is None else first["symbol"]) == symbol


def test_only_the_beginning_of_a_large_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\n" * HEAD_BYTES)
    head = head_of(path)
    assert (len(head.start), head.whole, head.first_lines) == (HEAD_BYTES, False, ["a"] * 50)
    path.write_bytes(b"a" * HEAD_BYTES)
    assert head_of(path).whole


@pytest.mark.parametrize(
    ("content", "unit"),
    [
        (b"symbol\nBTC\n", "line"),
        (b'{"symbol": "BTC"}\n{"symbol": "ETH"}\n', "line"),
        (b'{"trades": [1, 2]}', "row"),
        (b'{\n"trades": [1, 2]}', "row"),
        (b'[{"symbol": "BTC"}]', "row"),
        (b"<html><table>", "row"),
        (b"<FlexQueryResponse>", "line"),
        (b"PK\3\4\0", "row"),
    ],
)
def test_a_row_is_called_a_line_where_it_begins_on_its_own(tmp_path: Path, content: bytes, unit: str) -> None:
    (tmp_path / "file").write_bytes(content)
    assert head_of(tmp_path / "file").row_unit == unit
