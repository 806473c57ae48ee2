"""Stores for the rows of a sweep: Parquet files in a folder, or memory. docs/SWEEPS.md describes the layout.

The *driver* is the process that runs a sweep.

folder     FolderStore, which reads and writes a folder, and repairs it after a killed driver; MemoryStore, which keeps
           the rows in memory as long as the `Sweep` object exists
files      Parquet files that are named after their own checksum
stored_rows  rows of points, read from the files when they are needed
columns    conversion of a row to typed columns
journal    rows that are not in a Parquet file yet
traces     storage of the traces of a sweep's runs
"""

from workbench.sweeps.store.files import read
from workbench.sweeps.store.folder import FolderStore, MemoryStore

__all__ = ["FolderStore", "MemoryStore", "read"]
