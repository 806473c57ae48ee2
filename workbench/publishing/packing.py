"""The software of an artifact (wheel, pinned requirements) and its archive, with fixed dates and checksums."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from workbench.errors import DataError, WorkbenchError

DISTRIBUTION = "sensor-pubsub-workbench"
EXTRAS = ("publish",)  # of the workbench, which reproducing a paper needs
ONLY_FOR_AUTHORS = ("hatchling", "playwright")  # requirements of this extra that a check does not need
SUMS = "SHA256SUMS"
FIXED_DATE = (2020, 2, 2, 0, 0, 0)  # of files in archives; also hatchling's
EXECUTABLE, READABLE = 0o755, 0o644


# The wheel


def build_wheel(folder: Path) -> Path:
    """Write the wheel of this workbench into a folder, and return its path; equal code gives equal bytes.

    In a checkout, hatchling builds it. An installed workbench is packed again from its installed files. Raises
    WorkbenchError if this fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = Path(__file__).parents[2]
    if (root / "pyproject.toml").is_file():
        return _build_from_checkout(root, folder)
    return _pack_installed(folder)


def _build_from_checkout(root: Path, folder: Path) -> Path:
    if find_spec("hatchling") is None:
        raise WorkbenchError(
            "hatchling, which builds the wheel of a checkout, is missing: pip install 'hatchling>=1.26'"
        )
    before = set(folder.glob("*.whl"))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder.resolve())]
    result = subprocess.run(
        command, cwd=root, capture_output=True, text=True, env=_make_build_environment(), check=False
    )
    wheels = sorted(set(folder.glob("*.whl")) - before) or sorted(folder.glob("*.whl"))
    if result.returncode != 0 or not wheels:
        lines = (result.stderr or result.stdout).strip().splitlines() or ["no message"]
        raise WorkbenchError(f"hatchling could not build the wheel of {root}: {lines[-1]:.200}")
    return wheels[-1]


def _make_build_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}


def _pack_installed(folder: Path) -> Path:
    """Write the installed distribution into ``folder`` as a wheel, and return the wheel's path.

    Files that the installer added, such as INSTALLER, are left out.
    """
    distribution = importlib.metadata.distribution(DISTRIBUTION)
    added = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
    contents = {
        file.as_posix(): Path(str(distribution.locate_file(file))).read_bytes()
        for file in distribution.files or ()
        if ".." not in file.parts and "__pycache__" not in file.parts and file.name not in added
    }
    (metadata_file,) = [name for name in contents if name.endswith(".dist-info/METADATA")]
    record_name = metadata_file.replace("METADATA", "RECORD")
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    for name in sorted(contents):
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest()).rstrip(b"=").decode()
        writer.writerow((name, f"sha256={digest}", len(contents[name])))
    writer.writerow((record_name, "", ""))
    contents[record_name] = table.getvalue().encode()
    name = DISTRIBUTION.replace("-", "_")
    path = folder / f"{name}-{distribution.version}-py3-none-any.whl"
    _write_zip(path, ((entry, contents[entry], READABLE) for entry in sorted(contents)))
    return path


# Requirements


def pinned(imported: Iterable[str]) -> list[str]:
    """Return lines "name==version" of the distributions that reproducing a paper needs, sorted by name.

    These are the requirements of the workbench with its extras `EXTRAS`, the distributions in ``imported``, and the
    requirements of all of these. Distributions that are not installed here are left out.
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    versions: dict[str, str] = {}
    done: set[tuple[str, str]] = set()
    waiting = [(DISTRIBUTION, extra) for extra in ("", *EXTRAS)] + [(name, "") for name in imported]
    while waiting:
        name, extra = waiting.pop()
        if (canonicalize_name(name), extra) in done:
            continue
        done.add((canonicalize_name(name), extra))
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # a requirement of another platform, or one that is not installed
        versions[canonicalize_name(name)] = distribution.version
        for line in distribution.requires or ():
            requirement = Requirement(line)
            if requirement.name in ONLY_FOR_AUTHORS:
                continue
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(requirement.name, further) for further in ("", *sorted(requirement.extras))]
    own = canonicalize_name(DISTRIBUTION)
    return [f"{name}=={version}" for name, version in sorted(versions.items()) if name != own]


# Checksums and the archive


def write_sums(folder: Path, left_out: Iterable[str]) -> None:
    """Write checksums of all files in a folder except those in ``left_out`` into the file `SUMS`.

    The file has the format of the command sha256sum.
    """
    excluded = {*left_out, SUMS}
    lines = [f"{_compute_digest(folder / name)}  {name}" for name in _list_files(folder) if name not in excluded]
    (folder / SUMS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def changed_files(folder: Path) -> list[str]:
    """Return the names of files in a folder that are missing, or whose checksum differs from their line in `SUMS`.

    Raises DataError if the folder has no valid `SUMS`.
    """
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
        expected = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        raise DataError(f"{folder} has no valid {SUMS}; an artifact of `workbench publish` has this file") from None
    return [
        name
        for name, digest in expected.items()
        if not (folder / name).is_file() or _compute_digest(folder / name) != digest
    ]


def write_archive(folder: Path, path: Path) -> None:
    """Write all files of a folder as a ZIP file, in the order of their names and with a fixed date.

    Equal files give equal bytes, with the same version of zlib. In the ZIP file, the files are in a folder named after
    the archive, without ".zip".
    """
    top = path.name.removesuffix(".zip")
    entries = (
        (f"{top}/{name}", (folder / name).read_bytes(), EXECUTABLE if name.endswith(".sh") else READABLE)
        for name in _list_files(folder)
    )
    temporary = path.with_name(f".{path.name}.part")
    _write_zip(temporary, entries)
    temporary.replace(path)


def _write_zip(path: Path, entries: Iterable[tuple[str, bytes, int]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in entries:
            entry = zipfile.ZipInfo(name, FIXED_DATE)
            entry.create_system = 3  # Unix, so that the mode counts
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, compresslevel=9)


def _list_files(folder: Path) -> Iterator[str]:
    return iter(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))


def _compute_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
