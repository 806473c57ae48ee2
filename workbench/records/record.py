"""The record of a run, and records as text: one line of JSON, or that line compressed if it is long."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import platform
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from workbench.errors import DataError
from workbench.protocols.protocol import Protocol
from workbench.records import carriers

if TYPE_CHECKING:
    from workbench.sim.run import Run


FORMAT = "workbench-record"
VERSION = 1
LIBRARIES = ("numpy", "numba")
PACKED = "deflated:"
LONGEST_PLAIN = 100_000  # characters of a text that stays readable; a longer one is compressed
LARGEST_B = 1 << 28  # of a text that was compressed


def record_of(run: Run) -> dict[str, Any]:
    """The record of a run: the page of `workbench.records` says what is in it.

    The trace is digested and the metrics are worked out for it, if nobody has asked for them before.
    """
    return sealed({"of": "run", **told_of(run), **surroundings([run.scenario.protocol])})


def record_of_runs(runs: Mapping[str, Run]) -> dict[str, Any]:
    """The record of several runs by their names, for a figure that compares them."""
    told = [{"name": name, **told_of(run)} for name, run in runs.items()]
    return sealed({"of": "runs", "runs": told, **surroundings([run.scenario.protocol for run in runs.values()])})


def told_of(run: Run) -> dict[str, Any]:
    """What a record says of one run alone."""
    scenario = run.scenario
    told = {"scenario": json.loads(scenario.to_json()), "scenario_hash": scenario.hash, "engine": run.engine}
    if run.has_trace:
        told |= {"trace_hash": run.trace_hash, "trace_rows": len(run.trace)}
    return told | {"metrics": plain_metrics(run.metrics)}


def plain_metrics(metrics: Any) -> dict[str, float | str | None]:
    """Metrics as strict JSON has them: None for what is not a number, "inf" and "-inf" as texts."""
    return {str(name): _plain(float(value)) for name, value in metrics.items()}


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


def save(run: Run, folder: str | Path) -> Path:
    """Write scenario.json, metrics.json, record.json and (if there is a trace) trace.parquet into a folder.

    record.json says which versions and engine made them, and with which hashes; `wb.reproduce` takes the folder.
    Returns the folder.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scenario.json").write_text(run.scenario.to_json() + "\n")
    (folder / "metrics.json").write_text(run.metrics.to_json(indent=2) + "\n")
    (folder / "record.json").write_text(json.dumps(record_of(run), indent=2) + "\n")
    if run.has_trace:
        write_trace(run, folder / "trace.parquet")
    return folder


def write_trace(run: Run, where: Path | IO[bytes]) -> None:
    """Write the trace of a run as a Parquet file that carries the run's record and has checksums."""
    import pyarrow.parquet as pq

    pq.write_table(carriers.into_table(run.trace, to_text(record_of(run))), where, write_page_checksum=True)


def surroundings(protocols: Iterable[Protocol]) -> dict[str, Any]:
    """What runs of these protocols are made with here: versions, digests of code, platform."""
    protocols = list(protocols)
    return _surroundings(
        {room: digest for one in protocols for room, digest in package_digests(one).items()}, protocols
    )


def surroundings_for(record: Mapping[str, Any], protocol: Protocol) -> dict[str, Any]:
    """What there is here of what a record was made with, for a run of a protocol that it tells of."""
    rooms = record.get("code")
    return _surroundings(digests_of_rooms(rooms if isinstance(rooms, Mapping) else ()), [protocol])


def _surroundings(rooms: Mapping[str, str], protocols: Iterable[Protocol]) -> dict[str, Any]:
    theirs = {name: told for protocol in protocols for name, told in user_digests(protocol).items()}
    return {
        "versions": versions(),
        "code": dict(sorted(rooms.items())),
        **({"user_code": dict(sorted(theirs.items()))} if theirs else {}),
        "platform": f"{platform.system()} {platform.machine()}",
    }


@cache
def versions() -> dict[str, str]:
    """{name: version} of the workbench, of Python and of the libraries that results may depend on."""
    from workbench import __version__

    found = {"workbench": __version__, "python": platform.python_version()}
    return found | {name: _version(name) for name in LIBRARIES}


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"


# Text


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a record as a record: with its format in front and its digest behind."""
    record = {"format": FORMAT, "version": VERSION, **content}
    return {**record, "digest": _digest(record)}


def _digest(record: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in record.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def to_text(record: Mapping[str, Any]) -> str:
    """A record as ASCII, without line breaks; the same record is the same text."""
    text = json.dumps(record, separators=(",", ":"))
    if len(text) <= LONGEST_PLAIN:
        return text
    return PACKED + base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def from_text(text: str) -> dict[str, Any]:
    """The record of a text; DataError, which does not name the file, if it is none, or was changed."""
    try:
        record = json.loads(_unpacked(text) if text.startswith(PACKED) else text)
    except (ValueError, RecursionError, zlib.error):
        raise DataError("its record cannot be read: it is damaged or cut short") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError("what it has in place of a record is something else")
    if record.get("version") != VERSION:
        raise DataError(f"its record has version {record.get('version')!r:.20}; this workbench reads {VERSION}")
    if record.get("digest") != _digest(record):
        raise DataError("its record is not as it was written: somebody changed it, or it is damaged")
    return record


def _unpacked(text: str) -> str:
    inflate = zlib.decompressobj()
    data = inflate.decompress(base64.b64decode(text.removeprefix(PACKED), validate=True), LARGEST_B)
    if not inflate.eof:
        raise ValueError("longer than any record, or cut short")
    return data.decode()


def package_digests(protocol: Protocol) -> dict[str, str]:
    """{room: 12 hex digits} of the package's code that a run of a protocol goes through.

    "draws" stands for the modules of the package itself, "protocols" for the contract of nodes.
    """
    from workbench.sweeps import code, user_code

    pieces = [user_code.piece(name, thing) for name, thing in user_code.of(protocol).items()]
    folders = code.sources_of(code.folders_of(protocol, pieces))
    return digests_of_rooms((*code.GENERIC, *(f"protocols/{name}" for name in sorted(folders))))


def digests_of_rooms(rooms: Iterable[str]) -> dict[str, str]:
    """The digests of these rooms; those that the package does not have are left out, whatever their names are."""
    return {room: digest for room in rooms if (digest := _room_digest(room))}


@cache
def _room_digest(room: str) -> str:
    """12 hex digits; "" if there is no such room."""
    from workbench.sweeps import code

    content = code.sources(room)
    return "" if content is None else hashlib.sha256(content).hexdigest()[:12]


def user_digests(protocol: Protocol) -> dict[str, dict[str, str]]:
    """{name: {"module", "digest"}} of the user's code that a protocol calls; empty if there is none."""
    from workbench.sweeps import user_code

    return {name: _origin(name, thing) for name, thing in user_code.of(protocol).items()}


def _origin(name: str, thing: Any) -> dict[str, str]:
    from workbench.sweeps import user_code

    return {"module": getattr(thing, "__module__", None) or "", "digest": user_code.digest({name: thing})}
