"""Fixtures of all tests: folders of the repository and of real data, and registries that are reset after each test."""

import gc
import importlib
import json
import os
import random
import uuid
from collections import Counter
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import settings

from tests import object_stores
from tests.jupyter import CHROMIUM
from tests.repository import REPOSITORY
from workbench import attributes
from workbench.attributes import keys
from workbench.locations import locks, objects
from workbench.protocols.diffusion import filters

# A test does not fail on a busy machine: its duration is not a property of the code. A merge does not depend on
# chance: `make test` draws the same examples each time. `make test-all` draws more of them afresh.
ALWAYS = {"deadline": None, "print_blob": True}
settings.register_profile("workbench", **ALWAYS, derandomize=True, max_examples=20)
settings.register_profile("family", **ALWAYS, max_examples=100)
settings.load_profile("workbench")

# Parts of the suite with the longest files, longest first. They start first, so that the workers end together.
LONG_PARTS = (
    "tests/sim/fast/test_plain_numba.py",
    "notebooks/",
    "tests/test_soak.py",
    "tests/captures/test_lua.py",
    "tests/site/",
    "tests/views/test_living_charts.py",
    "tests/views/test_jupyter.py",
    "tests/pipelines/",
    "tests/sweeps/",
    "tests/motes/",
    "tests/c/",
    "tests/widgets/",
    "tests/lessons/",
    "tests/project/",
    "tests/protocols/",
)
# Files that keep to one worker with each other, as what they start is the worker's: galois compiles the arithmetic of
# a field once in a process, and Spark's Java outlives a session.
TOGETHER = {
    "galois": ("tests/coding/",),
    "Spark": (
        "tests/pipelines/test_live_spark.py",
        "tests/pipelines/test_logs_on_spark.py",
        "tests/pipelines/test_neighbors.py",
        "tests/pipelines/test_traces.py",
        "tests/sweeps/test_connect.py",
        "tests/sweeps/test_spark.py",
    ),
}


def pytest_addoption(parser):
    """Add --family-seed."""
    parser.addoption(
        "--family-seed",
        type=int,
        metavar="N",
        help="seed of the fixture `family_seed` and, with the profile `family`, of Hypothesis (default: random)",
    )


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads its option; pytest-xdist hands both to the workers
def pytest_configure(config):
    """Draw the seed of families unless it is given, and give it to Hypothesis where examples are drawn at random."""
    options = config.option
    if options.family_seed is None:
        options.family_seed = random.SystemRandom().randrange(1 << 30)
    if options.hypothesis_profile == "family" and options.hypothesis_seed is None:
        options.hypothesis_seed = options.family_seed


def pytest_report_header(config):
    """Return the line of the header that repeats a failure of a family."""
    return f"families (make test-all): --family-seed {config.option.family_seed}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Let each worker import another part of the tests first, if all tests are collected.

    Pytest rewrites the assertions of a file once and stores the result. Workers that go through the files in the same
    order would all rewrite all of them.
    """
    worker, count = os.environ.get("PYTEST_XDIST_WORKER"), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if worker is None or session.config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    files = sorted((REPOSITORY / "tests").rglob("test_*.py"))
    for file in files[int(worker.removeprefix("gw")) :: count]:
        with suppress(Exception):  # the collection reports it
            importlib.import_module(".".join(file.relative_to(REPOSITORY).with_suffix("").parts))


def pytest_collection_modifyitems(items):
    """Sort the files of tests: long ones first."""
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (_part(item), -tests[item.path], item.path))


def pytest_collection_finish():
    """Keep the collected tests and imported modules out of every later garbage collection: some call for whole ones."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure():
    """Give back what `pytest_collection_finish` has kept: libraries report objects that outlive the interpreter."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Return a scheduler that deals out files, and those of `TOGETHER` as if they were one."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            names = [name for name, parts in TOGETHER.items() if nodeid.startswith(parts)]
            return names[0] if names else super()._split_scope(nodeid)

    return Scheduling(config, log)


def _part(item):
    """Return the index in `LONG_PARTS` of the part to which a test belongs."""
    matches = [index for index, part in enumerate(LONG_PARTS) if item.nodeid.startswith(part)]
    return matches[0] if matches else len(LONG_PARTS)


@pytest.fixture(scope="session")
def family_seed(pytestconfig):
    """Return the seed of random families: that of --family-seed, otherwise a new one in each session."""
    return pytestconfig.option.family_seed


@pytest.fixture(scope="session")
def repository():
    """Return the repository's top folder."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real_data():
    """Return the folder of the real data sets, beside the repository; skip the test without it."""
    folder = REPOSITORY.parent / "shared" / "datasets"
    if not folder.is_dir():
        pytest.skip("the real data sets are not beside this repository (../shared/datasets)")
    return folder


@pytest.fixture(scope="session")
def dps_vectors():
    """Return the folder of DPS's vectors and captured messages, beside the repository; skip the test without it."""
    folder = REPOSITORY.parent / "shared" / "vectors" / "dps"
    if not folder.is_dir():
        pytest.skip("the vectors of DPS are not beside this repository (../shared/vectors/dps)")
    return folder


@pytest.fixture(scope="session")
def dps_reference(dps_vectors):
    """Return the results of the C implementation: the lists of reference_vectors.json."""
    return json.loads((dps_vectors / "reference_vectors.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def dps_captured(dps_vectors):
    """Return the messages that nodes of the C implementation exchanged: captured_messages.json."""
    return json.loads((dps_vectors / "captured_messages.json").read_text(encoding="utf-8"))


@pytest.fixture
def memory_url(monkeypatch):
    """Return the URL of an object store in the memory of this process, whose locks expire within a second."""
    obstore = pytest.importorskip("obstore", reason="obstore is not installed: pip install obstore")
    store = obstore.store.MemoryStore()
    monkeypatch.setattr(objects, "_open_store", lambda root: store)
    for name, seconds in (("BEAT_S", 0.05), ("EXPIRES_S", 0.6), ("_POLL_S", 0.05)):
        monkeypatch.setattr(locks, name, seconds)
    return "memory://bucket/results"


@pytest.fixture(scope="session")
def s3_environment():
    """Return the environment variables of a server with the interface of S3; skip the test without moto."""
    for name in ("obstore", "moto.server", "boto3"):
        pytest.importorskip(name, reason="obstore and moto are not installed: pip install obstore 'moto[server]'")
    with object_stores.s3_server() as environment:
        yield environment


@pytest.fixture
def s3_url(s3_environment):
    """Return the URL of an empty folder of the S3 server, and set the environment variables of its clients."""
    objects._open_store.cache_clear()
    with object_stores.variables(s3_environment):
        yield f"s3://{object_stores.BUCKET}/{uuid.uuid4().hex}"
    objects._open_store.cache_clear()


@pytest.fixture(scope="module")
def chromium():
    """Return the system's Chromium; skip the test without it, or without Playwright.

    It is a module's: Playwright keeps an event loop, which tests of other files may not find running.
    """
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing; install it with: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        browser.new_page = partial(browser.new_page, reduced_motion="reduce")  # players do not play by themselves
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def registrations_end_with_the_test():
    """Remove the keys and filters that a test registers, so that the next test can use their numbers and names."""
    registries = (keys._keys_by_number, keys._keys_by_name, attributes.blob_keys, filters._registered)
    before = [registry.copy() for registry in registries]
    yield
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)
