"""Errors in a notebook's kernel: the sentence, then the traceback folded away; all else as ever."""

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from tests.jupyter import KERNEL, execute

SENTENCE = "Radio has no parameter 'collision' (did you mean collisions?); it has: loss, "


def executed(cells, **options):
    notebook = nbformat.v4.new_notebook(metadata=KERNEL, cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    execute(notebook, timeout=60, **options)
    return [cell.outputs for cell in notebook.cells]


def test_an_error_is_its_sentence_with_the_traceback_folded_below():
    cells = ["import workbench as wb", "wb.Radio(collision=True)", "%tb", "1/0", "wb.Radio(); 'after'"]
    _, ours, traceback, others, after = executed(cells, allow_errors=True)
    shown, folded = ours
    assert shown.output_type == "error" and shown.ename == "ParameterError"
    assert shown.traceback == [f"\x1b[31mParameterError\x1b[0m: {shown.evalue}"] and SENTENCE in shown.evalue
    assert folded.data["text/html"].startswith("<details><summary>Traceback</summary><pre>---")
    assert "wb.Radio(collision=True)" in folded.data["text/html"] and "\x1b" not in folded.data["text/html"]
    assert len(traceback[0].traceback) > 2  # %tb shows it in full
    assert len(others) == 1 and len(others[0].traceback) > 2
    assert after[0].data["text/plain"] == "'after'"


def test_who_executes_a_notebook_gets_the_whole_traceback():
    with pytest.raises(CellExecutionError) as failed:
        executed(["import workbench as wb\nwb.Radio(collision=True)"])
    assert SENTENCE in str(failed.value) and "Traceback (most recent call last)" in str(failed.value)


def test_a_handler_of_the_users_own_stays():
    mine = "get_ipython().set_custom_exc((ValueError,), lambda *_, **__: print('mine'))"
    *_, ours = executed([mine, "import workbench as wb", "wb.Radio(collision=True)"], allow_errors=True)
    assert [output.get("text") for output in ours] == ["mine\n"]
