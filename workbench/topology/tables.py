"""Links and positions from CSV files and pandas DataFrames, with errors that name file, row and column."""

import csv
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import DataError
from workbench.topology.graphs import LARGEST_NODE, coordinates


class Row(NamedTuple):
    """The values of the requested columns in one row of a table, and the row's location for messages."""

    location: str
    values: tuple[Any, ...]


def read_links(source: object) -> list[tuple[int, int, float]]:
    """Return [(transmitter, receiver, pdr), ...] from a CSV file or DataFrame with these columns, in row order.

    A table with the further columns heard and sent may have several rows for a link, for example one for each channel:
    the link's pdr is then the mean of these rows, weighted by ``sent``. Raises DataError for an invalid value, for a
    repeated link in a table without these columns, and for a table without rows.
    """
    if _COUNTS.issubset(column_names(source)):
        return _average_links(source)
    links: list[tuple[int, int, float]] = []
    location_of_link: dict[tuple[int, int], str] = {}
    for row in read_rows(source, ("transmitter", "receiver", "pdr"), "links"):
        transmitter, receiver = _read_ends(row)
        if (transmitter, receiver) in location_of_link:
            earlier_location = location_of_link[transmitter, receiver]
            raise DataError(
                f"{row.location}: link {transmitter} -> {receiver} repeats the link of {earlier_location}; keep one."
            )
        location_of_link[transmitter, receiver] = row.location
        links.append((transmitter, receiver, _read_ratio(row, row.values[2])))
    if not links:
        raise DataError(
            f"{_describe_source(source, 'links')} has no rows; it needs a row transmitter, receiver, pdr for each link."
        )
    return links


_COUNTS = {"heard", "sent"}


def _average_links(source: object) -> list[tuple[int, int, float]]:
    """Return the links of a table with packet counts; the rows of a link are averaged, weighted by ``sent``."""
    weighted_sums: dict[tuple[int, int], tuple[float, float]] = {}
    for row in read_rows(source, ("transmitter", "receiver", "pdr", "sent"), "links"):
        link = _read_ends(row)
        pdr, sent_count = _read_ratio(row, row.values[2]), _parse_float(row.values[3])
        if sent_count is None or sent_count <= 0:
            raise DataError(f"{row.location}, column sent: {row.values[3]!r:.60}; it must be a number above 0.")
        weighted_sum, weight = weighted_sums.get(link, (0.0, 0.0))
        weighted_sums[link] = weighted_sum + pdr * sent_count, weight + sent_count
    if not weighted_sums:
        raise DataError(f"{_describe_source(source, 'links')} has no rows; it needs a row for each link.")
    return [(*link, min(1.0, weighted_sum / weight)) for link, (weighted_sum, weight) in weighted_sums.items()]


def _read_ends(row: Row) -> tuple[int, int]:
    """Return (transmitter, receiver), the first two cells of a row. Raises DataError if both are the same node."""
    transmitter, receiver = (node_in(row, *cell) for cell in zip(("transmitter", "receiver"), row.values, strict=False))
    if transmitter == receiver:
        raise DataError(f"{row.location}: node {transmitter} has a link to itself; remove the row.")
    return transmitter, receiver


def column_names(source: object) -> list[str]:
    """Return the names of the columns of a CSV file or DataFrame; [] for other objects and unreadable files."""
    if not isinstance(source, str | os.PathLike):
        return [str(name) for name in getattr(source, "columns", ())]
    try:
        with open(source, newline="", encoding="utf-8-sig") as file:
            return [name.strip() for name in next(csv.reader(file), [])]
    except (OSError, ValueError, csv.Error):
        return []


def read_positions(source: object) -> dict[int, tuple[float, float]]:
    """Return {node: (x_m, y_m)} of a mapping, or of a DataFrame or CSV file with the columns node, x_m, y_m.

    Rows with blank (or NaN) x and y are nodes without a position and are omitted. Raises DataError for an invalid
    value, for a node with two rows, and if no node has a position.
    """
    if isinstance(source, Mapping):
        position_rows = [
            Row(f"positions, node {node!r:.60}", (node, *_position_of(node, position)))
            for node, position in source.items()
        ]
    else:
        position_rows = list(read_rows(source, ("node", "x_m", "y_m"), "positions"))
    positions_m: dict[int, tuple[float, float]] = {}
    for row in position_rows:
        node = node_in(row, "node", row.values[0])
        if node in positions_m:
            raise DataError(f"{row.location}: node {node} has a position already; keep one for each node.")
        if all(_is_blank(value) for value in row.values[1:]):
            continue
        position_m = coordinates((_parse_float(row.values[1]), _parse_float(row.values[2])))
        if position_m is None:
            raise DataError(
                f"{row.location}: x_m, y_m are {row.values[1:]!r:.60}; they must be two finite numbers, in m."
            )
        positions_m[node] = position_m
    if not positions_m:
        raise DataError(
            f"{_describe_source(source, 'positions')} has no row with x_m and y_m; give at least one node a position, "
            "in the columns node, x_m, y_m."
        )
    return positions_m


def read_rows(source: Any, columns: tuple[str, ...], table_name: str) -> Iterator[Row]:
    """Yield each row of a CSV file (a path) or DataFrame with the named columns.

    Raises DataError if a column is missing. ``table_name``: the name of the table in messages.
    """
    if isinstance(source, str | os.PathLike):
        yield from _read_file_rows(Path(source), columns)
    elif hasattr(source, "toPandas"):  # a DataFrame of Spark
        yield from _read_frame_rows(source.select(*columns).toPandas(), columns, table_name)
    elif hasattr(source, "columns") and hasattr(source, "__getitem__"):
        yield from _read_frame_rows(source, columns, table_name)
    else:
        raise DataError(
            f"The table of {table_name} is of type {type(source).__name__}; give a CSV file or a DataFrame."
        )


def node_in(row: Row, column: str, value: Any) -> int:
    """Return the node number in a cell; "7", 7 and 7.0 (pandas' form of a column with gaps) are all node 7.

    Raises DataError, which names the ``column`` and the row's location, for any other ``value``.
    """
    node = _parse_float(value)
    if isinstance(value, bool) or node is None or not node.is_integer() or not 0 <= node <= LARGEST_NODE:
        raise DataError(
            f"{row.location}, column {column}: {value!r:.60}; a node must be a whole number from 0 to {LARGEST_NODE}."
        )
    return int(node)


def _read_ratio(row: Row, value: Any) -> float:
    pdr = _parse_float(value)
    if pdr is None or not 0 <= pdr <= 1:
        raise DataError(f"{row.location}, column pdr: {value!r:.60}; a delivery ratio must be a number from 0 to 1.")
    return pdr


def _parse_float(value: Any) -> float | None:
    """Return a value as a finite float, or None; numbers with underscores, which Python accepts, give None."""
    try:
        number = None if isinstance(value, str) and "_" in value else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number is not None and abs(number) < float("inf") else None


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip()) or bool(value != value)  # NaN


def _position_of(node: Any, position: Any) -> tuple[float, float]:
    coordinates_m = coordinates(position)
    if coordinates_m is None:
        raise DataError(f"positions, node {node!r:.60}: {position!r:.60}; it must be (x_m, y_m), two finite numbers.")
    return coordinates_m


def _describe_source(source: object, name: str) -> str:
    return Path(source).name if isinstance(source, str | os.PathLike) else f"The {name} table"


def _read_file_rows(path: Path, columns: tuple[str, ...]) -> Iterator[Row]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = [name.strip() for name in next(reader, [])]
            column_indices = [_find_column(header, name, path.name) for name in columns]
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield Row(f"{path.name}, line {reader.line_num}", _select_cells(cells, column_indices))
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); give the path of a CSV file.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path.name} is not a CSV text file in UTF-8 ({error}).") from error
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{str(path)!r:.60} is not the path of a file ({error}).") from error


def _select_cells(cells: list[str], indices: list[int]) -> tuple[str | None, ...]:
    """Return the cells of a row at ``indices``, or None for an index beyond the end of the row."""
    return tuple(cells[index].strip() if index < len(cells) else None for index in indices)


def _read_frame_rows(frame: Any, columns: tuple[str, ...], table_name: str) -> Iterator[Row]:
    names = [str(name) for name in frame.columns]
    for name in columns:
        _find_column(names, name, f"The {table_name} table")
    column_values = [frame[name].tolist() for name in columns]
    for index_label, row in zip(frame.index.tolist(), zip(*column_values, strict=True), strict=True):
        yield Row(f"{table_name} table, row {index_label}", row)


def _find_column(header: list[str], name: str, table_name: str) -> int:
    if name not in header:
        present_columns = ", ".join(header)[:200] or "none"
        raise DataError(f"{table_name} has no column {name!r}; its columns are: {present_columns}.")
    return header.index(name)
