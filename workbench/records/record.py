"""The record of a run (scenario, results and versions), and its text: one line of JSON, compressed if it is long."""

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
from workbench.locations import local_path
from workbench.protocols.protocol import Protocol
from workbench.records import carriers

if TYPE_CHECKING:
    from workbench.sim.run import Run


FORMAT = "workbench-record"
VERSION = 1
LIBRARIES = ("numpy", "numba")
PACKED = "deflated:"
LONGEST_PLAIN = 100_000  # characters of a text that stays readable; a longer one is compressed
LARGEST_B = 1 << 28  # of a compressed text, after decompression


def record_of(run: Run) -> dict[str, Any]:
    """Return the record of a run (its scenario and results), from which the run can be repeated.

    `workbench.records` lists the fields.

    The trace's digest and the metrics are computed unless the run already has them.
    """
    return add_digest({"of": "run", **fields_of_run(run), **surroundings([run.scenario.protocol])})


def record_of_runs(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Return the record for a figure that compares ``runs``, {name: run}; the runs can be repeated from it."""
    fields = [{"name": name, **fields_of_run(run)} for name, run in runs.items()]
    return add_digest({"of": "runs", "runs": fields, **surroundings([run.scenario.protocol for run in runs.values()])})


def fields_of_run(run: Run) -> dict[str, Any]:
    """Return the fields that describe a run in its record: scenario, engine, trace hash and metrics."""
    scenario = run.scenario
    fields = {"scenario": json.loads(scenario.to_json()), "scenario_hash": scenario.hash, "engine": run.engine}
    if run.has_trace:
        fields |= {"trace_hash": run.trace_hash, "trace_rows": len(run.trace)}
    return fields | {"metrics": plain_metrics(run.metrics)}


def plain_metrics(metrics: Any) -> dict[str, float | str | None]:
    """Return metrics as values of strict JSON: None for NaN, the texts "inf" and "-inf" for infinities."""
    return {str(name): _to_json_number(float(value)) for name, value in metrics.items()}


def _to_json_number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


def save(run: Run, folder: str | Path) -> Path:
    """Write scenario.json, metrics.json, record.json and (if there is a trace) trace.parquet into a folder.

    record.json names the versions, the engine and the hashes; `wb.reproduce` accepts the folder. Returns the folder.
    """
    folder = local_path(folder, "folder")
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

    pq.write_table(carriers.add_to_table(run.trace, to_text(record_of(run))), where, write_page_checksum=True)


def surroundings(protocols: Iterable[Protocol]) -> dict[str, Any]:
    """Return the versions, code digests and platform with which this process runs these protocols.

    The keys are versions, code (digests of the package's folders), user_code (if any) and platform.
    """
    protocols = list(protocols)
    return _describe_environment(
        {folder: digest for protocol in protocols for folder, digest in package_digests(protocol).items()}, protocols
    )


def surroundings_for(record: Mapping[str, Any], protocol: Protocol) -> dict[str, Any]:
    """Return the versions, code digests and platform of this process, to compare them with those in ``record``.

    Code digests are computed for the folders of the package that ``record`` lists, and for the user's code in
    ``protocol``.
    """
    folders = record.get("code")
    return _describe_environment(digests_of_folders(folders if isinstance(folders, Mapping) else ()), [protocol])


def _describe_environment(package_code: Mapping[str, str], protocols: Iterable[Protocol]) -> dict[str, Any]:
    user_code = {name: origin for protocol in protocols for name, origin in user_digests(protocol).items()}
    return {
        "versions": versions(),
        "code": dict(sorted(package_code.items())),
        **({"user_code": dict(sorted(user_code.items()))} if user_code else {}),
        "platform": f"{platform.system()} {platform.machine()}",
    }


@cache
def versions() -> dict[str, str]:
    """Return {name: version} of the workbench, Python, and the libraries that can affect results."""
    from workbench import __version__

    own_versions = {"workbench": __version__, "python": platform.python_version()}
    return own_versions | {name: _find_version(name) for name in LIBRARIES}


def _find_version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"


# Text


def add_digest(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a complete record: the fields of ``content``, with format, version and the record's digest added."""
    record = {"format": FORMAT, "version": VERSION, **content}
    return {**record, "digest": _compute_digest(record)}


def _compute_digest(record: Mapping[str, Any]) -> str:
    digested_fields = {name: value for name, value in record.items() if name != "digest"}
    text = json.dumps(digested_fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def to_text(record: Mapping[str, Any]) -> str:
    """Return a record of runs as one line of ASCII; equal records give equal texts."""
    text = json.dumps(record, separators=(",", ":"))
    if len(text) <= LONGEST_PLAIN:
        return text
    return PACKED + base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def from_text(text: str) -> dict[str, Any]:
    """Return the record of runs from its text, as `to_text` writes it.

    Raises DataError for other texts and for a changed record.
    """
    try:
        record = json.loads(_decompress_text(text) if text.startswith(PACKED) else text)
    except (ValueError, RecursionError, zlib.error):
        raise DataError("the record cannot be read: it is damaged or cut short") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError("the record is not valid JSON of a workbench record")
    if record.get("version") != VERSION:
        raise DataError(f"the record has version {record.get('version')!r:.20}; this workbench reads version {VERSION}")
    if record.get("digest") != _compute_digest(record):
        raise DataError("the record does not match its digest: the file was changed later, or is damaged")
    return record


def _decompress_text(text: str) -> str:
    inflate = zlib.decompressobj()
    data = inflate.decompress(base64.b64decode(text.removeprefix(PACKED), validate=True), LARGEST_B)
    if not inflate.eof:
        raise ValueError(f"the compressed record is cut short, or has more than {LARGEST_B:,} bytes")
    return data.decode()


def package_digests(protocol: Protocol) -> dict[str, str]:
    """Return {folder of the package: digest of its code} for the folders that a run of the protocol executes.

    A key is a folder's path in the package, such as "sim" or "protocols/NAME". The key "protocols" stands for the
    modules directly in that folder, "draws" for the modules in the package's root.
    """
    from workbench.sweeps import code, user_code

    pieces = [user_code.piece(name, code_object) for name, code_object in user_code.of(protocol).items()]
    protocol_folders = code.sources_of(code.folders_of(protocol, pieces))
    return digests_of_folders((*code.GENERIC, *(f"protocols/{name}" for name in sorted(protocol_folders))))


def digests_of_folders(folders: Iterable[str]) -> dict[str, str]:
    """Return {folder: digest of its code} for these folders of the package; missing folders are left out."""
    return {folder: digest for folder in folders if (digest := _folder_digest(folder))}


@cache
def _folder_digest(folder: str) -> str:
    """Return the digest (12 hex digits) of the code in a folder of the package, or "" if the folder does not exist."""
    from workbench.sweeps import code

    content = code.sources(folder)
    return "" if content is None else hashlib.sha256(content).hexdigest()[:12]


def user_digests(protocol: Protocol) -> dict[str, dict[str, str]]:
    """Return {name: {"module": its module, "digest": its digest}} for the user's own code that a protocol uses.

    A name begins with the kind of code, such as "protocol my_module:MyProtocol".
    """
    from workbench.sweeps import user_code

    return {name: _describe_origin(name, code_object) for name, code_object in user_code.of(protocol).items()}


def _describe_origin(name: str, code_object: Any) -> dict[str, str]:
    from workbench.sweeps import user_code

    return {"module": getattr(code_object, "__module__", None) or "", "digest": user_code.digest({name: code_object})}
