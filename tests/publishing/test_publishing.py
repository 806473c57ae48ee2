"""Publishing and checking: an executed notebook becomes an artifact, from which its claims are reproduced.

`make test` executes one small notebook, without a PDF. The tests with the marker `family` execute further ones, publish
the template with its PDF, and reproduce it in a new environment from its wheel.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest

from tests import axe
from tests.jupyter import CHROMIUM
from tests.publishing.notebooks import write_notebook
from tests.repository import REPOSITORY
from workbench.cli import main
from workbench.errors import DataError, ParameterError, WorkbenchError
from workbench.publishing import check, packing, pages, publish
from workbench.publishing.artifact import TEMPLATE
from workbench.publishing.execution import NotebookError, clean_outputs

CELLS = (
    "# A paper\n\nAn abstract. ![A dot](dot.svg)",
    ("import workbench as wb\nfrom helper import seed\nnodes = 3", ["parameters"]),
    "print(open('data.csv').read())\nopen('written.txt', 'w').write('x')",
    "scenario = wb.Scenario(wb.topology.line(nodes), wb.Flooding(), [wb.publish(at=0, what='TEMP IS 26', start_s=1)],\n"
    "                       wb.Radio(loss='none'), duration_s=3, seed=seed)\n"
    "run = scenario.run()\nrun.figure()",
    "wb.claim('the event reaches all nodes', run.metrics['coverage'] == 1, value=run.metrics['transmissions'], of=run)",
)


def write_example(folder, *cells, name="paper.ipynb"):
    """Write a notebook that imports a module and reads a file beside it; return its path."""
    (folder / "helper.py").write_text("seed = 7\n")
    (folder / "data.csv").write_text("1,2\n")
    (folder / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><circle r="9"/></svg>')
    return write_notebook(folder / name, *CELLS, *cells, paper={"files": ["data.csv", "dot.svg"]})


def quiet(line):
    """Report nothing."""


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Return the artifact of a small notebook, without a PDF and with an empty wheel, and the lines of its progress."""
    folder, lines = tmp_path_factory.mktemp("example"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "build_wheel", lambda folder: folder.mkdir(exist_ok=True))
        artifact = publish(write_example(folder), folder / "artifact", pdf=False, report=lines.append)
    return artifact, lines


def test_an_artifact_has_the_page_figures_with_records_claims_and_descriptions(example):
    artifact, lines = example
    names = {path.relative_to(artifact.folder).as_posix() for path in artifact.folder.rglob("*") if path.is_file()}
    assert names == {
        ".zenodo.json",
        "CITATION.cff",
        "LICENSE",
        "LICENSE-text.md",
        "README.md",
        "SHA256SUMS",
        "claims.json",
        "figures/figure-01.pdf",
        "figures/figure-01.svg",
        "figures/index.json",
        "measured.json",
        "notebook/data.csv",
        "notebook/dot.svg",
        "notebook/helper.py",
        "notebook/paper.ipynb",
        "paper.html",
        "reproduce.sh",
        "requirements.txt",
        "ro-crate-metadata.json",
    }
    (claim,) = json.loads((artifact.folder / "claims.json").read_text())["claims"]
    assert claim["verdict"] == "reproduced" and claim["value"] == 3
    assert claim["drawings"] == ["figures/figure-01.svg", "figures/figure-01.pdf"]
    assert "workbench-record" in (artifact.folder / "figures" / "figure-01.svg").read_text()
    assert (
        artifact.measured["peak_memory_MB"] > 10 and "measured.json" not in (artifact.folder / "SHA256SUMS").read_text()
    )
    assert packing.changed_files(artifact.folder) == []
    assert [line for line in lines if line.startswith("cell 3 of 4: scenario = wb.Scenario(")], lines
    with zipfile.ZipFile(artifact.archive) as archive:
        assert {name.removeprefix("artifact/") for name in archive.namelist()} == names


def test_the_page_has_the_title_authors_and_outputs_and_loads_nothing_from_the_network(example):
    page = (example[0].folder / "paper.html").read_text()
    assert "A paper" in page and "Ada Lovelace" in page and "reproduced" in page and "dot.svg" not in page
    assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', page)
    assert "cdnjs" not in page and "import(" not in page


@pytest.mark.family
def test_a_check_of_an_archive_reports_other_values_and_changed_files(example, tmp_path, capsys):
    folder, archive, out = (
        shutil.copytree(example[0].folder, tmp_path / "a"),
        tmp_path / "a.zip",
        tmp_path / "reproduced",
    )
    (folder / "notebook" / "helper.py").write_text("seed = 8\n")
    packing.write_archive(folder, archive)
    assert main(["publish", "--check", str(archive), "--out", str(out)]) == 1
    printed = capsys.readouterr().out
    assert "changed since its publication: notebook/helper.py" in printed
    assert (
        "differs: 'the event reaches all nodes': evidence was run" in printed and "1 difference in 1 claim (" in printed
    )
    here = json.loads((out / "claims.json").read_text())
    assert here["claims"][0]["value"] == 3 and (out / "paper.html").is_file()


@pytest.mark.family
def test_a_failing_cell_is_named_with_its_number_and_leaves_the_earlier_artifact(tmp_path, capsys):
    path = write_notebook(tmp_path / "p.ipynb", "# A paper", "a = 1", "# Text", "#a comment\n1 / (a - 1)")
    out = tmp_path / "artifact"
    out.mkdir()
    (out / packing.SUMS).write_text("")
    (out / "claims.json").write_text('{"format": "workbench-claims"}')
    assert main(["publish", str(path), "--out", str(out), "--no-pdf"]) == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.endswith("p.ipynb: cell 2 of 2 failed (1 / (a - 1)): ZeroDivisionError: division by zero")
    assert {entry.name for entry in out.iterdir()} == {packing.SUMS, "claims.json"}
    assert {entry.name for entry in tmp_path.iterdir()} == {"p.ipynb", "artifact"}


@pytest.mark.family
def test_a_kernel_that_ends_is_reported(tmp_path):
    path = write_notebook(tmp_path / "p.ipynb", "# A paper", "import os\nos._exit(1)")
    with pytest.raises(NotebookError, match="the kernel ended while it executed the notebook"):
        publish(path, tmp_path / "artifact", pdf=False, report=quiet)


@pytest.mark.family
def test_a_missing_file_is_explained(tmp_path):
    path = write_notebook(tmp_path / "p.ipynb", "# A paper", "open('x.csv')")
    (tmp_path / "x.csv").write_text("1")
    with pytest.raises(NotebookError, match="cell 1 of 1 failed .* the files in metadata.paper.files"):
        publish(path, tmp_path / "artifact", pdf=False, report=quiet)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["gone.ipynb"], "gone.ipynb does not exist (did you mean paper.ipynb?); give the file of a notebook"),
        (["paper.ipynb", "--parameter", "nodes"], "--parameter is 'nodes'; write it as NAME=VALUE"),
        (["paper.ipynb", "--parameter", "node=4"], "has no parameter 'node' (did you mean nodes?)"),
        (["paper.ipynb", "--out", "."], "--out is '.'; give a folder with a name"),
        (["paper.ipynb", "--out", "own"], "--out own has files, but is not an artifact"),
        (["paper.ipynb", "--parameter", "nodes={1, 2}"], "a value must be a number, a text, a list or a dictionary"),
        (["paper.ipynb", "--out", ".."], "--out is '..'; give a folder with a name"),
        (["paper.ipynb", "--out", "helper.py"], "--out helper.py is a file; give a folder"),
        (["paper.ipynb", "--date", "today"], "the date is 'today'; write it as 2026-11-29"),
        (["--check", "gone"], "gone does not exist; give the folder or the ZIP file of an artifact"),
        (["--check", "."], "has no claims.json; it is not an artifact"),
        (["--check", "helper.py"], "helper.py is not a valid ZIP file"),
        (["--template", "paper.ipynb"], "--template paper.ipynb: the file exists"),
    ],
)
def test_wrong_input_is_refused_with_a_sentence_before_anything_is_executed(
    tmp_path, monkeypatch, capsys, arguments, sentence
):
    write_example(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "file").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["publish", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_missing_chromium_is_reported_before_the_notebook_is_executed(tmp_path, monkeypatch):
    pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
    monkeypatch.setattr(pages, "CHROMIUM", ("no-such-browser",))
    with pytest.raises(WorkbenchError, match="Chromium, which is missing: .*--no-pdf"):
        publish(write_example(tmp_path), tmp_path / "artifact", report=pytest.fail)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is not valid JSON"),
        ("{}", "does not have the format workbench-claims"),
        ('{"format": "workbench-claims", "version": 9}', "has version 9"),
        ('{"format": "workbench-claims", "version": 1, "notebook": "../x", "claims": []}', "is damaged"),
    ],
)
def test_a_damaged_list_of_claims_is_refused(tmp_path, content, sentence):
    (tmp_path / "claims.json").write_text(content)
    with pytest.raises(DataError, match=sentence):
        check(tmp_path, report=quiet)


def test_a_notebook_without_a_cell_of_parameters_has_none_to_replace(tmp_path):
    path = write_notebook(tmp_path / "p.ipynb", "# A paper", "a = 1")
    with pytest.raises(ParameterError, match='no cell with the tag "parameters"'):
        publish(path, tmp_path / "artifact", parameters={"a": 2}, pdf=False, report=quiet)


def test_outputs_that_change_with_each_execution_are_removed():
    element = '<div data-workbench="{0}">{0}</div>'
    outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="50 %"),
        nbformat.v4.new_output("stream", name="stdout", text="sweep: 8 points, 8 run in 2 min, 1 failed\nrun in 3 s\n"),
        nbformat.v4.new_output("display_data", {"application/vnd.jupyter.widget-view+json": {}}),
        *(
            nbformat.v4.new_output("display_data", {"text/html": element.format(f"w1fx{n}xa1b2c{n}")})
            for n in (1, 2, 1)
        ),
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", outputs=outputs)])
    clean_outputs(notebook)
    printed, *elements = notebook.cells[0].outputs
    assert printed.text == "sweep: 8 points, 8 run, 1 failed\nrun in 3 s\n"
    assert [output.data["text/html"] for output in elements] == [element.format(f"w0x{n}x000000") for n in (0, 1, 0)]


# The template


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Return the artifact of the template with its small parameters and its PDF; skip the test without Chromium."""
    pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing; install it with: apt-get install chromium")
    return publish_template(tmp_path_factory.mktemp("template"))


def publish_template(folder):
    """Publish the template into a folder, as an author who has copied it."""
    path = folder / "template.ipynb"
    shutil.copyfile(REPOSITORY / "workbench" / "publishing" / TEMPLATE, path)
    return publish(path, folder / "artifact", small=True, released="2026-11-29", report=quiet)


@pytest.mark.family
def test_two_publications_of_a_notebook_differ_only_in_what_was_measured(template, tmp_path):
    again = publish_template(tmp_path)
    with zipfile.ZipFile(template.archive) as first, zipfile.ZipFile(again.archive) as second:
        assert first.namelist() == second.namelist()
        different = [name for name in first.namelist() if first.read(name) != second.read(name)]
    assert set(different) <= {"artifact/measured.json"}


@pytest.mark.family
def test_the_pdf_is_in_a4_with_vector_graphics_and_text(template):
    data = (template.folder / "paper.pdf").read_bytes()
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", data)
    assert boxes and all(abs(float(width) - 595.28) < 1 and abs(float(height) - 841.89) < 1 for width, height in boxes)
    assert b"/Subtype /Image" not in data and b"/FontFile2" in data
    if shutil.which("pdftotext"):
        text = subprocess.run(
            ["pdftotext", str(template.folder / "paper.pdf"), "-"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        assert "How many nodes may stay silent?" in text and re.search(r"1\s*/\s*[34]\b", text)
        assert "Gossip on 49 nodes" in text, "the player is not printed as a figure"
        assert "Pause" not in text and "table.plot" not in text and "scenario = wb.Scenario(" in text


@pytest.mark.family
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_plays_without_messages_serious_violations_or_a_horizontal_scroll_bar(template, chromium, width):
    page = chromium.new_page(viewport={"width": width, "height": 900})
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or problems.append(request.url)
    )
    page.goto((template.folder / "paper.html").as_uri())
    page.get_by_role("button", name="Play").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator(".wb-printed").count() == 1 and not page.locator(".wb-printed").is_visible()
    problems += axe.violations(page, "body", ["serious", "critical"])
    page.close()
    assert problems == []


@pytest.mark.family
def test_the_unpacked_artifact_is_reproduced_in_a_new_environment_from_its_wheel(template, tmp_path):
    """The environment has the wheel of the artifact, and the libraries of this environment instead of downloads."""
    with zipfile.ZipFile(template.archive) as archive:
        archive.extractall(tmp_path)
    folder, environment = tmp_path / "artifact", tmp_path / "environment"
    venv.create(environment, with_pip=False)
    (site,) = environment.glob("lib/python*/site-packages")
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    libraries = [path for path in map(Path, sys.path) if path.name == "site-packages"]
    (site / "libraries.pth").write_text("\n".join(map(str, libraries)))
    # Templates of nbconvert are data files of the environment with the libraries.
    jupyter = os.pathsep.join(str(path.parents[2] / "share" / "jupyter") for path in libraries)
    own = {"VENV": str(environment), "JUPYTER_PATH": jupyter, "HOME": str(tmp_path)}
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | own
    result = subprocess.run(
        ["sh", "reproduce.sh"], cwd=folder, env=variables, capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "all 2 claims are the same" in result.stdout and '"minutes"' in result.stdout
    recorded, here = (json.loads((folder / name / "claims.json").read_text()) for name in (".", "reproduced"))
    for claim in recorded["claims"]:
        del claim["drawings"]
    assert here["claims"] == recorded["claims"]
    # The workbench in this environment is not a checkout: its wheel is packed again from the installed files.
    code = "from pathlib import Path; from workbench.publishing.packing import build_wheel; build_wheel(Path('packed'))"
    python = next(environment.glob("bin/python"))
    subprocess.run([python, "-c", code], cwd=tmp_path, env=variables, check=True, timeout=600)
    (packed,) = (tmp_path / "packed").glob("*.whl")
    with zipfile.ZipFile(wheel) as built, zipfile.ZipFile(packed) as again:
        assert packed.name == wheel.name and sorted(built.namelist()) == sorted(again.namelist())
        different = [name for name in built.namelist() if built.read(name) != again.read(name)]
    assert all(name.endswith("/RECORD") for name in different)
