"""The machine of the benchmarks: processor, system, and the versions of all programs and libraries."""

import datetime
import os
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import diffusion_ns2
import ns3
from native import Absent, require_command, run_command

import workbench

LIBRARIES = ("galois", "numba", "numpy", "pyarrow", "simpy", "wsnsimpy")


def machine() -> str:
    """Return two lines of text: the machine, and the versions of programs and libraries."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, {datetime.date.today()}.\n"
        f"workbench {workbench.__version__}, {python}, {', '.join([*_libraries(), *_programs()])}."
    )


def _libraries() -> list[str]:
    versions = []
    for name in LIBRARIES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"no {name}")
    return versions


def _gcc() -> str:
    require_command("gcc", "gcc")
    return run_command("gcc", "-dumpfullversion").strip()


def _programs() -> list[str]:
    programs: tuple[tuple[str, Callable[[], str]], ...] = (
        ("gcc", _gcc),
        ("ns-3", ns3.version),
        ("ns-2", diffusion_ns2.version),
    )
    versions = []
    for name, version_of in programs:
        try:
            versions.append(f"{name} {version_of()}")
        except Absent:
            versions.append(f"no {name}")
    return versions


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
