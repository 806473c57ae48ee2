"""Result rows of a sweep's points: new rows are in memory, stored rows are read from files when they are needed.

A resumed sweep of a million points has to know which points are stored, and which of them have failed. Only the
columns that show this are read at first; the other columns of the files are read when a table needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.sim.metrics import COUNTS
from workbench.sweeps.plan import Plan
from workbench.sweeps.store.files import File
from workbench.sweeps.work import Row

_IDENTITY = ("seed", "scenario", "code", "engine", "versions", "wall_s", "compile_s", "error")
_BLOCK = 1 << 13  # rows that are built at a time


class StoredRows(Mapping[int, Row]):
    """A mapping from the numbers of a plan's points to their result rows; points without a row are missing."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._files: list[File] = []
        self._file_of = np.full(len(plan), -1, np.int32)  # for each point: the index of its file, -1 without one
        self._index_of = np.zeros(len(plan), np.int64)  # for each point: the index of its row in the file
        self._new: dict[int, Row] = {}

    def add_file(self, file: File, numbers: np.ndarray, indices: np.ndarray) -> None:
        """Add the rows ``indices`` of a file of results, which are the rows of the points ``numbers``."""
        self._file_of[numbers] = len(self._files)
        self._index_of[numbers] = indices
        self._files.append(file)

    def copy_repeated(self, first_numbers: np.ndarray) -> None:
        """Give each point without a stored row the row of an earlier point with the same key.

        ``first_numbers`` has, for each point of the plan, the number of the first point with its key.
        """
        is_repeated = (self._file_of < 0) & (first_numbers < np.arange(len(first_numbers)))
        self._index_of[is_repeated] = self._index_of[first_numbers[is_repeated]]
        self._file_of[is_repeated] = self._file_of[first_numbers[is_repeated]]

    def add(self, rows: Sequence[Row]) -> None:
        """Add new rows, which replace stored rows of the same points. They are kept in memory as they are."""
        self._new.update((row.number, row) for row in rows)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._file_of >= 0)) + sum(self._file_of[number] < 0 for number in self._new)

    def __contains__(self, number: object) -> bool:
        return number in self._new or (isinstance(number, int) and bool(self._file_of[number] >= 0))

    def __iter__(self) -> Iterator[int]:
        is_stored = self._file_of >= 0
        is_stored[list(self._new)] = True
        return iter(np.flatnonzero(is_stored).tolist())

    def __getitem__(self, number: int) -> Row:
        if number not in self:
            raise KeyError(number)
        return next(self.rows([number]))

    @property
    def missing(self) -> Sequence[int]:
        """The numbers of the points without a row, in ascending order."""
        if not self._files and not self._new:
            return range(len(self._plan))
        is_missing = self._file_of < 0
        is_missing[list(self._new)] = False
        return np.flatnonzero(is_missing).tolist()

    @property
    def failed(self) -> list[int]:
        """The numbers of the points whose row has an error, in ascending order."""
        failed = [number for number, row in self._new.items() if row.error is not None]
        for number_of_file, file in enumerate(self._files):
            numbers = np.flatnonzero(self._file_of == number_of_file)
            has_error = pc.is_valid(file.column("error")).to_numpy(zero_copy_only=False)
            failed += [
                number for number in numbers[has_error[self._index_of[numbers]]].tolist() if number not in self._new
            ]
        return sorted(failed)

    def rows(self, numbers: Sequence[int]) -> Iterator[Row]:
        """Yield the rows of the points ``numbers``, all of which must have a row."""
        for start in range(0, len(numbers), _BLOCK):
            yield from self._read_rows(numbers[start : start + _BLOCK])

    def _read_rows(self, numbers: Sequence[int]) -> list[Row]:
        rows: dict[int, Row] = {number: self._new[number] for number in numbers if number in self._new}
        stored = np.array([number for number in numbers if number not in rows], np.int64)
        for number_of_file in np.unique(self._file_of[stored]).tolist():
            of_file = stored[self._file_of[stored] == number_of_file]
            rows.update(self._rows_of_file(self._files[number_of_file], of_file))
        return [rows[number] for number in numbers]

    def _rows_of_file(self, file: File, numbers: np.ndarray) -> Iterator[tuple[int, Row]]:
        indices = pa.array(self._index_of[numbers])
        metrics = [
            (subject, file.column(name).take(indices).to_pylist(), subject.startswith(COUNTS))
            for name, subject in file.metrics.items()
        ]
        cells_of_rows = zip(*(_list_values(file.column(name).take(indices)) for name in _IDENTITY), strict=True)
        for index, (number, (seed, *cells)) in enumerate(zip(numbers.tolist(), cells_of_rows, strict=True)):
            # Runs omit counts of 0; nulls are metrics that this run does not have.
            row_metrics = {
                metric: values[index]
                for metric, values, is_count in metrics
                if values[index] is not None and (values[index] or not is_count)
            }
            scenario, code, engine, versions, wall_s, compile_s, error = cells
            seed = self._plan.seed_of(number) if seed is None else seed
            yield number, Row(number, scenario, "", seed, code, engine, wall_s, compile_s, error, row_metrics, versions)

    def of_points(self, numbers: Sequence[int]) -> PointRows:
        """Return the rows of the points ``numbers``, all of which must have a row, as a sequence."""
        return PointRows(self, numbers)


class PointRows(Sequence[Row]):
    """A sequence of the rows of the points ``numbers``, in this order, and the rows' columns for a table.

    A `Row` is built when it is read.
    """

    def __init__(self, stored: StoredRows, numbers: Sequence[int]) -> None:
        self.numbers = numbers
        self._stored = stored
        self._file_of = stored._file_of[np.asarray(numbers, np.int64)]
        self._index_of = stored._index_of[np.asarray(numbers, np.int64)]
        self._new = [(place, row) for place, number in enumerate(numbers) if (row := stored._new.get(number))]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: Any) -> Any:
        selected = self.numbers[place]
        return list(self._stored.rows(selected)) if isinstance(place, slice) else self._stored[selected]

    def __iter__(self) -> Iterator[Row]:
        return self._stored.rows(self.numbers)

    @cached_property
    def is_failed(self) -> np.ndarray:
        """A bool array with an entry for each row: True if the row has an error."""
        return np.array([error is not None for error in self.cells("error")], bool)

    @cached_property
    def metric_names(self) -> set[str]:
        """The names of all metrics that at least one of the rows has."""
        names = {name for _, row in self._new for name in row.metrics}
        for file, places in self._row_indices_by_file():
            indices = pa.array(self._index_of[places])
            for name, subject in file.metrics.items():
                if subject not in names and _has_metric(file.column(name).take(indices), subject):
                    names.add(subject)
        return names

    def metric(self, name: str) -> np.ndarray:
        """Return a metric of each row as float64; NaN if the point has failed or its run does not have the metric.

        A count that a successful run does not have is 0.0.
        """
        values = np.full(len(self), np.nan)
        for file, places in self._row_indices_by_file():
            column = next((column for column, subject in file.metrics.items() if subject == name), None)
            if column is not None:
                values[places] = file.column(column).to_numpy()[self._index_of[places]]
        for place, row in self._new:
            values[place] = row.metrics.get(name, np.nan)
        if name.startswith(COUNTS):
            values[np.isnan(values) & ~self.is_failed] = 0.0
        return values

    def cells(self, name: str) -> list[Any]:
        """Return the values that the rows have in the field ``name``, such as "engine", in the order of the rows."""
        cells: np.ndarray = np.empty(len(self), object)
        for file, places in self._row_indices_by_file():
            stored_cells = np.empty(len(file.column(name)), object)
            stored_cells[:] = _list_values(file.column(name))
            cells[places] = stored_cells[self._index_of[places]]
        for place, row in self._new:
            cells[place] = getattr(row, name)
        return cells.tolist()

    def seeds(self) -> list[int]:
        """Return the seed of each row."""
        plan = self._stored._plan
        return [
            plan.seed_of(number) if seed is None else seed
            for number, seed in zip(self.numbers, self.cells("seed"), strict=True)
        ]

    def _row_indices_by_file(self) -> Iterator[tuple[File, np.ndarray]]:
        """Yield each file of stored rows, and the indices that its rows have in this sequence."""
        for number_of_file, file in enumerate(self._stored._files):
            yield file, np.flatnonzero(self._file_of == number_of_file)


def rows_of_list(plan: Plan, rows: Sequence[Row]) -> PointRows:
    """Return result rows of a plan as `PointRows`, in the order of the list ``rows``."""
    stored = StoredRows(plan)
    stored.add(rows)
    return stored.of_points([row.number for row in rows])


def _has_metric(column: pa.ChunkedArray, subject: str) -> bool:
    if subject.startswith(COUNTS):
        return bool(pc.any(pc.not_equal(column, 0.0)).as_py())
    return column.null_count < len(column)


def _list_values(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's values as a list, in which equal texts are the same object, to save memory."""
    if not pa.types.is_string(column.type):
        return column.to_pylist()
    encoded_column = column.combine_chunks().dictionary_encode()
    texts = [*encoded_column.dictionary.to_pylist(), None]
    return [texts[index] for index in encoded_column.indices.fill_null(len(texts) - 1).to_pylist()]
