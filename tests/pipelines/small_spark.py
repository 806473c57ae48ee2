"""A Spark session for tests with few rows: one task for each step, and little work for compilers."""

import workbench as wb
from workbench.sweeps.spark.session import LOG_ERRORS_ONLY, QUICK_START


def small_spark():
    """Start and return a session; the caller stops it."""
    return wb.pipelines.spark(
        "local[2]",
        driver_extraJavaOptions=f"{QUICK_START} {LOG_ERRORS_ONLY}",
        sql_shuffle_partitions=1,
        sql_adaptive_enabled=False,
        sql_codegen_wholeStage=False,
        sql_codegen_factoryMode="NO_CODEGEN",
    )
