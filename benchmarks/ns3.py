"""ns-3 as its users know it: programs in C++ against the installed libraries (Debian's libns3-dev, or any other).

A program prints "<receptions> <seconds of process time>"; the seconds begin when it makes the nodes, so neither loading
the libraries nor reading the network is counted.
"""

from pathlib import Path

from native import Absent, built, need, output
from timing import Timed


def version() -> str:
    """ns-3's version; Absent if there is none."""
    need("pkg-config", "pkg-config")
    try:
        return output("pkg-config", "--modversion", "ns3-network").strip()
    except Absent:
        raise Absent("there is no ns-3; Debian has it in libns3-dev") from None


def program(source: str, module: str) -> Path:
    """The built program; Absent if there is no ns-3 or no compiler."""
    version()
    # Debian's files have a "-I/usr;" and the static names of libraries that ns-3's own bring along.
    includes = tuple(flag for flag in output("pkg-config", "--cflags", module).split() if ";" not in flag)
    libraries = tuple(flag for flag in output("pkg-config", "--libs", module).split() if flag[:2] in ("-l", "-L"))
    return built(source, "g++", includes, libraries)


def absent(source: str, module: str) -> str:
    """Why such a program cannot run, or nothing."""
    try:
        program(source, module)
    except Absent as reason:
        return str(reason)
    return ""


def run(program: Path, *arguments: object) -> Timed:
    """Run a program that prints receptions and seconds."""
    receptions, seconds = output(program, *arguments).split()
    return Timed(int(receptions), float(seconds))
