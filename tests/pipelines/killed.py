"""Programs that are killed (SIGKILL) again and again, each time at another point, until one comes to its end.

    python -m tests.pipelines.killed bridge FOLDER        a scenario is captured; dies in the middle of a line
    python -m tests.pipelines.killed follower FOLDER OUT  windows of a capture; dies around each change of a file

Prints how many were killed.
"""

import os
import signal
import sys
from pathlib import Path

import pandas  # noqa: F401  # Once, and not in each child: Arrow looks for it.

import workbench as wb
from workbench.pipelines.live import bridge, following
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
    """End at once, as nobody can keep a process from."""
    os.kill(os.getpid(), signal.SIGKILL)


def captures(folder, calls):
    """Capture the scenario; die in the middle of a line, before so many calls of write are done."""
    write, left = Capture._write, [calls]

    def torn(self, content):
        left[0] -= 1
        if not left[0]:
            self._file.write(content[: len(content) * 2 // 3])
            die()
        write(self, content)

    Capture._write = torn
    bridge.stream(SCENARIO, folder).wait()


def follows(folder, out, calls):
    """Follow a capture in small pieces; die before so many files have been written or have got their names."""
    left = [calls]

    def counted(function):
        def call(*arguments):
            left[0] -= 1
            if not left[0]:
                die()
            return function(*arguments)

        return call

    following.READ_B = 2000
    os.fsync, Path.replace = counted(lambda file: None), counted(Path.replace)
    following.follow(folder, out=out, **WINDOWS).wait()


def main(what, *folders):
    """Fork until a child comes to its end."""
    act = {"bridge": captures, "follower": follows}[what]
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
    raise SystemExit(f"not one of {MOST} came to its end")


if __name__ == "__main__":
    main(*sys.argv[1:])
