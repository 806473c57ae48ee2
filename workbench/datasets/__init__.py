"""Known data sets of real sensor networks: where they are, where they come from, and loaders for their formats.

Nothing is downloaded, and no data of others is part of the workbench: ``describe()`` says what is known and what is
here, ``find(name)`` gives the files' paths or says where to get them and where to put them.

The loaders return tidy pandas DataFrames with units in the columns' names. A damaged line is skipped and counted:
``frame.attrs`` has ``lines`` (not blank), ``skipped`` and ``first_skipped`` ("line 17: ..."). A file in which fewer
than one line in twenty can be read is something else: DataError.
"""

import hashlib
import os
import re
import sys
import warnings
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class DataFile:
    """A file of a data set: its role, the paths below a data folder it may have, and its SHA-256 if that is known."""

    role: str
    paths: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class DataSet:
    """A data set: what it is, who made it, under which terms, its files and how to get them."""

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
    """The folders in which data sets are looked for, first the one to put them in.

    ``$WORKBENCH_DATA`` if it is set; the platform's folder for user data, workbench/datasets below it; and
    ../shared/datasets beside a checkout, if that exists.
    """
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    folders = [base / "workbench" / "datasets"]
    if os.environ.get("WORKBENCH_DATA"):
        folders.insert(0, Path(os.environ["WORKBENCH_DATA"]).expanduser())
    shared = Path(__file__).resolve().parents[3] / "shared" / "datasets"
    return [*folders, shared] if shared.is_dir() else folders


def named(name: str) -> DataSet:
    """The known data set of that name; "strasbourg" is short for "iotlab/strasbourg". DataError if there is none."""
    for data_set in DATA_SETS:
        if name in (data_set.name, data_set.name.rpartition("/")[2]):
            return data_set
    known = ", ".join(data_set.name for data_set in DATA_SETS)
    raise DataError(f"There is no data set {name!r:.60}; the known ones are {known}.")


def find(name: str, *roles: str) -> dict[str, Path]:
    """{role: path} of the files of a data set that are on this machine.

    DataError if a file of one of the ``roles`` asked for is not here, or none at all. A file that is not the one
    the checksum was taken from is given all the same, with a warning: it may be a newer version, or one's own.
    """
    data_set = named(name)
    unknown = [role for role in roles if role not in {file.role for file in data_set.files}]
    if unknown:
        known = ", ".join(file.role for file in data_set.files)
        raise DataError(f"Data set {data_set.name} has no file for {unknown[0]!r}; it has {known}.")
    found = {file.role: path for file in data_set.files if (path := _path_of(file)) is not None}
    missing = [
        file for file in data_set.files if file.role not in found and (file.role in roles if roles else not found)
    ]
    if missing:
        files = " and ".join(file.paths[0] for file in missing)
        raise DataError(f"{files} not found; put it below {folder_candidates()[0]}. {data_set.how}.")
    for file in data_set.files:
        if file.role in found and not _is_the_known_one(file, found[file.role]):
            warnings.warn(
                f"{found[file.role]} differs from the file that data set {data_set.name} is known by (SHA-256 "
                f"{file.sha256}); results will differ from those of others.",
                stacklevel=2,
            )
    return found


def describe() -> "pd.DataFrame":
    """The known data sets, a row each: name, title, origin, licence, files, here (the roles found), how to get it."""
    import pandas as pd

    rows = []
    for data_set in DATA_SETS:
        here = [file.role for file in data_set.files if _path_of(file) is not None]
        files = ", ".join(file.paths[0] for file in data_set.files)
        rows.append(
            (data_set.name, data_set.title, data_set.origin, data_set.licence, files, ", ".join(here), data_set.how)
        )
    return pd.DataFrame(rows, columns=["name", "title", "origin", "licence", "files", "here", "how"])


def ulb_readings(path: str | os.PathLike[str]) -> "pd.DataFrame":
    """Readings of the ULB library motes (R1.txt).

    Columns: time_s (Unix time), node, sequence, internal_temperature_C (of the processor), voltage_V, humidity_pct,
    temperature_C, par and tsr (light, photosynthetically active and total, as logged). The format writes decimal
    commas, and numbers above 999 in groups of three digits: "1 012" is sequence 1012.
    """
    columns = {
        "time_s": "d", "node": "q", "sequence": "q", "internal_temperature_C": "d", "voltage_V": "d",
        "humidity_pct": "d", "temperature_C": "d", "par": "d", "tsr": "d",
    }  # fmt: skip

    def parse(fields: list[bytes]) -> tuple[float, ...]:
        time_ms, node, sequence, *rest = _join_groups(fields, len(columns), 2)
        return (_whole(time_ms) / 1000, _node(node), _whole(sequence), *map(_decimal, rest))

    return _load(
        path, columns, parse, "time in ms, node, sequence, temperature, voltage, humidity, temperature, PAR, TSR"
    )


def ulb_neighbors(path: str | os.PathLike[str]) -> "pd.DataFrame":
    """Neighbor observations of the ULB library motes (N1.txt): ``node`` reports that it heard ``source``.

    Columns: time_s (Unix time of the report), packet (number of the packet within the report, from 0), round (one a
    minute), node, source, lqi, rssi, power_dBm. A report takes up to nine packets of two neighbors.

    lqi is converted as the origin says: 383 - x for a logged x above 128, else 128 - x; rssi is as logged. The
    numbers say that the two fields are the other way round: the one called LQI wraps around 0 as the CC2420's signed
    RSSI register does and is nearly the same in both directions of a link (correlation 0.97), the one called RSSI is
    a CC2420 LQI of 65 to 108 with the CRC flag, 128, on top. So power_dBm reads the former by the CC2420's data sheet:
    8 bits, signed, 45 above the received power in dBm.
    """
    columns = {
        "time_s": "d", "packet": "q", "round": "q", "node": "q", "source": "q", "lqi": "q", "rssi": "q",
        "power_dBm": "q",
    }  # fmt: skip

    def parse(fields: list[bytes]) -> tuple[float, ...]:
        time_ms, packet, number, node, source, quality, rssi = _join_groups(fields, 7, 2)
        logged = _byte(quality)
        ids = (_whole(packet), _whole(number), _node(node), _node(source))
        return (_whole(time_ms) / 1000, *ids, _lqi(logged), _byte(rssi), _power_dBm(logged))

    return _load(path, columns, parse, "time in ms, packet, round, node, source node, LQI, RSSI")


def intel_readings(path: str | os.PathLike[str]) -> "pd.DataFrame":
    """Readings of the Intel Lab motes (data.txt).

    Columns: time_s (Unix time, the log's local time taken as UTC), epoch, node, temperature_C, humidity_pct,
    light_lux, voltage_V. The log has many cut lines, and senseless values (122 °C) from motes with an empty
    battery (below about 2.4 V): those are readings, and left in.
    """
    columns = {
        "time_s": "d", "epoch": "q", "node": "q", "temperature_C": "d", "humidity_pct": "d", "light_lux": "d",
        "voltage_V": "d",
    }  # fmt: skip

    def parse(fields: list[bytes]) -> tuple[float, ...]:
        date, time, epoch, node, *values = _exactly(fields, 8)
        moment = datetime.fromisoformat(f"{date.decode('ascii')}T{time.decode('ascii')}").replace(tzinfo=UTC)
        return (moment.timestamp(), _whole(epoch), _node(node), *map(_decimal, values))

    return _load(path, columns, parse, "date, time, epoch, mote, temperature, humidity, light, voltage")


def intel_connectivity(path: str | os.PathLike[str]) -> "pd.DataFrame":
    """Links of the Intel Lab (connectivity.txt: from, to, probability): transmitter, receiver, pdr.

    What ``workbench.topology.from_links`` takes; a mote's entry for itself is skipped, and so are repeated links.
    """
    seen = set()

    def parse(fields: list[bytes]) -> tuple[float, ...]:
        transmitter, receiver, probability = _exactly(fields, 3)
        link, pdr = (_node(transmitter), _node(receiver)), _decimal(probability)
        if link[0] == link[1] or link in seen or not 0 <= pdr <= 1:
            raise ValueError("it is no new link with a probability from 0 to 1")
        seen.add(link)
        return (*link, pdr)

    return _load(path, {"transmitter": "q", "receiver": "q", "pdr": "d"}, parse, "from, to, probability")


def intel_positions(path: str | os.PathLike[str]) -> "pd.DataFrame":
    """Positions of the Intel Lab motes (mote_locs.txt): node, x_m, y_m."""
    seen = set()

    def parse(fields: list[bytes]) -> tuple[float, ...]:
        mote, x, y = _exactly(fields, 3)
        node, place = _node(mote), (_decimal(x), _decimal(y))
        if node in seen:
            raise ValueError(f"mote {node} was there before")
        seen.add(node)
        return (node, *place)

    return _load(path, {"node": "q", "x_m": "d", "y_m": "d"}, parse, "mote, x in m, y in m")


def links_from_neighbors(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A link table out of neighbor observations (columns round, node, source; packet, lqi, rssi, power_dBm if any).

    Columns: transmitter, receiver, pdr, rounds (how many counted), and the means of lqi, rssi and power_dBm over what
    was heard. Every mote sends once a round, so the delivery ratio is counted, not guessed from the LQI: of the
    rounds in which the receiver's report is here and somebody heard the transmitter, the share in which the receiver
    did. A report with a gap in its packet numbers was lost in part and does not count. Links never heard have pdr 0.
    """
    wanted = ("round", "node", "source")
    measures = [name for name in ("lqi", "rssi", "power_dBm") if name in frame.columns]
    lacking = [name for name in wanted if name not in frame.columns]
    if lacking:
        raise DataError(f"The neighbor observations have no column {lacking[0]!r}; they need {', '.join(wanted)}.")
    reports = _whole_reports(frame)
    sent = frame[["source", "round"]].drop_duplicates()
    trials = reports.merge(sent, on="round")
    trials = trials[trials["node"] != trials["source"]].groupby(["source", "node"]).size().rename("rounds")
    heard = frame.merge(reports, on=["node", "round"]).drop_duplicates(["source", "node", "round"])
    of_links = heard.groupby(["source", "node"])
    means = of_links[measures].mean().assign(count=of_links.size())
    links = trials.to_frame().join(means).reset_index()
    links["pdr"] = (links["count"].fillna(0) / links["rounds"]).round(6)
    links = links.rename(columns={"source": "transmitter", "node": "receiver"})
    return links[["transmitter", "receiver", "pdr", "rounds", *measures]]


def _whole_reports(frame: "pd.DataFrame") -> "pd.DataFrame":
    """(node, round) of the reports whose packet numbers run from 0 without a gap; all if there are none."""
    if "packet" not in frame.columns:
        return frame[["node", "round"]].drop_duplicates()
    packets = frame.groupby(["node", "round"])["packet"].agg(["max", "nunique"])
    return packets[packets["nunique"] == packets["max"] + 1].index.to_frame(index=False)


def _path_of(file: DataFile) -> Path | None:
    candidates = (folder / path for folder in folder_candidates() for path in file.paths)
    return next((path for path in candidates if path.is_file()), None)


def _is_the_known_one(file: DataFile, path: Path) -> bool:
    if file.sha256 is None:
        return True
    with open(path, "rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest() == file.sha256


def _load(
    path: str | os.PathLike[str], columns: dict[str, str], parse: Callable[[list[bytes]], Iterable[Any]], form: str
) -> "pd.DataFrame":
    """A DataFrame of the lines that ``parse`` can read: ``columns`` {name: "d" float or "q" int}."""
    import numpy as np
    import pandas as pd

    data = {name: array(kind) for name, kind in columns.items()}
    lines = skipped = 0
    first_skipped = ""
    for number, fields in _lines(path):
        lines += 1
        try:
            values = tuple(parse(fields))
        except (ValueError, OverflowError) as error:
            skipped += 1
            first_skipped = first_skipped or f"line {number}: {error}"
            continue
        for column, value in zip(data.values(), values, strict=True):
            column.append(value)
    if (lines - skipped) * 20 < max(lines, 1):
        example = f" ({first_skipped:.120})" if first_skipped else " (it is empty)"
        raise DataError(f"{Path(path).name} is not in the format expected{example}; its lines should have {form}.")
    frame = pd.DataFrame({name: np.array(column) for name, column in data.items()})
    frame.attrs.update(lines=lines, skipped=skipped, first_skipped=first_skipped)
    return frame


def _lines(path: str | os.PathLike[str]) -> Iterable[tuple[int, list[bytes]]]:
    """(number, fields) of the lines that are not blank; a no-break space separates as a blank does."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                fields = line.replace(b"\xc2\xa0", b" ").replace(b"\xa0", b" ").split()
                if fields:
                    yield number, fields
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{os.fspath(path)!r} cannot be read ({reason}); give the path of a text file.") from error


_WHOLE = re.compile(rb"[0-9]{1,15}")
_DECIMAL = re.compile(rb"[+-]?[0-9]{1,12}([.,][0-9]{1,15})?([eE][+-]?[0-9]{1,2})?")
_GROUP = re.compile(rb"[0-9]{3}")


def _join_groups(fields: list[bytes], count: int, index: int) -> list[bytes]:
    """``count`` fields out of more, when the one at ``index`` was written in groups of three digits."""
    groups = len(fields) - count
    if groups == 0:
        return fields
    rest = fields[index + 1 : index + 1 + groups]
    if groups < 0 or not re.fullmatch(rb"[0-9]{1,3}", fields[index]) or not all(map(_GROUP.fullmatch, rest)):
        raise ValueError(f"it has {len(fields)} columns, not {count}")
    return [*fields[:index], b"".join((fields[index], *rest)), *fields[index + 1 + groups :]]


def _exactly(fields: list[bytes], count: int) -> list[bytes]:
    if len(fields) != count:
        raise ValueError(f"it has {len(fields)} columns, not {count}")
    return fields


def _whole(field: bytes) -> int:
    if not _WHOLE.fullmatch(field):
        raise ValueError(f"{field[:40]!r} is no whole number")
    return int(field)


def _node(field: bytes) -> int:
    node = _whole(field)
    if node > 2**31 - 1:
        raise ValueError(f"{node} is no node")
    return node


def _byte(field: bytes) -> int:
    value = _whole(field)
    if value > 255:
        raise ValueError(f"{value} is no byte")
    return value


def _decimal(field: bytes) -> float:
    if not _DECIMAL.fullmatch(field):
        raise ValueError(f"{field[:40]!r} is no number")
    return float(field.replace(b",", b"."))


def _lqi(logged: int) -> int:
    return 383 - logged if logged > 128 else 128 - logged


def _power_dBm(logged: int) -> int:
    return (logged - 256 if logged > 127 else logged) - 45
