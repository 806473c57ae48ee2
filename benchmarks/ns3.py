"""Programs in C++ for ns-3, built against the installed libraries (Debian's libns3-dev, or any other).

A program prints "<receptions> <seconds of process time>". The seconds begin with the creation of the nodes, so they
exclude loading the libraries and reading the network.
"""

from pathlib import Path

from native import Absent, compile_source, require_command, run_command
from timing import Timed


def version() -> str:
    """Return ns-3's version; raise Absent if ns-3 is missing."""
    require_command("pkg-config", "pkg-config")
    try:
        return run_command("pkg-config", "--modversion", "ns3-network").strip()
    except Absent:
        raise Absent("ns-3 is missing; Debian has it in libns3-dev") from None


def build_program(source: str, module: str) -> Path:
    """Build the ns-3 program in the file ``source`` and return its path; ``module`` is the ns-3 library that it needs.

    Raises Absent if ns-3 or a compiler is missing.
    """
    version()
    # Debian's flags contain "-I/usr;" and static names of libraries that ns-3's libraries link themselves.
    includes = tuple(flag for flag in run_command("pkg-config", "--cflags", module).split() if ";" not in flag)
    libraries = tuple(flag for flag in run_command("pkg-config", "--libs", module).split() if flag[:2] in ("-l", "-L"))
    return compile_source(source, "g++", includes, libraries)


def absent(source: str, module: str) -> str:
    """Return the reason why `build_program` cannot build a program, or ""."""
    try:
        build_program(source, module)
    except Absent as reason:
        return str(reason)
    return ""


def run(program: Path, *arguments: object) -> Timed:
    """Run a program that prints receptions and seconds, and return them."""
    receptions, seconds = run_command(program, *arguments).split()
    return Timed(int(receptions), float(seconds))
