"""What is installed, what is missing, and how to get it: what ``workbench doctor`` prints, and its table (``--all``).

Nothing heavy is imported but plug-ins, and nothing is started but ``java -version`` and a compiler that is asked where
its library is: versions come from the packages' metadata, so the doctor answers in a broken environment too.
"""

import re
import shutil
import sys
import textwrap
import warnings
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from workbench import datasets, plugins
from workbench.errors import DataError
from workbench.java import REMEDY, find_java
from workbench.motes import in_c

DISTRIBUTION = "sensor-pubsub-workbench"
OLDEST_PYTHON = (3, 11)
FIRST_PYTHON_TOO_NEW = (3, 14)
LINE_WIDTH = 120

# What -> the names it goes by, and how to get it. None of them is needed to simulate.
PROGRAMS = {
    "Chromium": (
        ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
        "apt-get install chromium, or brew install --cask chromium (tests of the pages use it)",
    ),
    "Node.js": (
        ("node",),
        "apt-get install nodejs, or brew install node (virtual motes run in it, version 18 or newer)",
    ),
    "gcc": (("gcc",), "apt-get install gcc libc6-dev, or xcode-select --install (compiles virtual motes in C)"),
    "arm-none-eabi-gcc": (
        ("arm-none-eabi-gcc",),
        "apt-get install gcc-arm-none-eabi (compiles motes for a Cortex-M3, and measures what they take)",
    ),
    "qemu-system-arm": (("qemu-system-arm",), "apt-get install qemu-system-arm (emulates motes with a Cortex-M3)"),
}
NEWLIB = "libnewlib-arm-none-eabi"


class Finding(NamedTuple):
    """One row of the table. ``remedy`` is empty where nothing is to be done."""

    what: str
    found: str
    is_ok: bool
    is_required: bool
    remedy: str = ""


def examine() -> list[Finding]:
    """Look at everything, required things first."""
    return [_python(), java(), *libraries(), *_programs(), *_data_sets(), *map(_plugin, plugins.installed())]


def _python() -> Finding:
    is_ok = OLDEST_PYTHON <= sys.version_info[:2] < FIRST_PYTHON_TOO_NEW
    return Finding("Python", sys.version.split()[0], is_ok, True, "" if is_ok else "use Python 3.11, 3.12 or 3.13")


def java() -> Finding:
    """The Java that Spark would start."""
    found, is_ok = find_java()
    return Finding("Java", found, is_ok, False, "" if is_ok else REMEDY)


def libraries() -> list[Finding]:
    """The libraries the workbench depends on, then those of its tests and benchmarks."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return [Finding(DISTRIBUTION, "", False, True, f"pip install -e {Path(__file__).parents[2]}")]
    return sorted((library(text) for text in requirements), key=lambda finding: not finding.is_required)


def library(requirement: str) -> Finding:
    """``requirement`` is a line of the metadata: 'pandas<3,>=2.2' or 'pytest>=8.2; extra == "test"'."""
    specification, _, marker = requirement.partition(";")
    name = re.match(r"[\w.-]+", specification).group()  # type: ignore[union-attr]
    bounds = specification[len(name) :].strip()
    extra = re.search(r"extra == ['\"](\w+)", marker)
    remedy = f"pip install '{specification.strip()}'" + (f" (for {extra.group(1)})" if extra else "")
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, "", False, extra is None, remedy)
    is_ok = is_within(version, bounds)
    return Finding(name, version, is_ok, extra is None, "" if is_ok else remedy)


def is_within(version: str, bounds: str) -> bool:
    """Whether a version fits '>=2.2,<3'. Only >= and < are used in pyproject.toml (a test sees to it)."""
    for operator, bound in re.findall(r"(>=|<)\s*([\d.]+)", bounds):
        if (_numbers(version) >= _numbers(bound)) != (operator == ">="):
            return False
    return True


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _programs() -> list[Finding]:
    findings = []
    for what, (names, remedy) in PROGRAMS.items():
        found = next((path for path in map(shutil.which, names) if path), "")
        findings.append(Finding(what, found, bool(found), False, "" if found else remedy))
    return [*findings, _newlib()]


def _newlib() -> Finding:
    """The C library that arm-none-eabi-gcc needs: a package of its own, which has no program."""
    found = in_c.newlib()
    remedy = f"apt-get install {NEWLIB} (the C library of motes with a Cortex-M3)"
    return Finding(NEWLIB, found, bool(found), False, "" if found else remedy)


def _data_sets() -> list[Finding]:
    return [_data_set(data_set) for data_set in datasets.DATA_SETS]


def _data_set(data_set: datasets.DataSet) -> Finding:
    what = f"data: {data_set.name}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = datasets.find(data_set.name)
        except DataError as error:
            return Finding(what, "", False, False, str(error))
    remarks = [str(warning.message) for warning in caught]
    absent = [file.role for file in data_set.files if file.role not in found]
    if absent:
        remarks.append(f"without {', '.join(absent)}: {data_set.how}")
    return Finding(what, ", ".join(found), True, False, " ".join(remarks))


def _plugin(plugin: plugins.Plugin) -> Finding:
    """Describe an installed plug-in; it is loaded to find out whether it works."""
    return Finding(f"{plugin.kind}: {plugin.name}", plugin.distribution, not plugin.error, False, plugin.error)


def report(findings: list[Finding], everything: bool = False) -> str:
    """The verdict, what is required and missing with its remedy, and the names of what is optional and missing.

    ``everything``: after the verdict a table of all findings, a long remedy on lines of its own.
    """
    broken = [finding for finding in findings if finding.is_required and not finding.is_ok]
    names = ", ".join(finding.what for finding in broken)
    verdict = f"needs attention: {names}" if broken else "everything required is here"
    if everything:
        return "\n".join([verdict, "", *_table(findings)])
    lines = [verdict, *_table(broken)]
    optional = [finding.what for finding in findings if not (finding.is_required or finding.is_ok)]
    if optional:
        more = f"optional and missing: {', '.join(optional)}"
        lines += textwrap.wrap(more, LINE_WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join([*lines, "workbench doctor --all lists what was looked at, and how to get what is missing"])


def _table(findings: list[Finding]) -> list[str]:
    what_width = max((len(finding.what) for finding in findings), default=0)
    found_width = max((len(finding.found) for finding in findings), default=0)
    lines = []
    for finding in findings:
        line = f"{finding.what:{what_width}}  {finding.found:{found_width}}  {_state(finding):7}  {finding.remedy}"
        if len(line) <= LINE_WIDTH:
            lines.append(line.rstrip())
        else:
            lines.append(line.removesuffix(finding.remedy).rstrip())
            lines += textwrap.wrap(finding.remedy, LINE_WIDTH, initial_indent="    ", subsequent_indent="    ")
    return lines


def _state(finding: Finding) -> str:
    if finding.is_ok:
        return "ok"
    state = "unfit" if finding.found else "missing"
    return state.upper() if finding.is_required else state
