"""A paper: a notebook, the description in its metadata, and the files that it needs.

The metadata of the notebook describe the paper (in JupyterLab: Property Inspector, Advanced Tools, Notebook Metadata):

    title      title; without it, the first heading of the notebook is used
    authors    a list of {"given-names", "family-names", "affiliation", "orcid"}, or of {"name"} for a group
    paper      an object with the fields of `FIELDS`, all of them optional
"""

from __future__ import annotations

import ast
import glob
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import nbformat

from workbench.errors import ParameterError
from workbench.suggestion import meant

AUTHOR = ("given-names", "family-names", "name", "affiliation", "orcid")
FIELDS = {
    "abstract": "a paragraph; without it, the first paragraph of the notebook",
    "date": "the day of the release, as 2026-11-29; without it, that of the last commit of the notebook, else today",
    "version": "the version of the artifact; without it, that of the workbench",
    "keywords": "a list of words",
    "doi": "the DOI of the artifact, once an archive has reserved it",
    "text_license": "SPDX identifier of the license of text and figures, such as CC-BY-4.0; default: that of the code",
    "files": "a list of patterns, relative to the notebook, of files that the notebook reads",
    "references": "a list of references to literature, in the form of CITATION.cff",
}
_ORCID = re.compile(r"(?:https://orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])")
_DOI = re.compile(r"10\.\d{4,9}/\S+")
PARAMETERS = "parameters"  # tag of the cell with a notebook's parameters
_NOT_COPIED = ("__pycache__", ".ipynb_checkpoints")


@dataclass(frozen=True)
class Paper:
    """A notebook and its description: the fields of `FIELDS`, and the following ones.

    path       the file of the notebook
    notebook   its content, as `nbformat` reads it, without outputs
    authors    the authors, each with fields of `AUTHOR`
    license    SPDX identifier of the text's license; "" means the license of the code
    patterns   patterns of files that the notebook reads
    problems   sentences on what the author should add
    """

    path: Path
    notebook: Any
    title: str
    authors: tuple[Mapping[str, str], ...]
    abstract: str
    date: str
    version: str
    keywords: tuple[str, ...]
    doi: str
    license: str
    references: tuple[Mapping[str, Any], ...]
    patterns: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def small_parameters(self) -> dict[str, Any]:
        """Values of parameters with which the notebook runs quickly, from ``nbmake.mock`` in their cell's metadata."""
        return small_parameters(self.notebook)

    @property
    def parameters_index(self) -> int | None:
        """The index of the cell with the tag "parameters", or None."""
        tagged = [PARAMETERS in cell.metadata.get("tags", ()) for cell in self.notebook.cells]
        return tagged.index(True) if True in tagged else None


def small_parameters(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Return {name: value} of the parameters with which a notebook runs quickly, for a test; may be empty."""
    mocks = [cell["metadata"].get("nbmake", {}).get("mock", {}) for cell in notebook["cells"]]
    return {name: value for mock in mocks for name, value in mock.items()}


def read_paper(path: Path, released: str = "") -> Paper:
    """Return the paper in a notebook's file.

    ``released``: the day of the release, as 2026-11-29; "" means the day in the metadata, else that of the last commit,
    else today. Raises ParameterError, with the file's name, for a file that is not a notebook, or for invalid metadata.
    """
    from workbench import __version__

    notebook = _read_notebook(path)
    metadata = json.loads(json.dumps(notebook.metadata))
    fields = metadata.get("paper", {})
    if not isinstance(fields, Mapping):
        raise ParameterError(f"{path}: metadata.paper is {fields!r:.40}; it must be an object")
    for name in fields:
        if name not in FIELDS:
            raise ParameterError(
                f"{path}: metadata.paper has the field {name!r}{meant(name, FIELDS)}; its fields are "
                f"{', '.join(FIELDS)}"
            )
    for name in ("keywords", "files", "references"):
        _check_list(path, f"paper.{name}", fields.get(name, []))
    _check_list(path, "authors", metadata.get("authors", []))
    for reference in fields.get("references", ()):
        if not isinstance(reference, Mapping) or not {"type", "title", "authors"} <= set(reference):
            raise ParameterError(
                f"{path}: metadata.paper.references has {reference!r:.60}; a reference has the fields of CITATION.cff: "
                "type, title, authors, ..."
            )
    title, abstract = _find_heading_and_paragraph(notebook)
    title = str(metadata.get("title") or title)
    authors = tuple(_check_author(path, author) for author in metadata.get("authors", ()))
    problems = [] if authors else ['no authors: add "authors" to the metadata of the notebook']
    if not title:
        raise ParameterError(f"{path}: the notebook has no title; begin it with a heading, or add metadata.title")
    doi = str(fields.get("doi", "")).removeprefix("https://doi.org/")
    if doi and not _DOI.fullmatch(doi):
        raise ParameterError(f"{path}: metadata.paper.doi is {doi!r}; a DOI has the form 10.5281/zenodo.1234567")
    return Paper(
        path=path,
        notebook=notebook,
        title=title,
        authors=authors,
        abstract=str(fields.get("abstract") or abstract),
        date=_check_date(
            path, released or str(fields.get("date", "")) or _find_last_commit_date(path) or str(date.today())
        ),
        version=str(fields.get("version") or __version__),
        keywords=tuple(map(str, fields.get("keywords", ()))),
        doi=doi,
        license=str(fields.get("text_license", "")),
        references=tuple(fields.get("references", ())),
        patterns=tuple(map(str, fields.get("files", ()))),
        problems=tuple(problems),
    )


def _read_notebook(path: Path) -> Any:
    if not path.is_file():
        nearby = sorted(path.parent.glob("*.ipynb")) if path.parent.is_dir() else []
        hint = meant(path.name, [notebook.name for notebook in nearby])
        raise ParameterError(f"{path} does not exist{hint}; give the file of a notebook, such as paper.ipynb")
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ParameterError(f"{path} is not a valid notebook: {reason[0]:.120}") from None
    for number, cell in enumerate(notebook.cells):
        cell.setdefault("id", f"cell-{number}")
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata.pop("widgets", None)
    return notebook


def _find_heading_and_paragraph(notebook: Any) -> tuple[str, str]:
    """Return (first heading, first paragraph) of a notebook as plain text; "" in place of one that is missing."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    blocks = [" ".join(block.split()) for text in texts for block in re.split(r"\n\s*\n", text) if block.strip()]
    headings = [block.lstrip("# ") for block in blocks if block.startswith("#")]
    paragraphs = [block for block in blocks if not block.startswith(("#", "|", "*   ", "- ", "!", "```"))]
    return _strip_markup(headings[0]) if headings else "", _strip_markup(paragraphs[0]) if paragraphs else ""


def _strip_markup(text: str) -> str:
    """Return a text without Markdown's markup of emphasis, code and links."""
    return re.sub(r"\*\*|`|<[^>]*>", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)).replace("*", "").strip()


def _check_list(path: Path, name: str, value: Any) -> None:
    if not isinstance(value, list):
        raise ParameterError(f"{path}: metadata.{name} is {value!r:.60}; it must be a list")


def _check_author(path: Path, author: Any) -> dict[str, str]:
    if not isinstance(author, Mapping) or not (author.get("name") or author.get("family-names")):
        raise ParameterError(
            f'{path}: metadata.authors has {author!r:.60}; an author is {{"given-names": ..., "family-names": ...}}'
        )
    for name in author:
        if name not in AUTHOR:
            raise ParameterError(
                f"{path}: metadata.authors has the field {name!r}{meant(name, AUTHOR)}; its fields are "
                f"{', '.join(AUTHOR)}"
            )
    checked = {name: str(author[name]) for name in AUTHOR if author.get(name)}
    if "orcid" in checked:
        match = _ORCID.fullmatch(checked["orcid"])
        if match is None or not _has_valid_check_digit(match[1]):
            raise ParameterError(
                f"{path}: metadata.authors has the ORCID {checked['orcid']!r}; an ORCID has the form "
                "0000-0002-1825-0097, whose last digit is a checksum"
            )
        checked["orcid"] = f"https://orcid.org/{match[1]}"
    return checked


def _has_valid_check_digit(orcid: str) -> bool:
    """Return whether the last digit of an ORCID is right (ISO 7064, MOD 11-2)."""
    digits = orcid.replace("-", "")
    total = 0
    for digit in digits[:-1]:
        total = (total + int(digit)) * 2
    return "0123456789X"[(12 - total % 11) % 11] == digits[-1]


def _check_date(path: Path, text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ParameterError(f"{path}: the date is {text!r}; write it as 2026-11-29") from None


def _find_last_commit_date(path: Path) -> str:
    """Return the day of the last commit that changed a file, or "" if this is not known."""
    command = ["git", "log", "-1", "--format=%cs", "--", path.name]
    try:
        result = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


# Files


def copy_files(paper: Paper, folder: Path) -> list[str]:
    """Copy a paper's notebook, without outputs, and the files that it needs into a folder; return their paths there.

    The notebook needs the modules and packages beside it that it imports, and the files that its metadata list. Raises
    ParameterError for a pattern without files, or a file outside of the notebook's folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / paper.path.name).write_text(write_notebook(paper.notebook), encoding="utf-8")
    base = paper.path.parent
    for source in sorted(set(_find_modules(paper)) | set(_listed_files(paper))):
        target = folder / source.relative_to(base)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def write_notebook(notebook: Any) -> str:
    """Return a notebook as JSON, in the form in which Jupyter writes it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _listed_files(paper: Paper) -> Iterator[Path]:
    base = paper.path.parent
    for pattern in paper.patterns:
        if pattern.startswith(("/", "~")) or ".." in Path(pattern).parts:
            raise ParameterError(
                f"{paper.path}: metadata.paper.files has {pattern!r}; files must be in the folder of the notebook"
            )
        matches = [Path(match) for match in glob.glob(str(base / pattern), recursive=True)]
        files = [
            file for match in matches for file in (match.rglob("*") if match.is_dir() else (match,)) if file.is_file()
        ]
        if not files:
            raise ParameterError(f"{paper.path}: metadata.paper.files has {pattern!r}, which matches no file")
        yield from (file for file in files if not _is_left_out(file))


def _is_left_out(path: Path) -> bool:
    return any(part in _NOT_COPIED for part in path.parts)


def _find_modules(paper: Paper) -> Iterator[Path]:
    """Yield the files of the modules and packages in the notebook's folder that it imports, directly or indirectly."""
    base = paper.path.parent
    sources = [python_of(cell.source) for cell in paper.notebook.cells if cell.cell_type == "code"]
    seen: set[str] = set()
    while sources:
        for name in _find_imports(sources.pop()) - seen:
            seen.add(name)
            files = [base / f"{name}.py"] if (base / f"{name}.py").is_file() else []
            if (base / name).is_dir():
                files += [path for path in sorted((base / name).rglob("*")) if path.is_file()]
            for file in files:
                if _is_left_out(file.relative_to(base)):
                    continue
                yield file
                if file.suffix == ".py":
                    sources.append(file.read_text(encoding="utf-8"))


def python_of(source: str) -> str:
    """Return the source of a cell in which lines of IPython, such as magics (%) and commands (!), are empty."""
    return "\n".join("" if line.startswith(("%", "!")) else line for line in source.splitlines())


def _find_imports(source: str) -> set[str]:
    """Return the names of the top-level modules that Python code imports; none for invalid code."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
