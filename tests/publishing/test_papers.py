"""Papers: what the metadata of a notebook state, which files it needs, and sentences for invalid input."""

import json

import nbformat
import pytest

from tests.publishing.notebooks import write_notebook, write_paper
from workbench.errors import ParameterError
from workbench.publishing import write_template
from workbench.publishing.paper import copy_files, read_paper


def test_title_and_abstract_are_the_first_heading_and_paragraph(tmp_path):
    paper = write_paper(
        tmp_path / "p.ipynb", "# A *short* `title`\n\n**Question.** Does [it](x.html) hold?\n\nMore.", "1"
    )
    assert (paper.title, paper.abstract) == ("A short title", "Question. Does it hold?")
    assert paper.authors[0]["orcid"] == "https://orcid.org/0000-0002-1825-0097"
    assert paper.date == "2026-11-29" and not paper.problems


def test_metadata_replace_what_the_text_states(tmp_path):
    fields = {"abstract": "In short.", "doi": "https://doi.org/10.5281/zenodo.7", "keywords": ["k"], "version": "2"}
    paper = write_paper(tmp_path / "p.ipynb", "# One", title="Two", paper={**fields, "text_license": "CC-BY-4.0"})
    assert (paper.title, paper.abstract, paper.doi) == ("Two", "In short.", "10.5281/zenodo.7")
    assert (paper.keywords, paper.version, paper.license) == (("k",), "2", "CC-BY-4.0")


def test_a_notebook_without_authors_is_reported(tmp_path):
    assert write_paper(tmp_path / "p.ipynb", "# One", authors=[]).problems[0].startswith("no authors")


@pytest.mark.parametrize(
    ("metadata", "sentence"),
    [
        ({"paper": {"keyword": []}}, "metadata.paper has the field 'keyword' (did you mean keywords?)"),
        ({"paper": {"doi": "zenodo 7"}}, "metadata.paper.doi is 'zenodo 7'"),
        ({"paper": {"keywords": "gossip"}}, "metadata.paper.keywords is 'gossip'; it must be a list"),
        ({"paper": {"date": "tomorrow"}}, "the date is 'tomorrow'; write it as 2026-11-29"),
        ({"paper": {"references": ["A book"]}}, "metadata.paper.references has 'A book'"),
        ({"authors": ["Ada"]}, "metadata.authors has 'Ada'; an author is"),
        ({"authors": [{"name": "Ada", "mail": "x"}]}, "metadata.authors has the field 'mail'"),
        ({"authors": [{"name": "Ada", "orcid": "0000-0002-1825-0098"}]}, "whose last digit is a checksum"),
    ],
)
def test_invalid_metadata_are_refused_with_the_name_of_the_file(tmp_path, metadata, sentence):
    path = write_notebook(tmp_path / "p.ipynb", "# One", **metadata)
    with pytest.raises(ParameterError) as refusal:
        read_paper(path)
    assert sentence in str(refusal.value) and "p.ipynb" in str(refusal.value)


def test_a_notebook_that_does_not_exist_is_refused_with_a_similar_name(tmp_path):
    write_notebook(tmp_path / "paper.ipynb", "# One")
    with pytest.raises(ParameterError, match=r"papr.ipynb does not exist \(did you mean paper.ipynb\?\)"):
        read_paper(tmp_path / "papr.ipynb")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}'])
def test_a_file_that_is_not_a_notebook_is_refused(tmp_path, text):
    (tmp_path / "p.ipynb").write_text(text)
    with pytest.raises(ParameterError, match="p.ipynb is not a valid notebook"):
        read_paper(tmp_path / "p.ipynb")


def test_imported_modules_and_listed_files_are_copied_without_outputs(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text("import helper")
    (tmp_path / "own" / "part.py").write_text("")
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "other.py").write_text("")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("1")
    paper = write_paper(tmp_path / "p.ipynb", "# One", "%time 1\nfrom own import part", paper={"files": ["data/*.csv"]})
    names = copy_files(paper, tmp_path / "copy")
    assert names == ["data/a.csv", "helper.py", "own/__init__.py", "own/part.py", "p.ipynb"]


@pytest.mark.parametrize("pattern", ["../*.csv", "/etc/passwd", "none*.csv"])
def test_files_outside_of_the_folder_and_patterns_without_files_are_refused(tmp_path, pattern):
    paper = write_paper(tmp_path / "p.ipynb", "# One", paper={"files": [pattern]})
    with pytest.raises(ParameterError, match="metadata.paper.files has"):
        copy_files(paper, tmp_path / "copy")


def test_the_template_is_a_valid_notebook_without_outputs_and_is_not_overwritten(tmp_path):
    path = write_template(tmp_path / "new" / "x.ipynb")
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    paper = read_paper(path)
    assert paper.authors and paper.keywords and paper.parameters_index is not None and paper.small_parameters
    with pytest.raises(ParameterError, match="the file exists"):
        write_template(path)
    with pytest.raises(ParameterError, match=r"must end in \.ipynb"):
        write_template(tmp_path / "x.txt")


def test_outputs_of_a_notebook_are_not_read(tmp_path):
    path = write_notebook(tmp_path / "p.ipynb", "# One", "1")
    content = json.loads(path.read_text())
    content["cells"][1] |= {"execution_count": 3, "outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}]}
    path.write_text(json.dumps(content))
    cell = read_paper(path).notebook.cells[1]
    assert cell.outputs == [] and cell.execution_count is None
