"""Functions that write the text of a record into a file, and that read it from a file.

The text is stored in

PNG       a tEXt chunk with the keyword "workbench-record", in front of the pixels
SVG       <metadata class="workbench-record">
PDF       an element <workbench:record> of the page's metadata (XMP), which is not compressed
HTML      <script type="application/json" class="workbench-record">: one for the run that the page shows, and one for
          each figure in the page that shows other runs
Parquet   the key "workbench.record" of the metadata of the file's schema

The functions that read accept any bytes, and return the texts of records. Their DataErrors do not name the file.
"""

from __future__ import annotations

import html
import re
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
_HEADER_B = 8 + 25  # of a PNG: its signature and its first chunk
PDF_BEGIN = b"%PDF-"
_PDF_PAGE = re.compile(rb"\n(\d+) 0 obj\n<<\s/Type\s/Page\s(.*?)\nendobj\n", re.DOTALL)
_PDF_END = re.compile(rb"trailer\n<<(.*?)>>\s+startxref\s+(\d+)\s+%%EOF\s*$", re.DOTALL)
_XMP = (
    '<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    f'<rdf:Description rdf:about="" xmlns:workbench="urn:{NAME}">',
    '</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="r"?>',
)
_PROPERTY = "<workbench:record>", "</workbench:record>"
_METADATA = f'<metadata class="{NAME}">', "</metadata>"
_SCRIPT = f'<script type="application/json" class="{NAME}">', "</script>"


def add_to_png(data: bytes, text: str) -> bytes:
    """Add ``text``, the record of the runs in a picture, to ``data``, the picture's PNG file; return the new file."""
    content = b"tEXt" + NAME.encode() + b"\0" + text.encode("latin-1")
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    return data[:_HEADER_B] + chunk + data[_HEADER_B:]


def texts_of_png(data: bytes) -> list[str]:
    """Return a list with the text of the record of runs that a PNG file contains; [] if it has no record."""
    for kind, content in _read_png_chunks(data):
        keyword, _, text = content.partition(b"\0")
        if kind == b"tEXt" and keyword == NAME.encode():
            return [text.decode("latin-1")]
    return []


def _read_png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    chunk_offset = len(PNG_BEGIN)
    while chunk_offset < len(data):
        (data_size_B,) = struct.unpack(">I", data[chunk_offset : chunk_offset + 4].rjust(4, b"\xff"))
        body, checksum = (
            data[chunk_offset + 4 : chunk_offset + 8 + data_size_B],
            data[chunk_offset + 8 + data_size_B : chunk_offset + 12 + data_size_B],
        )
        if len(checksum) < 4 or zlib.crc32(body) != struct.unpack(">I", checksum)[0]:
            raise DataError("the PNG is damaged or cut short: a chunk has a wrong checksum")
        yield body[:4], body[4:]
        chunk_offset += 12 + data_size_B


def add_to_svg(svg: str, text: str) -> str:
    """Add ``text``, the record of the runs in a picture, to the metadata of its SVG document; return the document."""
    opening_tag, bracket, svg_content = svg.partition(">")
    opening, closing = _METADATA
    return f"{opening_tag}{bracket}\n{opening}{html.escape(text, quote=False)}{closing}{svg_content}"


def add_to_pdf(data: bytes, text: str) -> bytes:
    """Add ``text``, the record of the runs in a figure, to the metadata of its PDF file; return the new file.

    ``data`` has the bytes of the file, which matplotlib must have written, with one page. The metadata and the changed
    page are appended to them, as an *incremental update* of PDF.
    """
    page, end = _PDF_PAGE.search(data), _PDF_END.search(data)
    object_count = re.search(rb"/Size\s+(\d+)", end[1]) if end else None
    if page is None or end is None or object_count is None:
        raise ValueError("the PDF has no page or trailer in the form in which matplotlib writes them")
    page_number, metadata_number = int(page[1]), int(object_count[1])
    metadata = "".join((_XMP[0], _PROPERTY[0], html.escape(text, quote=False), _PROPERTY[1], _XMP[1])).encode()
    stream = b"<< /Type /Metadata /Subtype /XML /Length %d >>\nstream\n%b\nendstream" % (len(metadata), metadata)
    dictionary = b"<< /Type /Page /Metadata %d 0 R %b" % (metadata_number, page[2])
    update, xref_entries = b"", b""
    for number, object_content in ((page_number, dictionary), (metadata_number, stream)):
        xref_entries += b"%d 1\n%010d 00000 n \n" % (number, len(data) + len(update))
        update += b"%d 0 obj\n%b\nendobj\n" % (number, object_content)
    trailer = end[1].replace(object_count[0], b"/Size %d /Prev %b" % (metadata_number + 1, end[2]))
    xref = len(data) + len(update)
    return data + update + b"xref\n%btrailer\n<<%b>>\nstartxref\n%d\n%%%%EOF\n" % (xref_entries, trailer, xref)


def texts_of_pdf(data: bytes) -> list[str]:
    """Return the texts of all records of runs that a PDF file contains."""
    return list(map(_unescape, _element_texts(data.decode("latin-1"), *_PROPERTY)))


def script_element(text: str) -> str:
    """Return the HTML element that stores ``text``, a record of runs.

    "<" is escaped, because "</script>" within the text would end the element.
    """
    opening, closing = _SCRIPT
    return opening + text.replace("<", "\\u003c") + closing


def texts_of_markup(markup: str) -> list[str]:
    """Return the texts of all records of runs that an SVG document or an HTML page contains."""
    return [*_element_texts(markup, *_SCRIPT), *map(_unescape, _element_texts(markup, *_METADATA))]


def _element_texts(markup: str, opening: str, closing: str) -> Iterator[str]:
    """Yield the text of each element between the tags ``opening`` and ``closing``.

    The time is linear in the size of the markup, even if an element is never closed.
    """
    text_start = markup.find(opening)
    while text_start >= 0:
        text_start += len(opening)
        text_end = markup.find(closing, text_start)
        if text_end < 0:
            return  # No later element is closed either.
        yield markup[text_start:text_end]
        text_start = markup.find(opening, text_end)


def _unescape(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # Raised for a character reference with more digits than Python converts.
        raise DataError("the record cannot be read: it is damaged") from None


def add_to_table(table: pa.Table, text: str) -> pa.Table:
    """Add ``text``, the record of runs, to the metadata of a table's schema; return the new table.

    A Parquet file stores the metadata of its table's schema.
    """
    return table.replace_schema_metadata({**(table.schema.metadata or {}), PARQUET_KEY: text.encode()})


def texts_of_schema(schema: pa.Schema) -> list[str]:
    """Return [text of the record of runs] from the metadata in a Parquet file's schema; [] without a record."""
    text = (schema.metadata or {}).get(PARQUET_KEY)
    return [] if text is None else [text.decode("latin-1")]
