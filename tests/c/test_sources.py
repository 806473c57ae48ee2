"""The C files: what a compiler and its analyzer say of them, and that the definition file is Python's."""

import subprocess
import sys

import pytest

from tests.c.processes import BOARD, HOW, MOTE
from tests.c_nodes import LIBRARY, WARNINGS, compile_c, includes, needs_compiler, sources
from tests.repository import REPOSITORY

PROTOCOLS = ("flooding", "diffusion")


def test_definition_file_is_what_the_parameters_and_the_registry_of_keys_make_of_it():
    # In a process of its own, where no other test has registered keys.
    command = [sys.executable, REPOSITORY / "hardware" / "definition_file.py"]
    made = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY).stdout
    assert (LIBRARY / "tiny_diffusion.h").read_text(encoding="utf-8") == made, "see hardware/definition_file.py"


@needs_compiler
@pytest.mark.parametrize("profile", ["wide", "strict"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_library_compiles_without_a_warning_of_the_compiler_or_its_analyzer(name, profile):
    room = [f"-DMESSAGE_B={60 if profile == 'wide' else 29}", "-DMAX_DATA=1", "-DMAX_GRADIENTS=1"]
    for source in sources(name):
        compile_c([*WARNINGS, "-O2", "-fanalyzer", *room, *includes(name), "-c", source, "-o", "/dev/null"])


@needs_compiler
def test_mote_compiles_without_a_warning_of_the_compiler_or_its_analyzer():
    for source in sorted([*MOTE.glob("*.c"), *BOARD.glob("*.c")]):
        compile_c([*HOW, "-O2", "-fanalyzer", *includes("diffusion"), "-c", str(source), "-o", "/dev/null"])
