"""Pages in docs/ name tests, functions and files that exist; the page of frames is generated."""

import re

import pytest

from scripts import frames_page
from tests.repository import REPOSITORY

PAGES = sorted((REPOSITORY / "docs").glob("*.md")) + sorted((REPOSITORY / "docs" / "boards").glob("*.md"))
CLAUSES = REPOSITORY / "docs" / "CLAUSES.md"
FOLDERS_OF_CLAUSES = ("tests/protocols/diffusion", "tests/attributes")


def names_in(folder):
    """Return the names of the tests in a folder's files."""
    files = (REPOSITORY / folder).glob("test_*.py")
    return {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)}


def test_every_test_of_a_clause_exists():
    named = set(re.findall(r"`(test_\w+)`", CLAUSES.read_text(encoding="utf-8")))
    assert len(named) > 40
    assert not named - set.union(*map(names_in, FOLDERS_OF_CLAUSES))


@pytest.fixture(scope="module")
def words_of_sources():
    """Return all words of the Python, C and JavaScript sources."""
    files = [
        file
        for folder in ("workbench", "hardware", "tests", "scripts", "benchmarks")
        for pattern in ("*.py", "*.c", "*.h", "*.js")
        for file in (REPOSITORY / folder).rglob(pattern)
        if "node_modules" not in file.parts
    ]
    return {word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_private_names_on_a_page_are_in_the_code(page, words_of_sources):
    named = set(re.findall(r"`(?:\w+\.)*(_[a-z]\w+)(?:\(\))?`", page.read_text(encoding="utf-8")))
    assert not named - words_of_sources


def test_page_of_frames_is_generated_from_the_tables_of_fields():
    page = (REPOSITORY / "docs" / "FRAMES.md").read_text(encoding="utf-8")
    assert page == frames_page.text(), "see scripts/frames_page.py"
