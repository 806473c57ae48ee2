"""A trace as numpy columns, read once: what the views compute with.

String columns of a trace are dictionary encoded, so an event is looked for by comparing small integers; nothing
here loops over rows.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

NUMBERS = ("time_us", "node", "peer", "origin", "sequence", "size_B", "value")
TEXTS = ("event", "message", "detail")


class Columns:
    """The columns of a trace: numbers as numpy arrays (rows,), texts as codes into ``words[name]``."""

    def __init__(self, trace: pa.Table) -> None:
        self.rows = trace.num_rows
        self.numbers = {name: trace.column(name).to_numpy() for name in NUMBERS}
        self.codes: dict[str, np.ndarray] = {}
        self.words: dict[str, list[str]] = {}
        for name in TEXTS:
            self.codes[name], self.words[name] = _codes(trace.column(name))

    def __getitem__(self, name: str) -> np.ndarray:
        """A number column, shape (rows,)."""
        return self.numbers[name]

    def where(self, **equal: str | Iterable[str]) -> np.ndarray:
        """Row numbers, ascending, at which each named text column has one of the given words."""
        chosen: np.ndarray | None = None
        for name, words in equal.items():
            wanted = {words} if isinstance(words, str) else set(words)
            is_wanted = np.array([word in wanted for word in self.words[name]] or [False])
            hit = is_wanted[self.codes[name]]
            chosen = hit if chosen is None else chosen & hit
        return np.flatnonzero(chosen) if chosen is not None else np.arange(self.rows)

    def text(self, name: str, rows: np.ndarray) -> np.ndarray:
        """The words of a text column at some rows, shape (len(rows),), dtype object."""
        words = np.array([*self.words[name], ""], dtype=object)
        return words[self.codes[name][rows]]


def _codes(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # what older releases of pyarrow return
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    words = ["" if word is None else str(word) for word in whole.dictionary.to_pylist()]
    indices = whole.indices
    if indices.null_count:
        indices = indices.fill_null(0)
    return indices.to_numpy(zero_copy_only=False), words
