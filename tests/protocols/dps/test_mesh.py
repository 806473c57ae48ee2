"""A mesh of 25 processes with loops: publications reach all subscribers, even during a crash and after a restart."""

import time
from contextlib import ExitStack, suppress
from queue import Empty

import pytest

from tests.protocols.dps.processes import WITHIN_S, Command

SIDE = 5
MIDDLE = (2, 2)
SUBSCRIBERS = {(0, 4), (4, 0), (4, 4), (1, 3), (3, 2)}
# The default is seconds. With a shorter time, links would be lost on a busy machine, though they recover.
TIMERS = ("--update-ms", "200", "--link-loss", "1", "--relink", "0.3")


class Mesh:
    """A grid of processes; each links to those above and to the left of it. The publisher is in the corner."""

    def __init__(self, stack):
        self.stack = stack
        self.nodes = {}
        self.count = 0
        for diagonal in range(2 * SIDE - 1):
            places = [(row, diagonal - row) for row in range(SIDE) if 0 <= diagonal - row < SIDE]
            started = {position: self.start(position) for position in places}
            self.nodes.update(started)
            for node in started.values():
                node.expect("listening")

    def start(self, position, *more):
        row, column = position
        beside = [
            self.nodes[position].address
            for position in ((row - 1, column), (row, column - 1))
            if position in self.nodes
        ]
        links = [option for address in beside for option in ("-p", address)]
        if position == (0, 0):
            return self.command("publish", *more)
        if position in SUBSCRIBERS:
            return self.command("subscribe", "news/+/now", "-a", name(position), *links, *more)
        return self.command("bridge", *links, *more)

    def command(self, *arguments):
        return self.stack.enter_context(Command(*arguments, *TIMERS))

    def publish_until_all_have_acknowledged(self):
        """Publish repeatedly until all subscribers have acknowledged; undelivered publications are not repeated."""
        publisher = self.nodes[0, 0]
        end_s = time.monotonic() + 4 * WITHIN_S  # a busy machine misses keep-alives, and the mesh heals again
        missing = {name(position) for position in SUBSCRIBERS}
        while missing:
            assert time.monotonic() < end_s, f"no acknowledgement of {missing}"
            self.count += 1
            publisher.write(f"news/x/now -a -m {self.count}")
            missing -= {line["data"] for line in lines_within(publisher, 0.5, missing)}

    def wait_until_a_neighbor_has_noticed(self, address):
        """Wait until a neighbor has noticed a crash; neighbors with a muted link do not watch it."""
        row, column = MIDDLE
        neighbors = [
            self.nodes[position]
            for position in ((row - 1, column), (row, column - 1), (row + 1, column), (row, column + 1))
        ]
        end_s = time.monotonic() + WITHIN_S
        while time.monotonic() < end_s:
            for neighbor in neighbors:
                with suppress(Empty):
                    line = neighbor.next(0.05)
                    if line["event"] == "link" and (line["neighbor"], line["state"]) == (address, "gone"):
                        return
        raise AssertionError("no neighbor has noticed the crash")


def name(position):
    return f"subscriber {position[0]} {position[1]}"


def lines_within(publisher, seconds, missing):
    """Yield acknowledgements until those of all missing subscribers have arrived, or the time is over."""
    missing = set(missing)
    end_s = time.monotonic() + seconds
    while missing:
        try:
            line = publisher.next(end_s - time.monotonic())
        except Empty:
            return
        assert line is not None, "the publisher has ended"
        if line["event"] == "acknowledgement":
            missing.discard(line["data"])
            yield line


@pytest.mark.family
def test_mesh_of_processes_delivers_despite_loops_a_crash_and_a_restart():
    with ExitStack() as stack:
        mesh = Mesh(stack)
        mesh.publish_until_all_have_acknowledged()

        mesh.nodes[0, 0].write("news/kept -t 100 -m kept")
        late = mesh.command("subscribe", "news/kept", "-p", mesh.nodes[4, 4].address)
        assert late.expect("publication")["data"] == "kept"

        middle = mesh.nodes[MIDDLE]
        middle.kill()
        mesh.wait_until_a_neighbor_has_noticed(middle.address)
        mesh.nodes[MIDDLE] = mesh.start(MIDDLE, "--listen", middle.address)
        mesh.nodes[MIDDLE].expect("link")
        mesh.publish_until_all_have_acknowledged()

        corner = mesh.nodes[4, 4]
        assert late.interrupt() == 0
        corner.expect("link", neighbor=late.address, state="gone")
        for position in SUBSCRIBERS:
            numbers = [int(line["data"]) for line in mesh.nodes[position].all_lines() if line["event"] == "publication"]
            assert len(numbers) == len(set(numbers)), f"{name(position)} got a publication twice"
