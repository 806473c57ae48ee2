"""`check` executes the notebook of an artifact again, and compares the claims."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import DataError, ParameterError
from workbench.publishing import descriptions, packing, pages
from workbench.publishing.artifact import CLAIMS, FORMAT, MEASURED, VERSION, claims_document, run_in_copy
from workbench.publishing.collecting import REPORT
from workbench.publishing.execution import Report, clean_outputs, to_stderr
from workbench.publishing.paper import read_paper
from workbench.records.record import versions
from workbench.records.verdicts import MARKS, differences_of


@dataclass(frozen=True)
class Check:
    """The outcome of a check: the recorded claims, and how another execution differs from them.

    claims        the recorded claims, as in claims.json
    differences   sentences on claims that differ; empty if all are the same
    changed       names of files of the artifact that were changed after its publication
    made_with     sentences on versions with which the authors made the artifact, if they differ from those here
    measured      minutes and peak memory of this execution
    """

    claims: Sequence[Mapping[str, Any]]
    differences: Sequence[str]
    changed: Sequence[str]
    made_with: Sequence[str]
    measured: Mapping[str, Any]

    @property
    def is_same(self) -> bool:
        """True if no claim differs."""
        return not self.differences

    def lines(self) -> list[str]:
        """Return the outcome as lines of text: each claim, then the differences, and a verdict at the end."""
        lines = [f"  {MARKS.get(claim['verdict'], '')} {claim['verdict']}: {claim['claim']}" for claim in self.claims]
        lines += [f"  made with {sentence}" for sentence in self.made_with]
        lines += [f"  changed since its publication: {name}" for name in self.changed]
        lines += [f"  differs: {sentence}" for sentence in self.differences]
        time = f"{self.measured['minutes']:g} min, {self.measured['peak_memory_MB']:,} MB"
        count = len(self.claims)
        if not count:
            return [*lines, f"no claims to compare: the notebook was executed without an error ({time})"]
        verdict = f"{_format_count(len(self.differences), 'difference')} in {_format_count(count, 'claim')}"
        if self.is_same:
            verdict = f"all {count} claims are the same" if count > 1 else "the claim is the same"
        return [*lines, f"{verdict} ({time})"]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def check(artifact: str | Path, out: str | Path | None = None, report: Report = to_stderr) -> Check:
    """Execute the notebook of an artifact with this workbench, and compare its claims with the recorded ones.

    artifact   the folder or the ZIP file of an artifact. Its notebook is code of its authors, which is executed
    out        a folder for claims.json, paper.html and the figures of this execution; None: they are not kept
    report     a function that gets a line of text for each step

    Raises ParameterError or DataError for a path that is not an artifact, and NotebookError if a cell fails.
    """
    path = Path(artifact)
    with ExitStack() as stack:
        folder = path
        if path.is_file():
            folder = _unpack_artifact(
                path, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-check-")))
            )
        document = read_claims(folder)
        changed = packing.changed_files(folder)
        report(f"{path}: {document['title']}")
        paper = read_paper(folder / document["notebook"])
        collected = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-check-")))
        values = document.get("parameters", {})
        execution = run_in_copy(paper, folder / Path(document["notebook"]).parent, collected, values, report)
        (collected / REPORT).unlink()
        claims = execution.report["claims"]
        if out is not None:
            clean_outputs(execution.notebook)
            (collected / "paper.html").write_text(pages.page_of(execution.notebook, paper), encoding="utf-8")
            here = claims_document(paper, claims, values, execution.measured["python"])
            (collected / CLAIMS).write_text(descriptions.to_json(here), encoding="utf-8")
            (collected / MEASURED).write_text(descriptions.to_json(dict(execution.measured)), encoding="utf-8")
            shutil.copytree(collected, out, dirs_exist_ok=True)
    recorded = document["claims"]
    return Check(
        recorded,
        differences_of(recorded, claims),
        changed,
        _differing_versions(document.get("versions", {})),
        execution.measured,
    )


def read_claims(folder: Path) -> dict[str, Any]:
    """Return the content of claims.json in the folder of an artifact.

    Raises ParameterError if the folder does not exist, and DataError if it has no valid claims.json.
    """
    if not folder.is_dir():
        raise ParameterError(f"{folder} does not exist; give the folder or the ZIP file of an artifact")
    try:
        document = json.loads((folder / CLAIMS).read_text(encoding="utf-8"))
    except OSError:
        raise DataError(f"{folder} has no {CLAIMS}; it is not an artifact of `workbench publish`") from None
    except ValueError:
        raise DataError(f"{folder / CLAIMS} is not valid JSON: it is damaged or cut short") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DataError(f"{folder / CLAIMS} does not have the format {FORMAT}")
    if document.get("version") != VERSION:
        raise DataError(f"{folder / CLAIMS} has version {document.get('version')!r}; this workbench reads {VERSION}")
    notebook = Path(str(document.get("notebook", "")))
    if notebook.is_absolute() or ".." in notebook.parts or not isinstance(document.get("claims"), list):
        raise DataError(f"{folder / CLAIMS} is damaged: its notebook or its claims are invalid")
    return document


def _unpack_artifact(path: Path, folder: Path) -> Path:
    """Extract the ZIP file of an artifact into a folder, and return the folder with its files."""
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)  # removes ".." and "/" from names
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{path} is not a valid ZIP file: {error}") from None
    inner = [entry for entry in folder.iterdir() if entry.is_dir()]
    return inner[0] if len(inner) == 1 and not (folder / CLAIMS).is_file() else folder


def _differing_versions(recorded: Mapping[str, str]) -> list[str]:
    here = versions()
    return [
        f"{name} {version}, here {here[name]}"
        for name, version in recorded.items()
        if here.get(name, version) != version
    ]
