"""Questions to tables, in SQL, put to whoever has the tables: DuckDB if they are here, Spark if they are there.

A query is written once. DuckDB answers it in this process, without Java, over pandas frames, Arrow tables and folders
of Parquet; Spark answers it over its own DataFrames. Queries keep to what both read alike; where a function's names
differ, `_MACROS` gives DuckDB Spark's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.errors import DataError
from workbench.pipelines import damage

if TYPE_CHECKING:
    import duckdb

_MACROS = ("CREATE MACRO percentile(x, share) AS quantile_cont(x, share)",)
_PARQUET = "*.parquet"
# Settings of DuckDB for all questions: {"memory_limit": "1GB", "threads": "2", "temp_directory": "/tmp"}, say.
LIMITS: dict[str, str] = {}


def is_spark(table: Any) -> bool:
    """Whether a table is a DataFrame of Spark, classic or of Connect. Asks without loading Spark."""
    return type(table).__module__.startswith("pyspark.") and "pyspark" in sys.modules


def ask(query: str, **tables: Any) -> Any:
    """The answer to a query over tables, which it names in braces: ``ask("SELECT node FROM {trace}", trace=t)``.

    Tables are pandas frames, Arrow tables, paths (a Parquet file, or a folder of them), for which the answer is a
    pandas frame; or DataFrames of Spark, for which it is one, too. Rows come in no order but that of ORDER BY.
    DataError for a table that is something else, for both kinds at once, and for a file that is damaged.
    """
    of_spark = [name for name, table in tables.items() if is_spark(table)]
    if len(of_spark) == len(tables):
        return next(iter(tables.values())).sparkSession.sql(query, **tables)
    if of_spark:
        other = next(name for name in tables if name not in of_spark)
        raise DataError(f"{of_spark[0]} is a DataFrame of Spark and {other} is not; give both of one kind")
    with _files_named(tables.values()):
        return answer(query, **tables).df()


@contextmanager
def _files_named(tables: Iterable[Any]) -> Iterator[None]:
    """If DuckDB cannot read a file, raise a DataError that names it. Errors in a query stay as they are."""
    import duckdb

    wrong = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException, duckdb.InternalException)
    try:
        yield
    except wrong:
        for table in tables:
            if isinstance(table, (str, Path)):
                for path in _files(Path(table)):
                    damage.check_with_duckdb(path)
        raise


def answer(query: str, **tables: Any) -> duckdb.DuckDBPyRelation:
    """DuckDB's answer, not fetched yet: for what is too large to be a frame at once."""
    import duckdb

    database = duckdb.connect(":memory:", config=dict(LIMITS))
    for macro in _MACROS:
        database.execute(macro)
    for name, table in tables.items():
        _lay_out(database, name, table)
    return database.sql(query.format(**{name: name for name in tables}))


def _lay_out(database: duckdb.DuckDBPyConnection, name: str, table: Any) -> None:
    """Give the database a table by its name."""
    import pandas as pd

    if isinstance(table, (pd.DataFrame, pa.Table)):
        database.register(name, table)
        return
    if not isinstance(table, (str, Path)):
        raise DataError(f"{name} is a {type(table).__name__}; it must be a DataFrame, an Arrow table or a path")
    path = Path(table)
    if not path.exists():
        raise DataError(f"{path} is not there")
    files = _files(path)
    if not files:
        raise DataError(f"{path} has no Parquet file")
    runs = [damage.trace_in(one) for one in files]
    if all(run is not None for run in runs):
        database.register(name, pa.concat_tables(runs, promote_options="default").unify_dictionaries())
        return
    for one in files:
        damage.check(one)  # DuckDB does not verify checksums.
    database.read_parquet([str(one) for one in files]).create_view(name)


def _files(path: Path) -> list[Path]:
    """The Parquet files below a folder, without what begins with an underscore: readers of Parquet pass over that.

    A file is a list of itself.
    """
    if not path.is_dir():
        return [path]
    found = sorted(path.rglob(_PARQUET))
    return [one for one in found if not any(part[0] in "_." for part in one.relative_to(path).parts)]
