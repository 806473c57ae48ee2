"""The web site: its reference has every public name, its pages include those of the repository, and it builds."""

import json
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from inspect import getdoc
from threading import Thread

import pytest

import workbench
from scripts.site import __main__ as build
from scripts.site import gallery, guides, links, notebooks, reference, sources
from tests import axe
from tests.firefox import FIREFOX, Firefox
from tests.repository import REPOSITORY
from tests.until import wait_until
from workbench.public_names import HOME

PAGES = {
    path.relative_to(sources.PAGES).as_posix(): path.read_text(encoding="utf-8") for path in sources.PAGES.rglob("*.md")
}
# Widths in CSS pixels and colour schemes: a telephone, a tablet, a laptop and a wide screen.
WINDOWS = ((360, "light"), (360, "dark"), (768, "light"), (1280, "dark"), (1920, "light"))
WIDER = "document.documentElement.scrollWidth - innerWidth"
LEFT_EARLY = re.compile("NetworkError|abort", re.IGNORECASE)  # messages of a page that was left while it loaded
PLAYER = "document.querySelector('iframe.wb-living').contentDocument.querySelector('.wb-player')?.workbenchPlayer"
OPENED = (
    "index.html",
    "guides/sweep.html",
    "docs/MODEL.html",
    "benchmarks/RESULTS.html",
    "notebooks/10-radios-that-sleep.html",
    "gallery/index.html",
    "gallery/detour.html",
    "reference/index.html",
    "reference/Run.html",
    "reference/modules/topology.html",
    "search.html?q=gradient",
)


@pytest.fixture(scope="module")
def reference_pages():
    return reference.pages()


def toctree_entries():
    """Return the paths in the toctrees of the pages in docs/site, within the tree of sources; globs stay globs."""
    entries = set()
    for name, text in PAGES.items():
        for body in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            folder = "" if "/" not in name else name.rpartition("/")[0] + "/"
            lines = [line for line in body.splitlines() if line and not line.startswith(":")]
            entries.update(re.sub(r"[^/]+/\.\./", "", folder + line) for line in lines)
    return entries


@pytest.mark.parametrize("name", sorted(HOME))
def test_the_reference_has_a_page_for_every_public_name(name, reference_pages):
    page = reference_pages[f"{reference.page_of(name)}.rst"]
    directive = r"py:module" if reference.is_module(getattr(workbench, name)) else r"auto(class|function)"
    assert re.search(rf"^\.\. {directive}:: workbench\.{name}$", page, re.MULTILINE)
    assert f":doc:`wb.{name} <{reference.page_of(name)}>`" in reference_pages["index.rst"]


@pytest.mark.parametrize("name", sorted(name for name in HOME if reference.is_module(getattr(workbench, name))))
def test_the_page_of_a_module_lists_every_name_that_the_module_exports(name, reference_pages):
    page = reference_pages[f"{reference.page_of(name)}.rst"]
    for member in reference.module_members(getattr(workbench, name)):
        described = rf":: workbench\.{name}\.{member}$|``wb\.{name}\.{member}``|:doc:`wb\.{member} "
        assert re.search(described, page, re.MULTILINE), member


@pytest.mark.parametrize("method", ["explain", "save_html", "trace_hash", "metrics"])
def test_the_page_of_a_class_has_its_methods_and_those_of_other_modules(method, reference_pages):
    assert f":: workbench.Run.{method}\n" in reference_pages["Run.rst"]


def test_classes_that_public_functions_return_have_pages(reference_pages):
    assert ":: workbench.sweeps.table.SweepTable.plot\n" in reference_pages["results/sweeps.table.SweepTable.rst"]
    assert (
        ":: workbench.protocols.dps.udp.UDPNode.publish\n" in reference_pages["results/protocols.dps.udp.UDPNode.rst"]
    )


def test_every_name_in_the_index_has_a_summary(reference_pages):
    assert [name for name in HOME if not reference.summary(getattr(workbench, name))] == []
    assert not re.search(r"^:doc:.*\n   $", reference_pages["index.rst"], re.MULTILINE)


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Return *all* names_ of a run.", r"Return \*all\* names\_ of a run."),
        ("See ``x|y``.", r"See \ ``x|y``\ ."),
        ("Return a `Run`.", r"Return a \ :py:obj:`Run <workbench.Run>`\ ."),
        (
            "out       a folder\nrunner    a runner,\n          or None",
            "\\ ``out``\\ \n   a folder\n\\ ``runner``\\ \n   a runner, or None",
        ),
        ("Parameters\n----------\nttl : int\n    hops", "**Parameters**\n\n\\ ``ttl : int``\\ \n   hops"),
        (">>> 1 + 1\n2", "::\n\n   >>> 1 + 1\n   2"),
        ("Lines:\n\n    wb.lab()", "Lines\\:\n\n::\n\n   wb.lab()"),
    ],
)
def test_docstrings_become_restructured_text(docstring, expected):
    assert "\n".join(reference.to_rst(docstring)).strip() == expected


def test_every_docstring_of_the_reference_is_valid_restructured_text():
    core = pytest.importorskip("docutils.core", reason="docutils is not installed: pip install -e '.[site]'")
    from docutils.parsers.rst import roles

    roles.register_local_role("py:obj", lambda name, text, source, *_: ([], []))
    values = [getattr(workbench, name) for name in HOME] + list(reference.public_functions())
    texts = {getdoc(value): None for value in values if getdoc(value)}
    settings = {"report_level": 2, "halt_level": 2}  # a warning raises
    for text in texts:
        core.publish_doctree("\n".join(reference.to_rst(text)), settings_overrides=settings)


def test_each_page_of_the_repository_is_in_a_toctree():
    from fnmatch import fnmatch

    entries = toctree_entries()
    pages = [path.relative_to(REPOSITORY).as_posix() for path in sources.included() if path.suffix == ".md"]
    pages += [path.relative_to(REPOSITORY).as_posix() for path in notebooks.paths()]
    missing = [page for page in pages if not any(fnmatch(page.rpartition(".")[0], entry) for entry in entries)]
    assert missing == [] and len(pages) > 30


def test_each_page_of_the_site_is_in_a_toctree():
    assert {name.removesuffix(".md") for name in PAGES} - toctree_entries() == {"index"}


def test_each_task_of_the_readme_is_a_guide():
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    tasks = set(re.findall(r"^### (.*)$", readme, re.MULTILINE))
    included = {heading for text in PAGES.values() for heading in re.findall(r"<!-- README\.md: (.+) -->", text)}
    assert included == tasks


def test_a_section_that_the_readme_does_not_have_is_an_error():
    assert guides.section("").startswith("Run directed diffusion")
    with pytest.raises(ValueError, match="README.md has no section 'Fly'; its sections are "):
        guides.section("Fly")


@pytest.mark.parametrize("name", gallery.wb.gallery.names())
def test_the_lines_of_a_living_page_make_the_scenario_of_the_gallery(name):
    lines = gallery.lines_of(name).split("run = ")[0]
    names = {}
    exec(lines, names)
    assert names["scenario"].hash == workbench.gallery.model(name).scenario.hash


def test_an_executed_notebook_is_used_while_its_source_is_the_same(tmp_path):
    path = notebooks.paths()[0]
    notebook = json.loads(path.read_text(encoding="utf-8"))
    find = partial(notebooks.executed_file, path, notebook, tmp_path)
    assert find() is None
    (tmp_path / path.name).write_text(json.dumps(notebook), encoding="utf-8")
    assert find() == tmp_path / path.name
    notebook["cells"][0]["source"] = "# Another title"
    assert find() is None
    (tmp_path / path.name).write_text("{", encoding="utf-8")
    assert find() is None


def test_broken_links_and_addresses_in_the_network_are_reported(tmp_path):
    page = '<p id="here"><a href="#here"></a><a href="#there"></a><a href="gone.html"></a><a href="https://x.org"></a>'
    (tmp_path / "page.html").write_text(f'{page}<script src="https://x.org/x.js"></script></p>', encoding="utf-8")
    assert links.broken(tmp_path) == [
        "page.html: links to #there, but that page has no element with this id",
        "page.html: links to gone.html, which is missing",
        "page.html: loads https://x.org/x.js from the network",
    ]


class QuietHandler(SimpleHTTPRequestHandler):
    """A handler that serves files and logs nothing."""

    def log_message(self, *arguments):
        """Log nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the URL of a site that is built with warnings as errors; skip the test without the extra.

    A server on loopback serves it: a browser does not let pages of file: URLs read each other, as the search does.
    """
    if missing := [name for name in build.REQUIRED if find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} not installed: pip install -e '.[site]'")
    folder = tmp_path_factory.mktemp("built") / "site"
    assert build.build(folder) == []
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.family
@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_pages_have_no_messages_no_serious_violations_and_no_horizontal_scroll_bar(site, chromium, width, scheme):
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    problems = []
    # The theme logs its mode; only warnings and errors are problems.
    page.on("console", lambda message: message.type in ("warning", "error") and problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
    page.on("request", lambda request: request.url.startswith((site, "data:", "blob:")) or problems.append(request.url))
    for name in OPENED:
        page.goto(f"{site}/{name}")
        page.wait_for_load_state("networkidle")
        overflow = page.evaluate(WIDER)
        assert overflow <= 0, f"{name} is {overflow} px wider than the window"
        problems += [f"{name}: {violation}" for violation in axe.violations(page, "body", ["serious", "critical"])]
    page.close()
    assert problems == []


def wait_until_quiet(firefox):
    """Wait until a page has loaded nothing more for half a second, such as the summaries of the search's results."""
    counts = [-1]

    def is_quiet():
        counts.append(firefox.evaluate("performance.getEntriesByType('resource').length"))
        return counts[-1] == counts[-2]

    wait_until(is_quiet, 60, 0.5)


@pytest.mark.family
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_firefox_shows_the_same_pages_and_plays(site, tmp_path, width, scheme):
    if not FIREFOX.exists():
        pytest.skip(f"{FIREFOX} is missing: apt-get install firefox-esr")
    with Firefox(tmp_path, is_dark=scheme == "dark") as firefox:
        firefox.resize(width, 900)
        for name in OPENED:
            firefox.open(f"{site}/{name}")
            assert firefox.evaluate(WIDER) <= 0, f"{name} is wider than the window"
            assert axe.violations(firefox, "body", ["serious", "critical"]) == [], name
            wait_until_quiet(firefox)
        firefox.open(f"{site}/gallery/detour.html")
        wait_until(lambda: firefox.evaluate(f"Boolean({PLAYER}?.picture)"))
        before = firefox.evaluate(f"{PLAYER}.time")
        wait_until(lambda: firefox.evaluate(f"{PLAYER}.time") != before)  # it plays by itself
        assert [message for message in firefox.messages if not LEFT_EARLY.search(message)] == []


@pytest.mark.family
def test_the_search_finds_a_function_and_a_living_page_plays(site, chromium):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{site}/search.html?q=publish")
    page.wait_for_selector("#search-results li a")
    assert "reference/publish.html" in page.inner_html("#search-results")
    page.goto(f"{site}/gallery/detour.html")
    frame = page.frame_locator("iframe.wb-living")
    slider = frame.get_by_role("slider", name="Time")
    before = slider.input_value()
    frame.get_by_role("button", name="Play").click()
    wait_until(lambda: slider.input_value() != before)
    page.close()
