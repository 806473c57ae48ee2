"""The known data sets of real sensor networks: descriptions, and the search for their files on this machine."""

import hashlib
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import DataError
from workbench.suggestion import meant

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    ``role`` is the purpose of the file, such as "links". ``paths`` are its possible paths below a data folder.
    ``sha256`` is its checksum, or None if unknown.
    """

    role: str
    paths: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class DataSet:
    """A description of a data set.

    name       name of the data set, such as "iotlab/strasbourg"
    title      title in words
    origin     who published it, and where
    licence    terms of use, in words
    files      the files of the data set
    how        a sentence on how to get the files
    """

    name: str
    title: str
    origin: str
    licence: str
    files: tuple[DataFile, ...]
    how: str


_MERCATOR = (
    "The raw logs are in the repository openwsn-berkeley/mercator on GitHub (M3 boards, one-to-one packet delivery, "
    "December 2016); average each link over the 16 channels, a channel never heard counting 0"
)
_NO_LICENCE = "none stated; cite the origin and do not pass copies on"

DATA_SETS = (
    DataSet(
        name="iotlab/strasbourg",
        title="64 motes in one room, FIT IoT-LAB Strasbourg: 4,032 measured links",
        origin="Mercator (openwsn-berkeley/mercator), FIT IoT-LAB, December 2016",
        licence=_NO_LICENCE,
        files=(
            DataFile(
                "links",
                ("iotlab/strasbourg.links.csv",),
                "9dca1961b4236ffd5bec0e273fc69652cb3b3756ed1b308628a0c706a2e09df9",
            ),
            DataFile(
                "positions",
                ("iotlab/strasbourg.nodes.csv",),
                "365394431281822c65ce1fad67f51cda71ef5f2a14011955396e7185ada7dc2a",
            ),
        ),
        how=_MERCATOR,
    ),
    DataSet(
        name="iotlab/lille",
        title="224 motes in one hall, FIT IoT-LAB Lille: 49,952 measured links",
        origin="Mercator (openwsn-berkeley/mercator), FIT IoT-LAB, December 2016",
        licence=_NO_LICENCE,
        files=(
            DataFile(
                "links",
                ("iotlab/lille.links.csv",),
                "651cbd3df1d90b72c69dbd99c04a0acba9581038452f9944b41823f9e01f2251",
            ),
            DataFile(
                "positions",
                ("iotlab/lille.nodes.csv",),
                "a46ce73f2651549d39769e8302c02a8fb159d04ff58fc13aac9d98415bd47cec",
            ),
        ),
        how=_MERCATOR,
    ),
    DataSet(
        name="ulb-library",
        title="20 motes in a library for 7 hours: readings and neighbor observations",
        origin="Machine Learning Group, Université Libre de Bruxelles, sensorNet, Library 1, November 2006",
        licence=_NO_LICENCE,
        files=(
            DataFile(
                "readings",
                ("ulb-library/R1.txt",),
                "d2c8458b206e5a285cd49c8c36294f3df4d3e22743959e6565bdb3fdec0fb793",
            ),
            DataFile(
                "neighbors",
                ("ulb-library/N1.txt",),
                "91c7474f8f0894054ee2fe339d1c55ed4615d6b9d6ff9dd19567ad58b85c996e",
            ),
        ),
        how="R1.txt and N1.txt of experiment Library 1 were published by the group's wireless lab (di.ulb.ac.be/labo)",
    ),
    DataSet(
        name="intel-lab",
        title="54 motes in the Intel Berkeley Research Lab for 5 weeks: readings and connectivity",
        origin="Intel Berkeley Research Lab (P. Bodik, W. Hong, C. Guestrin, S. Madden, M. Paskin, R. Thibaux), 2004",
        licence=_NO_LICENCE,
        files=(
            DataFile("readings", ("intel-lab/data.txt", "intel-lab-data.txt")),
            DataFile("links", ("intel-lab/connectivity.txt", "intel-lab-connectivity.txt")),
            DataFile(
                "positions",
                ("intel-lab/mote_locs.txt", "intel-lab-mote-locations.txt"),
                "3865c0263110c24c40e3377690cecaa552e0575cf56cdb9f5f8bd17130b6bf04",
            ),
        ),
        how="data.txt, connectivity.txt and mote_locs.txt are published at db.csail.mit.edu/labdata",
    ),
)


def folder_candidates() -> list[Path]:
    """Return the folders that are searched for data sets; new data sets belong in the first folder.

    The folders are ``$WORKBENCH_DATA`` if it is set, workbench/datasets below the platform's folder for user data, and
    the folder shared/datasets beside a checkout if it exists.
    """
    home_folder = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        user_data_folder = Path(os.environ.get("LOCALAPPDATA") or home_folder / "AppData" / "Local")
    elif sys.platform == "darwin":
        user_data_folder = home_folder / "Library" / "Application Support"
    else:
        user_data_folder = Path(os.environ.get("XDG_DATA_HOME") or home_folder / ".local" / "share")
    folders = [user_data_folder / "workbench" / "datasets"]
    if os.environ.get("WORKBENCH_DATA"):
        folders.insert(0, Path(os.environ["WORKBENCH_DATA"]).expanduser())
    shared_folder = Path(__file__).resolve().parents[3] / "shared" / "datasets"
    return [*folders, shared_folder] if shared_folder.is_dir() else folders


def named(name: str) -> DataSet:
    """Return the known data set ``name``; the part after "/" is enough: "strasbourg" for "iotlab/strasbourg".

    Raises DataError for an unknown name.
    """
    for data_set in DATA_SETS:
        if name in (data_set.name, data_set.name.rpartition("/")[2]):
            return data_set
    known_names = [data_set.name for data_set in DATA_SETS]
    raise DataError(
        f"Unknown data set {name!r:.60}{meant(name, known_names)}; known data sets are {', '.join(known_names)}."
    )


def find(name: str, *roles: str) -> dict[str, Path]:
    """Return {role: path} of the files of a data set that are on this machine.

    ``roles``: roles of the files that must be present, such as "links". Raises DataError for an unknown ``name`` or
    role, and if a file with one of ``roles`` is missing; without ``roles``, if no file of the data set is present. A
    file with another checksum than the known one may be a newer version or your own; it is returned with a warning.
    """
    data_set = named(name)
    unknown_roles = [role for role in roles if role not in {file.role for file in data_set.files}]
    if unknown_roles:
        known_roles = ", ".join(file.role for file in data_set.files)
        raise DataError(
            f"Data set {data_set.name} has no file for role {unknown_roles[0]!r}; its roles are {known_roles}."
        )
    paths = {file.role: path for file in data_set.files if (path := _find_copy(file)) is not None}
    missing_files = [
        file for file in data_set.files if file.role not in paths and (file.role in roles if roles else not paths)
    ]
    if missing_files:
        missing_names = " and ".join(file.paths[0] for file in missing_files)
        pronoun = "it" if len(missing_files) == 1 else "them"
        raise DataError(f"{missing_names} not found; put {pronoun} below {folder_candidates()[0]}. {data_set.how}.")
    for file in data_set.files:
        if file.role in paths and not _has_known_checksum(file, paths[file.role]):
            warnings.warn(
                f"{paths[file.role]} differs from the known file of data set {data_set.name} (SHA-256 "
                f"{file.sha256}); results will differ from those of others.",
                stacklevel=2,
            )
    return paths


def describe() -> "pd.DataFrame":
    """Return a table of the known data sets.

    Columns: name, title, origin, licence, files, here, how. "here" lists the files that this machine has, by their
    roles, such as "links"; "how" describes how to get the files.
    """
    import pandas as pd

    description_rows = []
    for data_set in DATA_SETS:
        local_roles = [file.role for file in data_set.files if _find_copy(file) is not None]
        file_names = ", ".join(file.paths[0] for file in data_set.files)
        description_rows.append(
            (
                data_set.name,
                data_set.title,
                data_set.origin,
                data_set.licence,
                file_names,
                ", ".join(local_roles),
                data_set.how,
            )
        )
    return pd.DataFrame(description_rows, columns=["name", "title", "origin", "licence", "files", "here", "how"])


def _find_copy(file: DataFile) -> Path | None:
    """Return the path of the first copy of a file in the data folders, or None if this machine has no copy."""
    candidates = (folder / path for folder in folder_candidates() for path in file.paths)
    return next((path for path in candidates if path.is_file()), None)


def _has_known_checksum(file: DataFile, path: Path) -> bool:
    if file.sha256 is None:  # No checksum is known.
        return True
    with open(path, "rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest() == file.sha256
