"""Motes in C that are processes of this machine, each behind a line as a board is behind its cable."""

import functools
import subprocess
from contextlib import contextmanager

from tests.c_nodes import LIBRARY, WARNINGS, compile_c, defines_of, folder_of, includes, scratch, sources

MOTE = LIBRARY / "mote"
BOARD = LIBRARY / "boards" / "posix"
FLAGS = (*WARNINGS, "-D_POSIX_C_SOURCE=200809L", "-ffp-contract=off")


def mote_sources(name):
    """Return the C files of a mote's program, without those of a board and of the library."""
    return [str(path) for folder in (MOTE, folder_of(name) / "mote") for path in sorted(folder.glob("*.c"))]


def mote_includes(name):
    """Return the compiler options for the header folders of a mote's program."""
    return [*includes(name), f"-I{MOTE}", f"-I{folder_of(name) / 'mote'}"]


def program(protocol, options=("-O1",)):
    """Return the path of a mote's program, compiled for the sizes and the filters of this protocol."""
    room = {**dict(defines_of(protocol)), **protocol.room_in_c(1)}
    return _compiled(type(protocol).__name__.lower(), tuple(sorted(room.items())), options)


@functools.cache
def _compiled(name, sizes, options):
    path = scratch() / f"process-{len(list(scratch().glob('process-*')))}"
    named = [f"-D{size}={value}" for size, value in sizes]
    files = [*sources(name), *mote_sources(name), *(str(file) for file in sorted(BOARD.glob("*.c")))]
    compile_c([*FLAGS, *options, *named, *mote_includes(name), *files, "-o", str(path)])
    return path


@contextmanager
def process(path, port=0, boot=0):
    """Start a mote's program, yield (process, its URL), and kill it at the end."""
    started = subprocess.Popen([path, str(port), str(boot)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield started, f"socket://127.0.0.1:{int(started.stdout.readline())}"
    finally:
        started.kill()
        started.wait()
        started.stdout.close()
        started.stderr.close()
