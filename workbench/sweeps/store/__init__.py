"""Stores for the rows of a sweep: Parquet files in a folder, or memory. docs/SWEEPS.md describes the layout.

The *driver* is the process that runs a sweep.

folder     FolderStore: reads and writes a folder, and repairs it after a killed driver; MemoryStore: rows that live as
           long as the object of the sweep
files      Parquet files that are named after their own checksum
columns    conversion of a row to typed columns
journal    rows that are not in a Parquet file yet
lease      the right to write into a folder
traces     the traces of a sweep's runs
"""

from workbench.sweeps.store.files import read
from workbench.sweeps.store.folder import FolderStore, MemoryStore

__all__ = ["FolderStore", "MemoryStore", "read"]
