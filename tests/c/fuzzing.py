"""Random and mutated frames for a node in C, under sanitizers: the program fuzz.c, compiled and run."""

import subprocess
from pathlib import Path

from tests.c_nodes import SANITIZERS, WARNINGS, compile_c, includes, sources

PROGRAM = Path(__file__).parent / "fuzz.c"
# Sizes at which lists are full all the time, and those of the definition file.
SMALL = (
    *(("MAX_INTERESTS", 2), ("MAX_GRADIENTS", 2), ("MAX_REINFORCEMENTS", 2), ("MAX_DATA", 2), ("MAX_SINKS", 2)),
    *(("MAX_NEXT_HOPS", 2), ("MAX_SUBSCRIPTIONS", 2), ("MAX_BLACK", 2), ("MAX_SEEN_INTERESTS", 2)),
)
CASES = {
    "diffusion": ("diffusion", ()),
    "diffusion, strict": ("diffusion", (("MESSAGE_B", 29),)),
    "diffusion, small lists": ("diffusion", (*SMALL, ("MAX_FILTER_SOURCES", 2), ("MAX_FILTER_WINDOW", 2))),
    "flooding": ("flooding", ()),
    "flooding, small lists": ("flooding", (("MAX_EVENTS", 3), ("MAX_SUBSCRIPTIONS", 2))),
}


def fuzz(case, frames, folder, seed=1):
    """What the program prints at its end; AssertionError with what it or a sanitizer says if it finds something."""
    name, defines = CASES[case]
    program = Path(folder) / case.replace(" ", "-").replace(",", "")
    named = [f"-D{key}={value}" for key, value in (*defines, (name.upper(), 1))]
    compile_c(
        [*WARNINGS, "-O1", "-g", *SANITIZERS, *named, *includes(name), *sources(name), str(PROGRAM), "-o", program]
    )
    ran = subprocess.run([program, str(frames), str(seed)], capture_output=True, text=True)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr[-4000:]}"
    return ran.stdout.strip()
