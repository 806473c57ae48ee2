"""The sums of `workbench.sim.state_times` in machine code."""

from typing import Any

from numba import njit

from workbench.sim.state_times import add_up

add_up_compiled: Any = njit(cache=True)(add_up)
