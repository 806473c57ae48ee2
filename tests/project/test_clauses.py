"""docs/CLAUSES.md names tests that exist, in the folder that it names."""

import re

from tests.repository import REPOSITORY

PAGE = REPOSITORY / "docs" / "CLAUSES.md"
FOLDERS = ("tests/protocols/diffusion", "tests/attributes")


def names_in(folder):
    """Return the names of the tests in a folder's files."""
    files = (REPOSITORY / folder).glob("test_*.py")
    return {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)}


def test_every_test_of_a_clause_exists():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8")))
    assert len(named) > 40
    assert not named - set.union(*map(names_in, FOLDERS))
