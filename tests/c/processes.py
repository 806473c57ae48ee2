"""Motes in C that are processes of this machine, each behind a line as a board is behind its cable."""

import functools
import subprocess
from contextlib import contextmanager

from tests.c_nodes import LIBRARY, WARNINGS, compile_c, defines_of, folder_of, includes, scratch, sources

MOTE = LIBRARY / "mote"
BOARD = LIBRARY / "boards" / "posix"
HOW = (*WARNINGS, "-D_POSIX_C_SOURCE=200809L", "-ffp-contract=off")


def mote_sources(name):
    """The C files of a mote's program, without a board and the library."""
    return [str(path) for folder in (MOTE, folder_of(name) / "mote") for path in sorted(folder.glob("*.c"))]


def mote_includes(name):
    """Where a compiler finds the headers of a mote's program."""
    return [*includes(name), f"-I{MOTE}", f"-I{folder_of(name) / 'mote'}"]


def program(protocol, options=("-O1",)):
    """The program of a mote for a protocol's sizes, and its filters."""
    room = {**dict(defines_of(protocol)), **protocol.room_in_c(1)}
    return _compiled(type(protocol).__name__.lower(), tuple(sorted(room.items())), options)


@functools.cache
def _compiled(name, sizes, options):
    path = scratch() / f"process-{len(list(scratch().glob('process-*')))}"
    named = [f"-D{size}={value}" for size, value in sizes]
    files = [*sources(name), *mote_sources(name), *(str(one) for one in sorted(BOARD.glob("*.c")))]
    compile_c([*HOW, *options, *named, *mote_includes(name), *files, "-o", str(path)])
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
