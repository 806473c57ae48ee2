"""A Spark session for tests with few rows: one task for each step, and no code generation for queries."""

import workbench as wb


def small_spark():
    """Start and return a session; the caller stops it."""
    return wb.pipelines.spark(
        "local[2]",
        sql_shuffle_partitions=1,
        sql_adaptive_enabled=False,
        sql_codegen_wholeStage=False,
        sql_codegen_factoryMode="NO_CODEGEN",
    )
