"""Descriptions of an artifact for people and archives: README, licenses, CITATION.cff, .zenodo.json and RO-Crate.

RO-Crate metadata are 60 lines of this module, because an artifact needs one fixed graph. The library ``rocrate`` would
add the date of the writing and copy the files; the tests use it to read the graph (https://w3id.org/ro/crate/1.1).
"""

from __future__ import annotations

import importlib.metadata
import json
import mimetypes
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import workbench
from workbench.errors import WorkbenchError
from workbench.publishing.packing import DISTRIBUTION
from workbench.publishing.pages import name_of
from workbench.publishing.paper import Paper
from workbench.records.verdicts import format_result

CODE_LICENSE = "Apache-2.0"
UNKNOWN_AUTHOR = {"name": "unknown author"}
PROFILE = "https://w3id.org/ro/crate/1.1"
CREATIVE_COMMONS = {
    "CC0-1.0": ("CC0 1.0 Universal", "https://creativecommons.org/publicdomain/zero/1.0/"),
    "CC-BY-4.0": ("Creative Commons Attribution 4.0 International", "https://creativecommons.org/licenses/by/4.0/"),
    "CC-BY-SA-4.0": (
        "Creative Commons Attribution-ShareAlike 4.0 International",
        "https://creativecommons.org/licenses/by-sa/4.0/",
    ),
}
_KINDS = {
    ".ipynb": "application/x-ipynb+json",
    ".whl": "application/zip",
    ".cff": "application/yaml",
    ".md": "text/markdown",
    ".sh": "application/x-sh",
    ".py": "text/x-python",
}


def citation(paper: Paper) -> str:
    """Return the text of CITATION.cff (version 1.2.0), which GitHub and Zenodo read."""
    import yaml

    fields: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "If you use this artifact, please cite it as below.",
        "title": paper.title,
        "type": "software",
        "authors": [dict(author) for author in authors_of(paper)],
        "version": paper.version,
        "date-released": paper.date,
        "license": license_ids(paper),
        "abstract": paper.abstract,
        "doi": paper.doi,
        "keywords": list(paper.keywords),
        "references": [*map(dict, paper.references), _describe_software()],
    }
    present = {name: value for name, value in fields.items() if value}
    return str(yaml.safe_dump(present, sort_keys=False, allow_unicode=True, width=100))


def _describe_software() -> dict[str, Any]:
    return {
        "type": "software",
        "title": DISTRIBUTION,
        "version": workbench.__version__,
        "license": CODE_LICENSE,
        "authors": [{"name": "The sensor-pubsub-workbench maintainers"}],
    }


def authors_of(paper: Paper) -> Sequence[Mapping[str, str]]:
    """Return the authors of a paper; if it names none, an entry that states that they are unknown."""
    return paper.authors or (UNKNOWN_AUTHOR,)


def license_ids(paper: Paper) -> Any:
    """Return the SPDX identifier of the artifact's license, or a list of two if text and code have different ones."""
    return [CODE_LICENSE, paper.license] if paper.license not in ("", CODE_LICENSE) else CODE_LICENSE


def zenodo(paper: Paper) -> str:
    """Return the text of .zenodo.json, the metadata of a deposit at Zenodo."""
    creators = []
    for author in authors_of(paper):
        name = author.get("name") or ", ".join(filter(None, (author.get("family-names"), author.get("given-names"))))
        orcid = author.get("orcid", "").removeprefix("https://orcid.org/")
        entry = {"name": name, "affiliation": author.get("affiliation", ""), "orcid": orcid}
        creators.append({field: value for field, value in entry.items() if value})
    fields = {
        "title": paper.title,
        "upload_type": "software",
        "description": paper.abstract or paper.title,
        "creators": creators,
        "version": paper.version,
        "publication_date": paper.date,
        "access_right": "open",
        "license": CODE_LICENSE.lower(),
        "keywords": list(paper.keywords),
        "doi": paper.doi,
        "notes": f"The text and the figures are under {paper.license}." if paper.license else "",
    }
    return to_json({name: value for name, value in fields.items() if value})


def to_json(value: Any) -> str:
    """Return a value as indented JSON that ends with a line feed."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def code_license() -> str:
    """Return the text of the license of the workbench, from its installation or the checkout."""
    checkout = Path(__file__).parents[2] / "LICENSE"
    if checkout.is_file():
        return checkout.read_text(encoding="utf-8")
    for file in importlib.metadata.files(DISTRIBUTION) or ():
        if file.name == "LICENSE":
            return file.read_text(encoding="utf-8")
    raise WorkbenchError("the license of the workbench is missing from its installation: install its wheel again")


def text_license(paper: Paper) -> str:
    """Return the text of LICENSE-text.md, which states the license of the paper's text and figures."""
    holders = ", ".join(name_of(author) for author in authors_of(paper))
    scope = "The text of the paper (paper.html, paper.pdf, the text in the notebook) and the files in figures/"
    if paper.license in ("", CODE_LICENSE):
        return f"# License of the text\n\n{scope} are under the license of the code, {CODE_LICENSE}: see LICENSE.\n"
    title, url = CREATIVE_COMMONS.get(paper.license, (paper.license, f"https://spdx.org/licenses/{paper.license}.html"))
    return (
        f"# License of the text\n\nCopyright {paper.date[:4]} {holders}\n\n{scope} are under {title} "
        f"({paper.license}):\n<{url}>. The code is under {CODE_LICENSE}: see LICENSE.\n"
    )


# RO-Crate


def crate(paper: Paper, folder: Path, python: str, left_out: Iterable[str] = ()) -> str:
    """Return the text of ro-crate-metadata.json for the files in a folder except those in ``left_out``.

    ``python``: the version of Python that executed the notebook. The graph follows RO-Crate 1.1: the paper and its data
    are files of the root data set, and a CreateAction states that the notebook made them.
    """
    excluded = {"ro-crate-metadata.json", *left_out}
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    files = [_describe_file(folder, name) for name in names if name not in excluded]
    people = [_describe_author(author, number) for number, author in enumerate(authors_of(paper), 1)]
    licenses = license_ids(paper) if isinstance(license_ids(paper), list) else [license_ids(paper)]
    made = [file for file in files if file["@id"].startswith(("paper.", "claims.json", "figures/"))]
    notebook = f"notebook/{paper.path.name}"
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": paper.title,
        "description": paper.abstract or paper.title,
        "datePublished": paper.date,
        "version": paper.version,
        "license": _make_reference(f"https://spdx.org/licenses/{licenses[0]}"),
        "author": [_make_reference(person["@id"]) for person in people],
        "keywords": list(paper.keywords),
        "hasPart": [_make_reference(file["@id"]) for file in files],
        "mentions": [_make_reference("#execution")],
        "mainEntity": _make_reference(notebook),
    }
    if paper.doi:
        root["identifier"] = f"https://doi.org/{paper.doi}"
    action = {
        "@id": "#execution",
        "@type": "CreateAction",
        "name": "Execution of the notebook",
        "description": f"workbench publish executed the notebook with Python {python}",
        "instrument": [_make_reference(notebook), _make_reference("#workbench")],
        "result": [_make_reference(file["@id"]) for file in made],
    }
    software = {
        "@id": "#workbench",
        "@type": "SoftwareApplication",
        "name": DISTRIBUTION,
        "softwareVersion": workbench.__version__,
        "license": _make_reference(f"https://spdx.org/licenses/{CODE_LICENSE}"),
    }
    descriptor = {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "conformsTo": _make_reference(PROFILE),
        "about": _make_reference("./"),
    }
    license_entities = [
        {"@id": f"https://spdx.org/licenses/{name}", "@type": "CreativeWork", "name": name, "identifier": name}
        for name in licenses
    ]
    graph = [descriptor, root, *people, *license_entities, software, action, *files]
    return to_json({"@context": f"{PROFILE}/context", "@graph": graph})


def _make_reference(entity_id: str) -> dict[str, str]:
    return {"@id": entity_id}


def _describe_author(author: Mapping[str, str], number: int) -> dict[str, Any]:
    is_group = "name" in author
    entity: dict[str, Any] = {
        "@id": author.get("orcid") or f"#author-{number}",
        "@type": "Organization" if is_group else "Person",
        "name": name_of(author),
    }
    if author.get("affiliation"):
        entity["affiliation"] = author["affiliation"]
    return entity


def _describe_file(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    kind = _KINDS.get(path.suffix) or mimetypes.guess_type(name)[0] or "text/plain"
    types: Any = ["File", "SoftwareSourceCode"] if path.suffix in (".ipynb", ".py", ".sh") else "File"
    return {
        "@id": name,
        "@type": types,
        "name": path.name,
        "contentSize": str(path.stat().st_size),
        "encodingFormat": kind,
    }


# Text for the evaluator


def readme(paper: Paper, claims: Sequence[Mapping[str, Any]], python: str, figure_count: int, *, has_pdf: bool) -> str:
    """Return the text of README.md, for a person who evaluates the artifact.

    ``python``: the version of Python that executed the notebook.
    """
    rows = [
        f"| {number} | {_escape_cell(claim['claim'])} | {claim['verdict']} | "
        f"{_escape_cell(format_result(claim['value'], claim['unit'], claim['interval']))} | "
        f"{_escape_cell(claim['published'])} | {_escape_cell(_list_figures(claim))} |"
        for number, claim in enumerate(claims, 1)
    ]
    table = ["| | claim | verdict | value here | published | shown in |", "|--:|---|---|---|---|---|", *rows]
    no_claims = "The notebook records no claims, so an evaluator has to compare the figures by eye."
    return _fill_template(
        "evaluator.md",
        title=paper.title,
        authors=", ".join(name_of(author) for author in authors_of(paper)),
        version=paper.version,
        date=paper.date,
        doi=f"<https://doi.org/{paper.doi}>" if paper.doi else "",
        python=_find_minor_version(python),
        claims="\n".join(table) if rows else no_claims,
        paper="`paper.html`, `paper.pdf`" if has_pdf else "`paper.html`",
        figures=str(figure_count),
        software=f"{DISTRIBUTION} {workbench.__version__}",
        notebook=paper.path.name,
    )


def reproduce_script(paper: Paper, python: str) -> str:
    """Return the text of reproduce.sh, a script for any POSIX shell.

    ``python``: the version of Python that executed the notebook.
    """
    title = "".join(character for character in paper.title if character.isprintable())
    return _fill_template("reproduce.sh", title=title, python=_find_minor_version(python))


def _fill_template(name: str, **values: str) -> str:
    """Return the text of the template file ``name`` of this folder, with placeholders replaced.

    For example, @AUTHORS@ is replaced by the keyword argument ``authors``.
    """
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda match: values[match[1].lower()], text)


def _find_minor_version(version: str) -> str:
    """Return the first two numbers of a version of Python, such as "3.11"."""
    return ".".join(version.split(".")[:2])


def _list_figures(claim: Mapping[str, Any]) -> str:
    files = [name for name in claim.get("drawings", ()) if name.endswith(".svg")]
    return ", ".join(filter(None, (claim["figure"], *files)))


def _escape_cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")
