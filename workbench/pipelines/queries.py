"""SQL queries that run unchanged on DuckDB and on Spark.

DuckDB runs them in this process, without Java, over pandas frames, Arrow tables and folders of Parquet files. Spark
runs them over its own DataFrames. Queries use only the SQL that both support; `_MACROS` defines some of Spark's
functions for DuckDB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.errors import DataError
from workbench.locations import is_url
from workbench.pipelines import damage

if TYPE_CHECKING:
    import duckdb

_MACROS = ("CREATE MACRO percentile(x, share) AS quantile_cont(x, share)",)
_PARQUET = "*.parquet"
# Settings of DuckDB for all queries, such as {"memory_limit": "1GB", "threads": "2", "temp_directory": "/tmp"}.
LIMITS: dict[str, str] = {}


def is_spark(table: Any) -> bool:
    """Return whether a table is a DataFrame of Spark (classic or Connect), without importing pyspark."""
    return type(table).__module__.startswith("pyspark.") and "pyspark" in sys.modules


def is_connect(session: Any) -> bool:
    """Return whether a session of Spark is one of Spark Connect, without importing pyspark."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def run_query(query: str, **tables: Any) -> Any:
    """Run an SQL query that has names of tables in braces: ``run_query("SELECT node FROM {trace}", trace=t)``.

    If the tables are pandas frames, Arrow tables or paths (a Parquet file or a folder of them), returns a pandas frame.
    If they are DataFrames of Spark, returns a DataFrame of Spark. Without ORDER BY the order of rows is undefined.
    Raises DataError for a table of another type, for a query that mixes Spark's DataFrames with other tables, and for a
    damaged file.
    """
    spark_names = [name for name, table in tables.items() if is_spark(table)]
    if len(spark_names) == len(tables):
        session = next(iter(tables.values())).sparkSession
        result = session.sql(query, **tables)
        if is_connect(session):
            # The server deletes the checkpoint of a table when no object here refers to it, and the result's plan
            # does not refer to the tables.
            result._plan.workbench_tables = [table._plan for table in tables.values()]
        return result
    if spark_names:
        other_table = next(name for name in tables if name not in spark_names)
        raise DataError(
            f"table {spark_names[0]} is a DataFrame of Spark, but table {other_table} is not; use only one kind"
        )
    with _name_unreadable_file(tables.values()):
        return duckdb_relation(query, **tables).df()


@contextmanager
def _name_unreadable_file(tables: Iterable[Any]) -> Iterator[None]:
    """Convert DuckDB's error for an unreadable file, raised inside the context, into a DataError with the path."""
    import duckdb

    read_errors = (
        duckdb.IOException,
        duckdb.InvalidInputException,
        duckdb.SerializationException,
        duckdb.InternalException,
    )
    try:
        yield
    except read_errors:
        for table in tables:
            if isinstance(table, (str, Path)):
                for path in _list_parquet_files(Path(table)):
                    damage.check_with_duckdb(path)
        raise


def duckdb_relation(query: str, **tables: Any) -> duckdb.DuckDBPyRelation:
    """Return a query's result as a relation of DuckDB, whose rows are computed when they are fetched.

    The result may be larger than memory. The arguments are those of `run_query`.
    """
    import duckdb

    database = duckdb.connect(":memory:", config=dict(LIMITS))
    for macro in _MACROS:
        database.execute(macro)
    for name, table in tables.items():
        _register_table(database, name, table)
    return database.sql(query.format(**{name: name for name in tables}))


def _register_table(database: duckdb.DuckDBPyConnection, name: str, table: Any) -> None:
    """Register a frame, an Arrow table or a path to Parquet as the table ``name`` of a DuckDB database.

    Raises DataError for an object of another type, and for a missing or damaged file.
    """
    import pandas as pd

    if isinstance(table, (pd.DataFrame, pa.Table)):
        database.register(name, table)
        return
    if not isinstance(table, (str, Path)):
        raise DataError(f"table {name} is a {type(table).__name__}; it must be a DataFrame, an Arrow table or a path")
    if is_url(table):
        raise DataError(
            f"table {name} is {str(table)!r:.80}, a URL; read it first, with wb.pipelines.traces or pandas.read_parquet"
        )
    path = Path(table)
    if not path.exists():
        raise DataError(f"{path} does not exist")
    parquet_files = _list_parquet_files(path)
    if not parquet_files:
        raise DataError(f"{path} contains no Parquet file")
    runs = [damage.trace_in(file) for file in parquet_files]
    if all(run is not None for run in runs):
        database.register(name, pa.concat_tables(runs, promote_options="default").unify_dictionaries())
        return
    for file in parquet_files:
        damage.check(file)  # DuckDB does not verify checksums.
    database.read_parquet([str(file) for file in parquet_files]).create_view(name)


def _list_parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files below a folder, or the path itself if it is a file.

    Files and folders whose names begin with "_" or "." are ignored, as by other readers of Parquet.
    """
    if not path.is_dir():
        return [path]
    files = sorted(path.rglob(_PARQUET))
    return [file for file in files if not any(part[0] in "_." for part in file.relative_to(path).parts)]
