"""Records: what everything that is made of a run carries, so that it can be made again.

A record is a value that JSON can hold. It has

    format, version      "workbench-record", 1
    of                   what it is of: "run", "runs" (a figure of several), "sweep" (a chart)
    versions             of the workbench, Python, numpy, numba
    code                 a digest for each room of the package that the run went through (`records/record.py`)
    user_code            the user's own protocols and filters: name -> module and digest; only if there are some
    platform             operating system and processor
    digest               of all else in it: a record that was changed is told apart

and, of a run,

    scenario, scenario_hash     whole, as `Scenario.to_json` writes it
    engine                      the one that played it
    trace_hash, trace_rows      if the run kept its trace
    metrics                     by name; null for what is not a number

There is no date in it: the same run on the same machine gives the same bytes. What a record of a sweep has besides,
`records/table.py` says.

record     makes a record of a run, and writes it as text
table      makes that of a sweep's rows
code       digests of the code that runs
carriers   where the text lies in a PNG, an SVG, a page and a Parquet file
found      what there is in a file, whatever it is
reproduction     runs it again and says what differs: `wb.reproduce`, ``workbench reproduce``
"""

from workbench.records.record import record_of, record_of_runs
from workbench.records.table import record_of_table

__all__ = ["record_of", "record_of_runs", "record_of_table"]
