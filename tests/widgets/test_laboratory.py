"""The lab as a whole, without a browser."""

import threading

import pytest
from ipywidgets.widgets import widget as ipywidgets

import workbench as wb
from workbench.sim import fast


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of its own; nothing is compiled."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fast, "is_warm", lambda protocol: False, raising=False)
    monkeypatch.setattr(fast, "warm", lambda protocol: None, raising=False)


def test_a_lab_that_is_opened_again_leaves_no_widget_and_no_thread_behind(here):
    def left():
        lab = wb.lab()
        assert lab.wait(30)
        return len(ipywidgets._instances), sum(one.name == "lab" for one in threading.enumerate())

    left()
    widgets, _ = left()
    again, threads = [left() for _ in range(3)][-1]
    assert again == widgets
    assert threads <= 2  # the last one's, and one that is about to end
    lab = wb.lab()
    lab.close()
    lab.close()


def test_the_filters_form_knows_which_nodes_there_are(here):
    lab = wb.lab()
    assert lab._filters.nodes == tuple(sorted(lab.scenario.topology))
    lab.close()
