"""What all tests share: where the repository and the real data are, and registries that end with each test."""

import json

import pytest
from hypothesis import settings

from tests.jupyter import CHROMIUM
from tests.repository import REPOSITORY
from workbench import attributes
from workbench.attributes import keys
from workbench.protocols.diffusion import filters

# A busy machine is no reason to fail: what a test may take is not a property of the code.
settings.register_profile("workbench", deadline=None, print_blob=True)
settings.load_profile("workbench")


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


@pytest.fixture(scope="session")
def dps_vectors():
    """The folder of DPS's vectors and captured messages, beside the repository; without it the test is skipped."""
    folder = REPOSITORY.parent / "shared" / "vectors" / "dps"
    if not folder.is_dir():
        pytest.skip("the vectors of DPS are not beside this repository (../shared/vectors/dps)")
    return folder


@pytest.fixture(scope="session")
def dps_reference(dps_vectors):
    """What the C implementation computes: the lists of reference_vectors.json."""
    return json.loads((dps_vectors / "reference_vectors.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def dps_captured(dps_vectors):
    """What nodes of the C implementation sent each other: captured_messages.json."""
    return json.loads((dps_vectors / "captured_messages.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def chromium():
    """The system's Chromium; without it, or without Playwright, the test is skipped.

    It is a module's: Playwright keeps an event loop, which tests of other files may not find running.
    """
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}; install it with: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def registrations_end_with_the_test():
    """Keys and filters that a test registers are unknown to the next one: numbers and names may be used again."""
    registries = (keys._keys_by_number, keys._keys_by_name, attributes.blob_keys, filters._registered)
    before = [registry.copy() for registry in registries]
    yield
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)
