"""Compiled code that adds up the time of radios in each state: `state_times.add_up`, for runs with many intervals."""

from typing import Any

from numba import njit
from numba.extending import register_jitable

from workbench.sim.low_power import checks_between_us, checks_us
from workbench.sim.state_times import add_up

register_jitable(checks_us)
register_jitable(checks_between_us)

add_up_compiled: Any = njit(cache=True)(add_up)
