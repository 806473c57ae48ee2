"""A run, and every kind of file that is made from it, for all tests of records."""

import pytest

from tests.records import made


@pytest.fixture(scope="session")
def run():
    return made.scenario().run(engine="reference")


@pytest.fixture(scope="session")
def files(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    made.write(run, folder)
    return folder
