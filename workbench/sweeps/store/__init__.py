"""Where the rows of a sweep are kept: Parquet files in a folder, or memory. docs/SWEEPS.md has the layout.

folder     FolderStore: finds what is there, keeps what comes, tidies what a killed driver left; MemoryStore: rows that
           live as long as the object of the sweep
files      Parquet files that are named by their own checksum
columns    how a row is spread over typed columns
journal    rows that were handed out and are in no Parquet file yet
lease      who may write into a folder
"""

from workbench.sweeps.store.files import read
from workbench.sweeps.store.folder import FolderStore, MemoryStore

__all__ = ["FolderStore", "MemoryStore", "read"]
