"""Where a record lies in a file: what puts its text there, and what takes it out again.

PNG       a tEXt chunk with the keyword "workbench-record", in front of the pixels
SVG       <metadata class="workbench-record">
page      <script type="application/json" class="workbench-record">, one for the run, and one for each figure of others
Parquet   the key "workbench.record" of the metadata of the file's schema

What reads takes any bytes. It returns texts, and raises DataError in a sentence that does not name the file.
"""

from __future__ import annotations

import html
import struct
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "workbench-record"
PARQUET_KEY = b"workbench.record"
PNG_BEGIN = b"\x89PNG\r\n\x1a\n"
_HEADER_B = 8 + 25  # of a PNG: how it begins, and its first chunk
_METADATA = f'<metadata class="{NAME}">', "</metadata>"
_SCRIPT = f'<script type="application/json" class="{NAME}">', "</script>"


def into_png(data: bytes, text: str) -> bytes:
    """A PNG file with a text in it."""
    content = b"tEXt" + NAME.encode() + b"\0" + text.encode("latin-1")
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    return data[:_HEADER_B] + chunk + data[_HEADER_B:]


def of_png(data: bytes) -> list[str]:
    """The texts in a PNG file, one at most."""
    for kind, content in _chunks(data):
        keyword, _, text = content.partition(b"\0")
        if kind == b"tEXt" and keyword == NAME.encode():
            return [text.decode("latin-1")]
    return []


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(PNG_BEGIN)
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4].rjust(4, b"\xff"))
        body, check = data[at + 4 : at + 8 + size], data[at + 8 + size : at + 12 + size]
        if len(check) < 4 or zlib.crc32(body) != struct.unpack(">I", check)[0]:
            raise DataError("the PNG is damaged or cut short")
        yield body[:4], body[4:]
        at += 12 + size


def into_svg(svg: str, text: str) -> str:
    """An SVG document with a text in it."""
    begin, bracket, rest = svg.partition(">")
    opening, closing = _METADATA
    return f"{begin}{bracket}\n{opening}{html.escape(text, quote=False)}{closing}{rest}"


def script(text: str) -> str:
    """The element of a page that has a text in it. No record may end it early."""
    opening, closing = _SCRIPT
    return opening + text.replace("<", "\\u003c") + closing


def of_markup(markup: str) -> list[str]:
    """The texts in an SVG document or a page."""
    return [*_contents(markup, *_SCRIPT), *map(_unescaped, _contents(markup, *_METADATA))]


def _contents(markup: str, opening: str, closing: str) -> Iterator[str]:
    """Yield the text of each element. The time is linear in the size of the markup, also if no element is closed."""
    begin = markup.find(opening)
    while begin >= 0:
        begin += len(opening)
        end = markup.find(closing, begin)
        if end < 0:
            return  # A later element could not be closed either.
        yield markup[begin:end]
        begin = markup.find(opening, end)


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # A character reference with more digits than Python converts.
        raise DataError("its record cannot be read: it is damaged") from None


def into_table(table: pa.Table, text: str) -> pa.Table:
    """A table that is written as a Parquet file with a text in it."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), PARQUET_KEY: text.encode()})


def of_schema(schema: pa.Schema) -> list[str]:
    """The texts in the schema of a Parquet file, one at most."""
    text = (schema.metadata or {}).get(PARQUET_KEY)
    return [] if text is None else [text.decode("latin-1")]
