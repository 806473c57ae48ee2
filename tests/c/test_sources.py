"""The C files compile without warnings of a compiler and its analyzer, and the definition file matches Python."""

import subprocess
import sys

import pytest

from tests.c.processes import BOARD, FLAGS, MOTE, mote_includes
from tests.c_nodes import LIBRARY, WARNINGS, compile_c, folder_of, includes, needs_compiler, sources
from tests.repository import REPOSITORY
from workbench.motes import in_c

sys.path.append(str(REPOSITORY / "hardware"))
import frame_header

# In `make test` the sanitizers of test_fuzz.py and test_process.py find the defects that the analyzer would find.
ANALYZER = pytest.param("-fanalyzer", marks=pytest.mark.family)
PROTOCOLS = ("flooding", "diffusion")
PROGRAMS = [("flooding", ()), ("diffusion", ()), ("diffusion", ("-DMAX_FILTERS=2",))]
NO_CORTEX_M3 = in_c.missing(in_c.CORTEX_M3)


def test_definition_file_is_generated_from_the_parameters_and_the_registry_of_keys():
    # In a process of its own, where no other test has registered keys.
    command = [sys.executable, REPOSITORY / "hardware" / "definition_file.py"]
    generated = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY).stdout
    assert (LIBRARY / "tiny_diffusion.h").read_text(encoding="utf-8") == generated, "see hardware/definition_file.py"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_header_file_of_frames_is_generated_from_the_table_of_fields(name):
    text = (folder_of(name) / "frames.h").read_text(encoding="utf-8")
    assert text == frame_header.text(name), "see hardware/frame_header.py"


@needs_compiler
@pytest.mark.parametrize("analyzer", ["", ANALYZER])
@pytest.mark.parametrize("profile", ["wide", "strict"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_library_compiles_without_a_warning_of_the_compiler_or_its_analyzer(name, profile, analyzer):
    room = [f"-DMESSAGE_B={60 if profile == 'wide' else 29}", "-DMAX_DATA=1", "-DMAX_GRADIENTS=1"]
    # Files that both protocols share are compiled with diffusion.
    shared = [] if name == "diffusion" else sources("diffusion")
    flags = [*WARNINGS, "-O2", *room, *([analyzer] if analyzer else []), *includes(name)]
    for source in sources(name):
        if source not in shared:
            compile_c([*flags, "-c", source, "-o", "/dev/null"])


@needs_compiler
@pytest.mark.parametrize("analyzer", ["", ANALYZER])
@pytest.mark.parametrize(("name", "room"), PROGRAMS)
def test_mote_compiles_without_a_warning_of_the_compiler_or_its_analyzer(name, room, analyzer):
    flags = [*FLAGS, "-O2", *([analyzer] if analyzer else []), *room, *mote_includes(name)]
    for source in program_of(name, room, BOARD):
        compile_c([*flags, "-c", source, "-o", "/dev/null"])


def program_of(name, room, board):
    """Return the files of a mote's program; the last program includes the files that all programs share."""
    own = sorted((folder_of(name) / "mote").glob("*.c"))
    shared = [*sorted(MOTE.glob("*.c")), *sorted(board.glob("*.c"))]
    return [str(path) for path in (*own, *(shared if (name, room) == PROGRAMS[-1] else ()))]


@pytest.mark.skipif(NO_CORTEX_M3 is not None, reason=str(NO_CORTEX_M3))
@pytest.mark.parametrize(("name", "room"), PROGRAMS)
def test_mote_compiles_for_a_small_board_without_a_warning(name, room):
    chip = ["-mcpu=cortex-m3", "-mthumb", "-Os", "-ffreestanding", "-DENFRAMER_B=258"]
    for source in program_of(name, room, LIBRARY / "boards" / "mps2_an385"):
        flags = [*WARNINGS, *chip, *room, *mote_includes(name), "-c", source, "-o", "/dev/null"]
        compile_c(flags, "arm-none-eabi-gcc")


@needs_compiler
@pytest.mark.parametrize("byte", ["INTERESTS", "GRADIENTS", "REINFORCEMENTS", "ATTRIBUTES", "SINKS", "NEXT_HOPS"])
def test_size_that_overflows_its_counter_is_refused(byte):
    for name, most in ((f"MAX_{byte}", 255), ("MAX_DATA", 65535), ("MESSAGE_B", 255)):
        for size, is_refused in ((most, False), (most + 1, True)):
            source = "attributes.c" if name == "MESSAGE_B" else "node.c"
            path = next(file for file in sources("diffusion") if file.endswith(f"/{source}"))
            command = ["gcc", "-std=c99", "-fsyntax-only", f"-D{name}={size}", *includes("diffusion"), path]
            process = subprocess.run(command, capture_output=True, text=True)
            assert (process.returncode != 0) is is_refused, process.stderr
            assert not is_refused or f"{name.lower()}_fits" in process.stderr
