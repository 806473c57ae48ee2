"""The sums of `workbench.sim.radio_states` in machine code."""

from typing import Any

from numba import njit

from workbench.sim.radio_states import add_up

add_up_compiled: Any = njit(cache=True)(add_up)
