"""Random and mutated frames for a node in C: the program fuzz.c, compiled and run here, or on an emulated Cortex-M3."""

import shutil
import subprocess
from pathlib import Path

from tests.c_nodes import SANITIZERS, WARNINGS, compile_c, includes, sources

HERE = Path(__file__).parent
PROGRAM = HERE / "fuzz.c"
# Sizes at which lists are always full; without them, the sizes of the definition file hold.
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
CROSS_COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"


def fuzz(case, frames, folder, seed=1, options=("-O0", "-g1", *SANITIZERS)):
    """Compile and run the program here, and return its output.

    Raises AssertionError, with the messages of the program or of a sanitizer, if it finds an error.
    """
    program = Path(folder) / "fuzz"
    compile_c([*options, *_arguments(case, frames, seed), "-o", str(program)])
    return _output_of([program])


def fuzz_cortex_m3(case, frames, folder, seed=1):
    """Compile the program for a Cortex-M3, run it on an emulated one, and return its output."""
    program = Path(folder) / "fuzz.elf"
    chip = ["-mcpu=cortex-m3", "-mthumb", "-Os", "--specs=rdimon.specs"]
    start = [str(HERE / "cortex_m3" / "start.c"), f"-T{HERE / 'cortex_m3' / 'mps2.ld'}"]
    compile_c([*chip, *_arguments(case, frames, seed), *start, "-o", str(program)], CROSS_COMPILER)
    board = ["-M", "mps2-an385", "-nographic", "-semihosting-config", "enable=on,target=native"]
    return _output_of([EMULATOR, *board, "-kernel", program])


def why_no_cortex_m3():
    """Return which tool for an emulated Cortex-M3 is missing and how to install it, or None."""
    packages = {CROSS_COMPILER: "gcc-arm-none-eabi libnewlib-arm-none-eabi", EMULATOR: "qemu-system-arm"}
    missing = [tool for tool in packages if shutil.which(tool) is None]
    return f"{missing[0]} is missing: apt-get install {packages[missing[0]]}" if missing else None


def _arguments(case, frames, seed):
    name, defines = CASES[case]
    defines = (*defines, (name.upper(), 1), ("FRAMES", frames), ("SEED", seed))
    named = [f"-D{key}={value}" for key, value in defines]
    return [*WARNINGS, "-ffp-contract=off", *named, *includes(name), *sources(name), str(PROGRAM)]


def _output_of(command):
    process = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert process.returncode == 0, f"{process.stdout}\n{process.stderr[-4000:]}"
    return process.stdout.strip()
