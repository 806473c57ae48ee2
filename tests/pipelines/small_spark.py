"""A session of Spark for tests with few rows: one task for each step, and no code that is generated for a query."""

import workbench as wb


def small_spark():
    """Start a session, which the caller stops."""
    return wb.pipelines.spark(
        "local[2]",
        sql_shuffle_partitions=1,
        sql_adaptive_enabled=False,
        sql_codegen_wholeStage=False,
        sql_codegen_factoryMode="NO_CODEGEN",
    )
