"""Motes in C that are processes of this machine, each behind a line as a board is behind its cable."""

import functools
import subprocess
from contextlib import contextmanager

from tests.c_nodes import LIBRARY, WARNINGS, compile_c, defines_of, includes, scratch, sources

MOTE = LIBRARY / "mote"
BOARD = LIBRARY / "boards" / "posix"
HOW = (*WARNINGS, "-D_POSIX_C_SOURCE=200809L", "-ffp-contract=off", f"-I{MOTE}")


@functools.cache
def program(protocol, options=("-O1",)):
    """The program of a mote for a protocol's sizes."""
    path = scratch() / f"process-{len(list(scratch().glob('process-*')))}"
    named = [f"-D{name}={value}" for name, value in defines_of(protocol)]
    files = [*sources("diffusion"), *(str(one) for folder in (MOTE, BOARD) for one in sorted(folder.glob("*.c")))]
    compile_c([*HOW, *options, *named, *includes("diffusion"), *files, "-o", str(path)])
    return path


@contextmanager
def process(path, port=0, boot=0):
    """A process; gives (process, its URL)."""
    started = subprocess.Popen([path, str(port), str(boot)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield started, f"socket://127.0.0.1:{int(started.stdout.readline())}"
    finally:
        started.kill()
        started.wait()
        started.stdout.close()
        started.stderr.close()
