"""Known data sets of real sensor networks: their origins, their files on this machine, and loaders for their formats.

Nothing is downloaded, and the workbench contains no data of others. ``describe()`` lists the known data sets and which
files are on this machine. ``find(name)`` returns the files' paths. If files are missing, it raises an error that names
their source, and the folder in which they belong.

The loaders return tidy pandas DataFrames with units in the columns' names. A damaged line is skipped and counted:
``frame.attrs`` has ``lines`` (not blank), ``skipped`` and ``first_skipped`` ("line 17: ..."). A file in which fewer
than one line in twenty can be read raises DataError.

Without a data set, ``make_raw_log`` and ``make_readings`` write logs in the formats of real ones.
"""

# ruff: noqa: F401
from workbench.datasets.generated import make_raw_log, make_readings
from workbench.datasets.known import DATA_SETS, DataFile, DataSet, describe, find, folder_candidates, named
from workbench.datasets.loaders import (
    intel_connectivity,
    intel_positions,
    intel_readings,
    links_from_neighbors,
    ulb_neighbors,
    ulb_readings,
)
from workbench.keywords import answer_for, imported_names

__all__ = imported_names(__name__)

answer_for(__name__)
