"""`publish` executes a notebook and puts its artifact together."""

from __future__ import annotations

import ast
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import ParameterError
from workbench.publishing import descriptions, packing, pages
from workbench.publishing.collecting import FIGURES, REPORT
from workbench.publishing.execution import Execution, Report, clean_outputs, execute, to_stderr
from workbench.publishing.paper import Paper, copy_files, python_of, read_paper
from workbench.records.record import versions
from workbench.suggestion import meant

FORMAT, VERSION = "workbench-claims", 1
CLAIMS, MEASURED, NOTEBOOK = "claims.json", "measured.json", "notebook"
TEMPLATE = "template.ipynb"


@dataclass(frozen=True)
class Artifact:
    """A written artifact.

    folder, archive   its folder and its ZIP file
    claims            the claims of the notebook, as in claims.json
    measured          minutes, peak memory and machine, as in measured.json
    problems          sentences on what the author should add or know
    """

    folder: Path
    archive: Path
    claims: Sequence[Mapping[str, Any]]
    measured: Mapping[str, Any]
    problems: Sequence[str]


def publish(
    notebook: str | Path,
    out: str | Path,
    *,
    parameters: Mapping[str, Any] | None = None,
    small: bool = False,
    pdf: bool = True,
    released: str = "",
    report: Report = to_stderr,
) -> Artifact:
    """Execute a notebook and write its artifact into the folder ``out`` and the ZIP file beside it.

    parameters   {name: value} that replace parameters of the notebook, in its cell with the tag "parameters"
    small        whether to make a draft in less time, with the notebook's small values for tests, if it has any. They
                 are in the metadata of the cell of parameters, as "nbmake": {"mock": {"seeds": 2}}
    pdf          whether to print paper.pdf, which needs Chromium
    released     the day of the release, as 2026-11-29; "" means the day in the metadata, else that of the last commit,
                 else today
    report       a function that gets a line of text for each step

    An earlier artifact in ``out`` is replaced when the new one is complete. Raises ParameterError for an invalid
    notebook, parameter or folder, NotebookError if a cell fails, and WorkbenchError if a tool is missing.
    """
    path, out = Path(notebook), Path(out)
    paper = read_paper(path, released)
    values = _merge_parameters(paper, dict(parameters or {}), small)
    _check_output_folder(out)
    chromium = pages.check_tools() if pdf else None
    out.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        report(f"{path}: {paper.title}")
        copy_files(paper, part / NOTEBOOK)
        _describe_paper(paper, part)
        execution = run_in_copy(paper, part / NOTEBOOK, part, values, report)
        figures, claims = _index_figures(part, execution)
        document = claims_document(paper, claims, values, execution.measured["python"])
        (part / CLAIMS).write_text(descriptions.to_json(document), encoding="utf-8")
        clean_outputs(execution.notebook)
        (part / "paper.html").write_text(pages.page_of(execution.notebook, paper), encoding="utf-8")
        if chromium is not None:
            report("paper.pdf")
            pages.print_page(part / "paper.html", part / "paper.pdf", paper, chromium)
        _describe_execution(paper, part, execution, claims, figures, has_pdf=chromium is not None)
        part.chmod(0o755)
        archive = out.with_name(f"{out.name}.zip")
        packing.write_archive(part, archive)
        if out.exists():
            shutil.rmtree(out)
        part.replace(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    problems = [*paper.problems, *execution.report["problems"], *pages.formulas_left(paper)]
    if small and paper.small_parameters:
        problems.append("the results are a draft: they were computed with the notebook's small parameters")
    elif small:
        problems.append("the notebook has no small parameters (nbmake.mock in a cell's metadata), so it ran in full")
    problems += [] if claims else ["no claims: wb.claim(text, holds) in the notebook records them"]
    return Artifact(out, archive, claims, execution.measured, tuple(problems))


def run_in_copy(paper: Paper, source: Path, collected: Path, values: Mapping[str, Any], report: Report) -> Execution:
    """Execute the notebook in a copy of the folder ``source``, so that files that it writes stay out of the artifact.

    ``collected``: the folder that gets the figures. ``values``: {name: value} that replace parameters of the notebook.
    """
    with tempfile.TemporaryDirectory(prefix="workbench-publish-") as copy:
        folder = Path(copy, NOTEBOOK)
        shutil.copytree(source, folder)
        return execute(paper, folder, collected, values, report)


def claims_document(
    paper: Paper, claims: Sequence[Mapping[str, Any]], values: Mapping[str, Any], python: str
) -> dict[str, Any]:
    """Return the content of claims.json.

    Its keys are format, version, title, notebook (the file), parameters (those that were replaced), versions, and
    claims. Each claim has the fields of `Claim.to_dict` and "drawings", the files in figures/ that show the same data.

    ``values``: {name: value} of the replaced parameters. ``python``: the version of Python that executed the notebook.
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": paper.title,
        "notebook": f"{NOTEBOOK}/{paper.path.name}",
        "parameters": dict(values),
        "versions": versions() | {"python": python},
        "claims": list(claims),
    }


def _merge_parameters(paper: Paper, values: dict[str, Any], small: bool) -> dict[str, Any]:
    values = (paper.small_parameters if small else {}) | values
    if values and paper.parameters_index is None:
        raise ParameterError(f'{paper.path} has no cell with the tag "parameters", so it has no parameters to replace')
    known = _find_assigned_names(paper)
    for name in values:
        if name not in known:
            raise ParameterError(
                f"{paper.path} has no parameter {name!r}{meant(name, known)}; its parameters are {', '.join(known)}"
            )
    try:
        # The values of a check are read from claims.json, so those of this execution are read from the same text.
        return dict(json.loads(json.dumps(values)))
    except TypeError as error:
        raise ParameterError(
            f"--parameter: {error}; a value must be a number, a text, a list or a dictionary"
        ) from None


def _find_assigned_names(paper: Paper) -> list[str]:
    """Return the names of the variables that the cell with the tag "parameters" assigns; [] without such a cell."""
    if paper.parameters_index is None:
        return []
    try:
        tree = ast.parse(python_of(paper.notebook.cells[paper.parameters_index].source))
    except SyntaxError:
        return []
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return list(dict.fromkeys(names))


def _check_output_folder(out: Path) -> None:
    if out.name in ("", ".."):
        raise ParameterError(f"--out is {str(out)!r}; give a folder with a name, such as artifact")
    if out.is_file():
        raise ParameterError(f"--out {out} is a file; give a folder")
    if out.is_dir() and any(out.iterdir()) and not _is_artifact(out):
        raise ParameterError(
            f"--out {out} has files, but is not an artifact; give a new folder, or the folder of an artifact"
        )


def _is_artifact(folder: Path) -> bool:
    claims = folder / CLAIMS
    return claims.is_file() and (folder / packing.SUMS).is_file() and f'"{FORMAT}"' in claims.read_text("utf-8")


def _index_figures(part: Path, execution: Execution) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return (figures, claims) of an execution, and write the index of the figures into the artifact's folder ``part``.

    Each claim gets the list "drawings" of the figures' files that show its data.
    """
    (part / REPORT).unlink()
    figures = list(execution.report["figures"])
    claims = []
    for claim in execution.report["claims"]:
        hashes = {
            str(item[name]) for item in claim["evidence"] for name in ("trace_hash", "rows_digest") if name in item
        }
        drawings = [file for figure in figures if hashes & set(figure["hashes"]) for file in figure["files"]]
        claims.append(claim | {"drawings": drawings})
    if figures:
        index = [{name: figure[name] for name in ("files", "title", "cell", "hashes")} for figure in figures]
        (part / FIGURES / "index.json").write_text(descriptions.to_json(index), encoding="utf-8")
    return figures, claims


def _describe_paper(paper: Paper, part: Path) -> None:
    """Write the files of the artifact that do not depend on the execution, such as the wheel, into the folder ``part``.

    They are written before the execution, so that an author does not wait for an error.
    """
    packing.build_wheel(part / "dist")
    _write_texts(
        part,
        {
            "LICENSE": descriptions.code_license(),
            "LICENSE-text.md": descriptions.text_license(paper),
            "CITATION.cff": descriptions.citation(paper),
            ".zenodo.json": descriptions.zenodo(paper),
        },
    )


def _describe_execution(
    paper: Paper,
    part: Path,
    execution: Execution,
    claims: Sequence[Mapping[str, Any]],
    figures: Sequence[Any],
    *,
    has_pdf: bool,
) -> None:
    """Write the files that depend on the execution into the folder ``part``, then those that list all files."""
    python = execution.measured["python"]
    _write_texts(
        part,
        {
            "requirements.txt": "\n".join(packing.pinned(execution.report["distributions"])) + "\n",
            "README.md": descriptions.readme(paper, claims, python, len(figures), has_pdf=has_pdf),
            "reproduce.sh": descriptions.reproduce_script(paper, python),
            MEASURED: descriptions.to_json(dict(execution.measured)),
        },
    )
    (part / "reproduce.sh").chmod(0o755)
    crate = descriptions.crate(paper, part, python, left_out=(MEASURED,))
    (part / "ro-crate-metadata.json").write_text(crate, encoding="utf-8")
    packing.write_sums(part, left_out=(MEASURED,))


def _write_texts(part: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (part / name).write_text(text, encoding="utf-8")


def write_template(path: str | Path) -> Path:
    """Write a template for a paper's notebook, and return its path. Raises ParameterError if the file exists."""
    path = Path(path)
    if path.suffix != ".ipynb":
        raise ParameterError(f"--template {path}: the name of a notebook must end in .ipynb")
    if path.exists():
        raise ParameterError(f"--template {path}: the file exists; give another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(__file__).with_name(TEMPLATE), path)
    return path
