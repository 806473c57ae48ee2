"""A mesh of 25 processes with loops: what is published reaches all, and still does when one has crashed and is back."""

import time
from contextlib import ExitStack, suppress
from queue import Empty

import pytest

from tests.protocols.dps.processes import WITHIN_S, Command

SIDE = 5
MIDDLE = (2, 2)
SUBSCRIBERS = {(0, 4), (4, 0), (4, 4), (1, 3), (3, 2)}
# Between real nodes it is seconds. Shorter than this, and links are lost on a busy machine, though they come back.
TIMERS = ("--update-ms", "200", "--link-loss", "1", "--relink", "0.3")


class Mesh:
    """A grid; each node links to those above it and to the left of it. The publisher is in the corner."""

    def __init__(self, stack):
        self.stack = stack
        self.nodes = {}
        self.count = 0
        for diagonal in range(2 * SIDE - 1):
            places = [(row, diagonal - row) for row in range(SIDE) if 0 <= diagonal - row < SIDE]
            started = {place: self.start(place) for place in places}
            self.nodes.update(started)
            for node in started.values():
                node.expect("listening")

    def start(self, place, *more):
        row, column = place
        beside = [self.nodes[one].address for one in ((row - 1, column), (row, column - 1)) if one in self.nodes]
        links = [option for address in beside for option in ("-p", address)]
        if place == (0, 0):
            return self.command("publish", *more)
        if place in SUBSCRIBERS:
            return self.command("subscribe", "news/+/now", "-a", name(place), *links, *more)
        return self.command("bridge", *links, *more)

    def command(self, *arguments):
        return self.stack.enter_context(Command(*arguments, *TIMERS))

    def publish_until_all_have_acknowledged(self):
        """Publish time and again, as what finds no way is not repeated."""
        publisher = self.nodes[0, 0]
        end_s = time.monotonic() + 4 * WITHIN_S  # a busy machine misses signs of life, and the mesh heals again
        missing = {name(place) for place in SUBSCRIBERS}
        while missing:
            assert time.monotonic() < end_s, f"no acknowledgement of {missing}"
            self.count += 1
            publisher.write(f"news/x/now -a -m {self.count}")
            missing -= {line["data"] for line in lines_within(publisher, 0.5, missing)}

    def wait_until_a_neighbor_has_noticed(self, address):
        """Not all will: nobody looks after a link that is muted."""
        row, column = MIDDLE
        neighbors = [
            self.nodes[one] for one in ((row - 1, column), (row, column - 1), (row + 1, column), (row, column + 1))
        ]
        end_s = time.monotonic() + WITHIN_S
        while time.monotonic() < end_s:
            for neighbor in neighbors:
                with suppress(Empty):
                    line = neighbor.next(0.05)
                    if line["event"] == "link" and (line["neighbor"], line["state"]) == (address, "gone"):
                        return
        raise AssertionError("no neighbor has noticed the crash")


def name(place):
    return f"subscriber {place[0]} {place[1]}"


def lines_within(publisher, seconds, missing):
    """Acknowledgements until all that are missing have come, or the time is over."""
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
def test_mesh_of_processes_delivers_across_loops_a_crash_and_a_return():
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
        for place in SUBSCRIBERS:
            numbers = [int(line["data"]) for line in mesh.nodes[place].all_lines() if line["event"] == "publication"]
            assert len(numbers) == len(set(numbers)), f"{name(place)} was given a publication twice"
