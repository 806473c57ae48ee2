"""One-phase pull of diffusion3 in ns-2 (diffusion_ns2.tcl; Debian's ns2 has diffusion3 in it), over 802.11.

The network and its neighbors are those of the workbench, scaled to the 250 m of ns-2's transmit power; nodes sense
nothing beyond that. One ping receiver is the sink, one ping sender publishes every five seconds, and an interest is
repeated every thirty seconds, the defaults of TinyDiffusion. 802.11 has RTS/CTS, acknowledgements and ARP, and is
faster than 802.15.4; its frames are longer. Each step of PHY, MAC, queue and application is an event. Timed runs write
no trace; the receptions and deliveries are counted in the trace of an identical run beforehand.

ns-2 spends most of its time before the first event, in Tcl, where it makes the nodes. So two times are measured: of the
events alone, and of nodes and events. Both exclude loading ns-2 itself, which compiles its own Tcl library.
"""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from diffusion_workbench import DURATION_S
from native import HERE, Absent, require_command, run_command, scratch_folder, write_network
from networks import Network
from timing import Timed

SCRIPT = HERE / "diffusion_ns2.tcl"
BROADCAST = "ffffffff"


class Counted(NamedTuple):
    """The number of frames that the nodes' MACs received, and the number of readings that arrived at the sink."""

    receptions: int
    delivered: int


def version() -> str:
    """Return ns-2's version. Raises Absent if ns-2 is missing or lacks diffusion3."""
    require_command("ns", "ns2")
    probe = scratch_folder() / "probe.tcl"
    probe.write_text("puts [ns-version]\nputs [Application/DiffApp info subclass]\n")
    words = run_command("ns", probe).split()
    if "Application/DiffApp/OnePhasePullFilter" not in words:
        raise Absent("this ns-2 was built without diffusion3's one-phase pull")
    return words[0]


def absent() -> str:
    """Return the reason why ns-2 cannot run the scenario, or ""."""
    try:
        version()
    except Absent as reason:
        return str(reason)
    return ""


def _run_ns2(network: Network, sink: int, source: int, trace: Path | str, seconds: float) -> list[float]:
    """Run ns-2 for ``seconds`` of simulated time; return process times in s: of loading, making nodes, and the events.

    ``trace`` is the file that ns-2 writes.
    """
    printed = run_command("ns", SCRIPT, write_network(network), sink, source, trace, seconds)
    # ns-2's own lines pass through another buffer, so the script's line may be anywhere among them.
    times = [line.split()[1:] for line in printed.splitlines() if line.startswith("process_s ")]
    if not times:
        raise Absent("ns-2 ended before the scenario did")
    return [float(number) for number in times[0]]


@lru_cache
def count_events(network: Network, sink: int, source: int) -> Counted:
    """Run ns-2 with a trace, and count the receptions and the deliveries in it."""
    trace = scratch_folder() / "ns2.trace"
    _run_ns2(network, sink, source, trace, DURATION_S)
    receptions = delivered = 0
    with trace.open() as lines:
        for line in lines:
            # r 5.019013163 _0_ MAC --- 1908776150 diffusion 0 [13a 0 8 800] ...: the third word is the receiver, the
            # second word in the brackets the destination.
            words = line.split()
            if words[0] == "r" and words[3] == "MAC" and words[6] == "diffusion":
                receptions += 1
                delivered += words[2] == f"_{sink}_" and words[9] != BROADCAST
    return Counted(receptions, delivered)


def diffuse(network: Network, sink: int, source: int, with_nodes: bool) -> Timed:
    """Play the scenario in ns-2; return its receptions and the process time of the events.

    With ``with_nodes`` the time includes making the nodes.
    """
    _, nodes_s, events_s = _run_ns2(network, sink, source, "/dev/null", DURATION_S)
    return Timed(count_events(network, sink, source).receptions, events_s + (nodes_s if with_nodes else 0))
