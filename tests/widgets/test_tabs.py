"""Tabs of the app: each has a separate file."""

import os

import pytest

from workbench.widgets import tabs


@pytest.mark.parametrize(
    ("query", "tab"),
    [
        ("tab=0123abcd", "0123abcd"),
        ("theme=dark&tab=0123abcd", "0123abcd"),
        ("", ""),
        ("tab=../lab", ""),
        ("tab=0123ABCDEF", ""),
    ],
)
def test_the_address_identifies_the_tab(query, tab):
    assert tabs.tab_asked_for(query) == tab


def test_a_new_tab_starts_with_the_last_composed_scenario(tmp_path):
    tabs.begin("00000000", tmp_path)
    assert not list(tmp_path.iterdir())
    for age_s, tab in ((100, "aaaaaaaa"), (50, "bbbbbbbb"), (200, "cccccccc")):
        path = tmp_path / f"app-{tab}.json"
        path.write_text(tab)
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age_s))
    tabs.begin("00000000", tmp_path)
    assert (tmp_path / "app-00000000.json").read_text() == "bbbbbbbb"
    assert len(list(tmp_path.iterdir())) == 4


def test_files_of_old_tabs_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tabs, "_MOST_FILES", 3)
    for number in range(6):
        (tmp_path / f"app-0000000{number}.json").write_text("{}")
        tabs.begin(f"1000000{number}", tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
