"""Programs that are killed (SIGKILL) repeatedly, each time at another point, until one runs to its end.

    python -m tests.pipelines.killed bridge FOLDER        capture a scenario; each process dies within a line
    python -m tests.pipelines.killed follower FOLDER OUT  compute windows of a capture; each dies around a file change

The program prints the number of processes that were killed.
"""

import os
import signal
import sys
from pathlib import Path

import pandas  # noqa: F401  # Arrow looks for it: import it once, and not in each child.

import workbench as wb
from workbench.pipelines.live import bridge, following, output
from workbench.pipelines.live.capture import Capture

SCENARIO = wb.Scenario(
    topology=wb.topology.grid(3, 3),
    protocol=wb.Flooding(),
    workload=[wb.subscribe(at=0, what="TEMP GE 0"), wb.publish(at="all", what=wb.SensorField(), every_s=1)],
    duration_s=30,
)
WINDOWS = {"every_s": 3, "late_s": 1}
MOST = 80


def die():
    """Kill this process at once; the signal cannot be caught."""
    os.kill(os.getpid(), signal.SIGKILL)


def captures(folder, calls):
    """Capture the scenario, and die within a line at the write number ``calls``."""
    write, left = Capture._write_content, [calls]

    def torn(self, content):
        left[0] -= 1
        if not left[0]:
            self._file.write(content[: len(content) * 2 // 3])
            die()
        write(self, content)

    Capture._write_content = torn
    bridge.stream(SCENARIO, folder).wait()


def follows(folder, out, calls):
    """Follow a capture in small pieces, and die before the file is flushed or renamed for the ``calls``-th time."""
    left = [calls]

    def counted(function):
        def call(*arguments):
            left[0] -= 1
            if not left[0]:
                die()
            return function(*arguments)

        return call

    following.READ_B = 800 + 200 * calls  # Each process begins its batches at other lines.
    following.WRITE_PAUSE, output.PART_ROWS = 0, 9
    os.fsync, Path.replace = counted(lambda file: None), counted(Path.replace)
    following.follow(folder, out=out, **WINDOWS).wait()


def main(program, *folders):
    """Fork until a child runs to its end; print the number of killed children."""
    act = {"bridge": captures, "follower": follows}[program]
    for killed in range(MOST):
        child = os.fork()
        if not child:
            act(*folders, 2 + killed % 5)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            print(killed)
            return
        assert os.WTERMSIG(status) == signal.SIGKILL, status
    raise SystemExit(f"none of {MOST} processes ran to its end")


if __name__ == "__main__":
    main(*sys.argv[1:])
