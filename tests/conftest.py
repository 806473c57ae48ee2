"""What all tests share: where the repository and the real data are, and which tests keep to one worker."""

from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no reason to fail: what a test may take is not a property of the code.
settings.register_profile("workbench", deadline=None, print_blob=True)
settings.load_profile("workbench")

REPOSITORY = Path(__file__).resolve().parents[1]


def pytest_collection_modifyitems(items):
    """Tests that share a costly process (Spark's Java, Chromium) run in one worker: --dist loadgroup."""
    for item in items:
        for name in ("spark", "browser"):
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(scope="session")
def repository():
    """The repository's top folder."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real_data():
    """The folder of the real data sets, beside the repository; without it the test is skipped."""
    folder = REPOSITORY.parent / "shared" / "datasets"
    if not folder.is_dir():
        pytest.skip("the real data sets are not beside this repository (../shared/datasets)")
    return folder
