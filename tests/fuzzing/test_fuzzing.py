"""A node of any protocol among frames that no run would send it."""

import pytest

import workbench as wb
from tests.families import family_except
from workbench.errors import FuzzError, ParameterError
from workbench.protocols.contract import Node
from workbench.protocols.protocol import Protocol

FRAMES = 10_000
# Small memories, so that they are full long before the end: what still grows then has no bound.
PROTOCOLS = {
    "flooding": wb.Flooding(max_events=100),
    "gossip": wb.Gossip(forwarding_probability=0.8, max_events=100),
    "gossip of pieces": wb.Gossip(pieces=3, max_events=100, max_partial=20),
    "diffusion": wb.Diffusion(),
    "coded diffusion": wb.CodedDiffusion(max_known=100, max_events=20),
    "coded diffusion of four chunks": wb.CodedDiffusion(generation_size=4, max_known=100, max_events=20),
    "tinymq": wb.TinyMQ(roots=(0, 8), max_known=100, max_queries=50, max_waiting=20),
    "tinymq at its root": wb.TinyMQ(roots=(4,), max_known=100, max_queries=50, max_waiting=20),
    "pub2sub": wb.Pub2Sub(roots=(0, 8), max_known=100, max_queries=50, max_waiting=20),
    "printed": wb.PrintedTinyMQ(roots=(0,), max_known=100, max_queries=50, max_waiting=20),
    "dps": wb.DPS(filter_bits=256, max_history=100, max_links=8),
    "dps that retains": wb.DPS(ttl_s=30, acknowledge=True, max_history=100, max_retained=20, max_links=8),
}
MOST_FRAMES = 60  # of one call: a node can report all its state to eight neighbors
MOST_GROWTH = 1.25


@pytest.mark.parametrize("name", family_except(PROTOCOLS, "flooding", "diffusion", "coded diffusion", "tinymq", "dps"))
def test_a_node_survives_any_frames_in_bounded_memory(name):
    fuzzed = wb.fuzz(PROTOCOLS[name], FRAMES, seed=3)
    assert fuzzed.frames == FRAMES and fuzzed.drops
    assert fuzzed.most_frames <= MOST_FRAMES
    assert fuzzed.growth < MOST_GROWTH, fuzzed.memory_B


def test_the_same_seed_gives_the_same_trial_and_another_seed_another():
    first, again, other = (wb.fuzz(wb.Flooding(), 400, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.drops != other.drops


class _Grudge(Node):
    """Sends a frame for each publication; it raises on any other frame."""

    describe = staticmethod(lambda frame, broadcast=True: ("talk", 0, 0))

    def publish(self, attributes, now, payload=b""):
        self.outbox.append((None, b"talk"))
        return 0

    def receive(self, frame, previous_hop, now, broadcast=True):
        if frame[:4] != b"talk":
            raise IndexError("no such talk")


class _Sleepless(_Grudge):
    def receive(self, frame, previous_hop, now, broadcast=True):
        if frame[:4] != b"talk":
            self.next_wake = now

    def wake(self, now):
        self.next_wake = now


class _Hoarder(_Grudge):
    def start(self, now, boot=0):
        self.stored = []

    def receive(self, frame, previous_hop, now, broadcast=True):
        self.stored.append(bytes(100))


def _protocol(of):
    return type(of.__name__, (Protocol,), {"node": of})()


def test_a_node_that_raises_is_found_with_the_frame_that_made_it():
    with pytest.raises(
        FuzzError, match=r"receive\(\) after .* frames .*: it raised IndexError: no such talk"
    ) as caught:
        wb.fuzz(_protocol(_Grudge), 200)
    assert isinstance(caught.value.__cause__, IndexError)


def test_a_node_that_never_sleeps_is_found():
    with pytest.raises(FuzzError, match="next_wake is .* it must be after the present"):
        wb.fuzz(_protocol(_Sleepless), 200)


def test_a_node_that_forgets_nothing_grows():
    assert wb.fuzz(_protocol(_Hoarder), 2000).growth > MOST_GROWTH


def test_what_is_no_protocol_is_refused_in_a_sentence():
    with pytest.raises(ParameterError, match="it must be an instance of a protocol"):
        wb.fuzz(wb.Flooding)
    with pytest.raises(ParameterError, match="frames"):
        wb.fuzz(wb.Flooding(), 3)
