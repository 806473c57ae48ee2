"""Limits of a process that runs a point of a sweep: a timer that kills the process, and a bound on its memory.

The code of a point cannot remove these limits by accident.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from mmap import mmap
from pathlib import Path

KILL_AFTER_S = 1.0  # time after the time limit at which a point that is still running is killed
SHARE_OF_MEMORY = 0.75  # share of the machine's memory for one point, if no limit is set
DEADLINE = struct.Struct("!d")  # in the seconds of time.monotonic, which all processes of a machine share
NEVER = float("inf")
_MONOTONIC, _BY_SIGNAL = 1, 0  # clock and kind of notification, as <time.h> and <signal.h> number them on Linux
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Timer:
    """A timer that ends this process if a point takes longer than ``timeout_s`` seconds (None: no limit).

    At the limit the timer sends SIGALRM, which a point may ignore or block. `KILL_AFTER_S` seconds later a timer of
    Linux (``backstop``) sends SIGKILL. ``shared`` is memory shared with the server that forked this process. The timer
    writes its deadline there, at ``offset``, so that the server can distinguish a late point from a process that was
    killed from outside.
    """

    def __init__(
        self, timeout_s: float | None, backstop: Backstop | None = None, shared: mmap | None = None, offset: int = 0
    ) -> None:
        self._timeout_s, self._backstop = timeout_s, backstop
        self._shared, self._offset = shared, offset

    def start(self) -> None:
        """Start the timer. The caller does this when a point begins to run."""
        if self._timeout_s is not None:
            self._arm_timers(self._timeout_s, self._timeout_s + KILL_AFTER_S)

    def stop(self) -> None:
        """Stop the timer. The caller does this when a point ends."""
        if self._timeout_s is not None:
            self._arm_timers(0.0, 0.0)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the timer inside the context, so that loading and compiling code does not count."""
        left_s, kill_left_s = self._arm_timers(0.0, 0.0)
        try:
            yield
        finally:
            self._arm_timers(left_s, kill_left_s)

    def _arm_timers(self, alarm_s: float, kill_s: float) -> tuple[float, float]:
        """Set the timers of SIGALRM and SIGKILL to ``alarm_s`` and ``kill_s`` seconds (0.0 stops a timer).

        Return the seconds that each timer had left.
        """
        left_s, _ = signal.setitimer(signal.ITIMER_REAL, alarm_s)
        kill_left_s = 0.0 if self._backstop is None else self._backstop.arm(kill_s)
        if self._shared is not None:
            is_set = self._backstop is not None and kill_s > 0
            DEADLINE.pack_into(self._shared, self._offset, time.monotonic() + kill_s - 0.5 if is_set else NEVER)
        return left_s, kill_left_s


class _Sigevent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_byte * 48),
    )


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Backstop:
    """A timer of Linux that kills this process (SIGKILL) when its time is over.

    Raises OSError or AttributeError on other systems.
    """

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError(f"the timer that kills a process needs Linux; this system is {sys.platform}")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._id = ctypes.c_void_p()
        event = _Sigevent(None, signal.SIGKILL, _BY_SIGNAL)
        if self._libc.timer_create(_MONOTONIC, ctypes.byref(event), ctypes.byref(self._id)):
            raise OSError(ctypes.get_errno(), "cannot create the timer that kills this process (timer_create)")

    def arm(self, seconds: float) -> float:
        """Set the timer to kill this process after ``seconds`` (0.0 stops it); return the seconds that it had left."""
        previous_setting, time_left = _Itimerspec(), _Timespec(int(seconds), int(seconds % 1 * 1e9))
        new_setting = _Itimerspec(_Timespec(0, 0), time_left)
        if self._libc.timer_settime(self._id, 0, ctypes.byref(new_setting), ctypes.byref(previous_setting)):
            raise OSError(ctypes.get_errno(), "cannot set the timer that kills this process (timer_settime)")
        return previous_setting.value.seconds + previous_setting.value.nanoseconds / 1e9


def backstop() -> Backstop | None:
    """Return a timer that kills this process (`Backstop`), or None if the platform does not have such a timer."""
    with suppress(OSError, AttributeError):
        return Backstop()
    return None


def limit_memory(memory_MB: float | None) -> None:
    """Limit this process's memory to ``memory_MB`` megabytes above its present use.

    With None, the limit is the fraction `SHARE_OF_MEMORY` of the machine's memory. An allocation beyond the limit
    raises MemoryError. On a platform that cannot limit memory, the function does nothing.
    """
    import resource

    allowed_B = SHARE_OF_MEMORY * machine_B() if memory_MB is None else memory_MB * 1e6
    with suppress(OSError, ValueError):
        used_pages = int(Path("/proc/self/statm").read_text().split()[0])
        _, hard_limit_B = resource.getrlimit(resource.RLIMIT_AS)
        limit_B = int(allowed_B) + used_pages * os.sysconf("SC_PAGE_SIZE")
        if hard_limit_B != resource.RLIM_INFINITY:
            limit_B = min(limit_B, hard_limit_B)
        resource.setrlimit(resource.RLIMIT_AS, (limit_B, hard_limit_B))


def machine_B() -> float:
    """Return the memory in bytes of this machine, or of its container if the container has less."""
    sizes_B = [float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))]
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):
            sizes_B.append(float(Path(path).read_text()))
    return min(sizes_B)
