"""A trace on its way from the worker that ran it to the driver that keeps it: compressed, and read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

ROWS_AT_ONCE = 1 << 18


def pack(trace: pa.Table) -> bytes:
    """A trace as bytes, about 4 a row."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, trace.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(trace, max_chunksize=ROWS_AT_ONCE)
    return sink.getvalue().to_pybytes()


def batches(packed: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a packed trace in order, at most `ROWS_AT_ONCE` at a time; ``packed``: bytes, or a file of them."""
    yield from pa.ipc.open_stream(packed)
