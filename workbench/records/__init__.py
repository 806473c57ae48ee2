"""Records: descriptions of runs, stored in pictures, pages and tables, from which the runs can be repeated.

A record is a JSON object with the fields

    format, version      "workbench-record", 1
    of                   the kind of record: "run", "runs" (a figure of several), "sweep" (a chart)
    versions             versions of the workbench, Python, numpy and numba
    code                 {folder: digest of its code} for the package's folders whose code the run executes
                         (`records/record.py`)
    user_code            the user's own protocols and filters, if any: name -> module and digest
    platform             operating system and processor
    digest               a digest of all other fields, which shows later changes

A record of a run also has

    scenario, scenario_hash     the whole scenario, as `Scenario.to_json` writes it
    engine                      the engine that played it
    trace_hash, trace_rows      digest and length of the trace, if the run kept it
    metrics                     value of each metric by name; null for NaN

A record has no date, so the same run on the same machine gives the same bytes. `records/table.py` lists the further
fields of a sweep's record.

record           records of runs, their text, and digests of the code
table            records of a sweep's rows
carriers         where the text is stored in a PNG, an SVG, a PDF, a page and a Parquet file
contents         reads the records, the trace or the rows of a file of any kind
differences      compares recorded values with those of a new run
verdicts         claims of a notebook, with verdicts and hashes of the data: `wb.claim`
reproduction     runs a recorded scenario again and lists the differences: `wb.reproduce`, ``workbench reproduce``
"""

from workbench.records.record import record_of, record_of_runs
from workbench.records.table import record_of_table

__all__ = ["record_of", "record_of_runs", "record_of_table"]
