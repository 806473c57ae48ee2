"""The line that explains why something takes long: on standard error, and in a notebook only meanwhile."""

from types import SimpleNamespace

import nbformat

from tests.jupyter import KERNEL, client_of
from workbench import notice
from workbench.notice import Notice, notebook_kernel

CELL = (
    "from workbench.notice import Notice\nwith Notice() as notice:\n    notice.show('compiling ...')\n    print('done')"
)


def test_plain_python_has_the_line_on_standard_error(capsys):
    with Notice() as line:
        line.show("compiling ...")
    assert capsys.readouterr() == ("", "compiling ...\n")
    assert notebook_kernel() is None


def test_the_fork_of_a_kernel_shows_nothing(capsys, monkeypatch):
    kernel = SimpleNamespace(session=SimpleNamespace(pid=-1))
    monkeypatch.setattr(notice, "notebook_kernel", lambda: kernel)
    with Notice() as line:
        line.show("compiling ...")
    assert capsys.readouterr() == ("", "")


def test_a_notebook_that_is_saved_does_not_have_it():
    shown = []
    notebook = nbformat.v4.new_notebook(metadata=KERNEL, cells=[nbformat.v4.new_code_cell(CELL)])
    client = client_of(notebook, timeout=60)
    output = client.output
    client.output = lambda outs, message, *more: (shown.append(message["content"]), output(outs, message, *more))[1]
    client.execute()
    assert any(content.get("data", {}).get("text/plain") == "compiling ..." for content in shown)
    first, second = notebook.cells[0].outputs
    assert first.data == {"text/html": ""} and second.text == "done\n"
