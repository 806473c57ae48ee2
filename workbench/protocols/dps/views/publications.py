"""A publication's way over the mesh: hops that led to a delivery, hops in vain, and acknowledgements.

    publications(trace)                     what was published: [Published], in order of time
    publication_path(run, which)            the way of one of them: a `Path`; paths(run): of all of them
    publication_drawing(run, which)         its hops as arrows over the mesh
    publication_slides(run, which)          hop by hop, with a slider

Theory of operation
    A hop is a frame of the publication that one node sent another. The first one that brought it to a node is how the
    node got it; others are *repeated*: the mesh had a loop there. From each node with a delivery the first hops lead
    back to the publisher, and these hops are *useful*; all others that were first somewhere are *in vain*. A node in
    vain has a mark of its reason:

    dead_end        no filter of its own says yes, and it does not pass it on: somebody's said yes without need
    no_match        its own filter said yes, its topics no
    out_of_range    its topics said yes, its attributes no (TEMP GE 25 is the topic TEMP/+)

    ``matches`` says at how many places the publication was wanted at all. What went over a link in vain need not be a
    false positive of Bloom's: "a/+" says yes to "a/b/c", and "TEMP GE 25" to TEMP 20, at any length; and interests
    which came over a link before it was muted may still stand in somebody's sum (``count_muted``). Bloom's share is
    what is above the same run with the longest filter.

Cost
    A step for each frame of the publications that are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.errors import ParameterError
from workbench.protocols.dps.views.filters import MOST_NAMES, WIDTH, MeshScene, mesh_entries, subscribers
from workbench.protocols.dps.views.looks import ACKNOWLEDGED, IN_VAIN, REPEATED, USEFUL
from workbench.protocols.dps.views.mesh import mesh_of, protocol_of
from workbench.views import palette
from workbench.views.drawing import Drawing
from workbench.views.ground import Plan, lay_out
from workbench.views.legend import Entry
from workbench.views.player.columns import Columns
from workbench.views.player.intervals import read
from workbench.views.stepper import Stepper

PUBLICATION, ACKNOWLEDGEMENT = "publication", "acknowledgement"
REASONS = ("dead_end", "no_match", "out_of_range")
MOST_PATHS = 200
MOST_SLIDES = 60

What = tuple[int, int]  # origin and sequence of a publication in a trace


class Published(NamedTuple):
    """A publication: its publisher, its number in a trace (series << 32 | number), when, and what."""

    node: int
    sequence: int
    at_us: int
    text: str

    @property
    def name(self) -> str:
        """What it is called in figures."""
        return f"{self.text or 'a publication'} of node {self.node}, {self.at_us / 1e6:,.2f} s"


class Hop(NamedTuple):
    """A frame from sender to receiver. look: useful, in vain, repeated, lost, acknowledged."""

    sender: int
    receiver: int
    from_us: int
    arrived_us: int
    look: str


class Mark(NamedTuple):
    """What a publication met at a node: look is delivered, or one of `REASONS`."""

    node: int
    look: str
    at_us: int


@dataclass(frozen=True)
class Path:
    """The way of a publication, hops and marks in order of time; matches: how often it was delivered."""

    what: Published
    hops: tuple[Hop, ...]
    marks: tuple[Mark, ...]
    matches: int

    def count(self, look: str) -> int:
        """How many hops look so."""
        return sum(hop.look == look for hop in self.hops)

    def nodes(self, look: str) -> list[int]:
        """The nodes with a kind of mark, ascending."""
        return sorted({mark.node for mark in self.marks if mark.look == look})

    def until(self, hops: int) -> Path:
        """The path as far as its first so many hops, with what had happened by then."""
        kept = self.hops[:hops]
        last_us = max((hop.arrived_us for hop in kept), default=self.what.at_us)
        marks = tuple(mark for mark in self.marks if mark.at_us <= last_us)
        is_whole = len(kept) == len(self.hops)
        matches = self.matches if is_whole else sum(mark.look == "delivered" for mark in marks)
        return Path(self.what, kept, marks, matches)

    def in_words(self) -> str:
        """The path in a sentence."""
        forward = [hop for hop in self.hops if hop.look != "acknowledged"]
        if not forward:
            return f"no filter said yes: it went over no link; delivered {self.matches} times"
        said = [f"{len(forward)} hops", f"{self.count('useful')} of them towards a delivery"]
        said += [
            f"{count} {name}"
            for name, count in (
                ("in vain", self.count("in vain")),
                ("repeated", self.count("repeated")),
                ("lost", self.count("lost")),
            )
            if count
        ]
        last_us = max((hop.arrived_us for hop in self.hops), default=self.what.at_us)
        text = ", ".join(said) + f"; delivered {self.matches} {'time' if self.matches == 1 else 'times'}"
        return f"{text}; {(last_us - self.what.at_us) / 1000:,.1f} ms"


def publications(trace: pa.Table) -> list[Published]:
    """What was published, in order of time. DataError if the table is no trace."""
    columns = read(trace)
    said = columns.where(event="published")
    places = [columns[name][said].tolist() for name in ("node", "sequence")]
    texts = dict(zip(zip(*places, strict=True), columns.text("detail", said).tolist(), strict=True))
    rows = columns.where(event="originated", message=PUBLICATION)
    numbers = [columns[name][rows].tolist() for name in ("node", "sequence", "time_us", "value")]
    return [
        Published(node, sequence, time_us, texts.get((node, reading), ""))
        for node, sequence, time_us, reading in zip(*numbers, strict=True)
    ]


def publication_path(run: Any, which: int = 0) -> Path:
    """The way of a run's publication, by its place in `publications` (negative: from the end).

    Raises ParameterError if there is none, or for a run of another protocol.
    """
    protocol_of(run)
    known = publications(run.trace)
    if not -len(known) <= which < len(known):
        raise ParameterError(f"publication_path: which is {which!r}; this run has {len(known)} publications")
    return _paths(read(run.trace), [known[which]])[0]


def paths(run: Any, most: int = MOST_PATHS) -> list[Path]:
    """The ways of the first ``most`` publications of a run."""
    protocol_of(run)
    return _paths(read(run.trace), publications(run.trace)[:most])


def _paths(columns: Columns, wanted: list[Published]) -> list[Path]:
    # Most rows of a long run are about other messages, and need not be looked at one by one.
    origins = np.array([one.node for one in wanted], dtype=np.int64)
    numbers = np.array([one.sequence for one in wanted], dtype=np.int64)
    chosen = np.isin(columns["origin"], origins) & np.isin(columns["sequence"], numbers)
    frames = _frames(columns, chosen)
    marks = _marks(columns, chosen)
    return [
        _path(one, frames.get((one.node, one.sequence), []), marks.get((one.node, one.sequence), [])) for one in wanted
    ]


def _frames(columns: Columns, chosen: np.ndarray) -> dict[What, list[tuple[Hop, str]]]:
    """The frames of each publication with their messages, in order of arrival; look: "" or "lost"."""
    rows = columns.where(event=("sent", "received"), message=(PUBLICATION, ACKNOWLEDGEMENT))
    rows = rows[chosen[rows]]
    names = ("time_us", "node", "peer", "value", "origin", "sequence")
    numbers = [columns[name][rows].tolist() for name in names]
    words = [columns.text(name, rows).tolist() for name in ("event", "message")]
    found: dict[What, list[tuple[Hop, str]]] = {}
    under_way: dict[tuple[int, int, str, int, int], int] = {}
    for time_us, node, peer, airtime_us, origin, sequence, event, message in zip(*numbers, *words, strict=True):
        frames = found.setdefault((origin, sequence), [])
        if event == "sent" and peer >= 0:
            under_way[node, peer, message, origin, sequence] = len(frames)
            frames.append((Hop(node, peer, time_us - airtime_us, time_us, "lost"), message))
        elif event == "received" and (peer, node, message, origin, sequence) in under_way:
            place = under_way.pop((peer, node, message, origin, sequence))
            frames[place] = frames[place][0]._replace(arrived_us=time_us, look=""), message
    return found


def _marks(columns: Columns, chosen: np.ndarray) -> dict[What, list[Mark]]:
    rows = columns.where(event=("delivered", "dropped"), message=PUBLICATION)
    rows = rows[chosen[rows]]
    numbers = [columns[name][rows].tolist() for name in ("time_us", "node", "origin", "sequence")]
    words = [columns.text(name, rows).tolist() for name in ("event", "detail")]
    found: dict[What, list[Mark]] = {}
    for time_us, node, origin, sequence, event, detail in zip(*numbers, *words, strict=True):
        if event == "delivered" or detail in REASONS:
            look = detail if event == "dropped" else event
            found.setdefault((origin, sequence), []).append(Mark(node, look, time_us))
    return found


def _path(what: Published, frames: list[tuple[Hop, str]], marks: list[Mark]) -> Path:
    forward = sorted((hop for hop, message in frames if message == PUBLICATION), key=lambda hop: hop.arrived_us)
    delivered = [mark.node for mark in marks if mark.look == "delivered"]
    came: dict[int, Hop] = {}
    for hop in forward:
        if hop.look != "lost" and hop.receiver != what.node:
            came.setdefault(hop.receiver, hop)
    useful = set()
    for node in delivered:
        while node in came and came[node] not in useful:
            useful.add(came[node])
            node = came[node].sender
    hops = [_looking(hop, came, useful) for hop in forward]
    back = [hop for hop, message in frames if message == ACKNOWLEDGEMENT]
    hops += [hop._replace(look=hop.look or "acknowledged") for hop in back]
    # A node whose application got it may have passed it on to a dead end besides; what it says of itself counts.
    told = {(mark.node, mark.look): mark for mark in reversed(marks)}
    return Path(
        what,
        tuple(sorted(hops, key=lambda hop: (hop.arrived_us, hop.sender, hop.receiver))),
        tuple(sorted(told.values(), key=lambda mark: (mark.at_us, mark.node))),
        len(delivered),
    )


def _looking(hop: Hop, came: dict[int, Hop], useful: set[Hop]) -> Hop:
    if hop.look == "lost":
        return hop
    if came.get(hop.receiver) is not hop:
        return hop._replace(look="repeated")
    return hop._replace(look="useful" if hop in useful else "in vain")


# Drawing

_COLOURS = {"useful": USEFUL, "in vain": IN_VAIN, "repeated": REPEATED, "lost": IN_VAIN, "acknowledged": ACKNOWLEDGED}
_SAID = {
    "useful": "led to a delivery",
    "in vain": "in vain: a filter said yes",
    "repeated": "repeated: the node had it already",
    "acknowledged": "acknowledgement on its way back",
}


def publication_drawing(run: Any, which: int = 0, width: int = WIDTH) -> Drawing:
    """The path as arrows over the mesh at its beginning; small numbers give the order of its hops.

    The arguments and errors of `publication_path`.
    """
    return draw_path(run, publication_path(run, which), None, width)


def draw_path(run: Any, way: Path, hops: int | None = None, width: int = WIDTH) -> Drawing:
    """A path up to one of its hops (None: all of it), with the legend of the whole."""
    seen, plan = mesh_of(run), lay_out(run.scenario.topology)
    part = way if hops is None else way.until(hops)
    scene = PathScene(plan, seen, way.what.at_us, width, subscribers(run, way.what.at_us), part)
    if len(plan.ids) <= MOST_NAMES:
        scene.names = {node: str(node) for node in plan.ids.tolist()}
    title = f"{way.what.text or 'Publication'} of node {way.what.node}"
    note = part.in_words() if part.hops or not way.hops else "published, and not sent yet"
    return scene.page(title, path_entries(scene, way), note)


class PathScene(MeshScene):
    """A path over a faint mesh."""

    def __init__(self, plan: Plan, seen: Any, time_us: int, width: int, asking: set[int], way: Path) -> None:
        super().__init__(plan, seen, time_us, width, asking, is_faint=True)
        self.way = way

    def over(self) -> None:
        """The hops as arrows."""
        self.node = min(self.node, 7.0)
        for number, hop in enumerate(self.way.hops, 1):
            if hop.sender in self.place_of and hop.receiver in self.place_of:
                self._arrow(hop, str(number) if len(self.way.hops) <= MOST_NAMES else "")

    def _arrow(self, hop: Hop, number: str) -> None:
        """An arrow, or a cross where the frame was lost; answers have a lane of their own."""
        colour, width = _COLOURS[hop.look], max(0.4 * self.node, 1.6)
        if hop.look == "lost":
            (x0, y0), (x1, y1) = self.at(hop.sender), self.at(hop.receiver)
            self.drawing.cross((x0 + x1) / 2, (y0 + y1) / 2, 4, colour=colour, width=1.8)
            return
        self.hop(
            (hop.sender, hop.receiver),
            colour,
            width * 0.6 if hop.look in ("repeated", "acknowledged") else width,
            lane_px=0.5 * self.node * (1 + (hop.look == "acknowledged")),
            clear_px=2.0 * self.node,
            head_at=0.95,
            number=number,
            number_at=(0.36, 10),
        )

    def _discs(self) -> None:
        reached = {hop.receiver for hop in self.way.hops if hop.look in ("useful", "in vain")}
        marked = {mark.node: mark.look for mark in self.way.marks}
        for node in self.place_of:
            x, y = self.at(node)
            if node in self.down:
                self.drawing.cross(x, y, self.node, colour=palette.FAILED, width=0.4 * self.node)
            elif node == self.way.what.node:
                self.drawing.marker("triangle", x, y, 1.5 * self.node, palette.SOURCE, palette.OUTLINE, 1.1)
            elif node in self.asking:
                self.drawing.marker("square", x, y, 1.25 * self.node, palette.SINK, palette.OUTLINE, 1.1)
            else:
                fill = palette.HOLDS if node in reached else palette.NODE
                self.drawing.circle(x, y, self.node, fill=fill, stroke=palette.OUTLINE, width=1)
            if marked.get(node) == "delivered":
                self.drawing.circle(x, y, 2.1 * self.node, stroke=USEFUL, width=2.6)
            elif node in marked:
                self.drawing.cross(x, y, 0.95 * self.node, colour=IN_VAIN, width=2.8)


def path_entries(scene: PathScene, way: Path) -> list[Entry]:
    """What a picture of a path has to explain."""
    entries: list[Entry] = [("triangle", palette.SOURCE, "publisher")]
    if scene.asking:
        entries.append(("square", palette.SINK, "subscriber"))
    entries += [("arrow", _COLOURS[look], said) for look, said in _SAID.items() if way.count(look)]
    if way.count("lost"):
        entries.append(("lost", IN_VAIN, "lost on this link"))
    if way.matches:
        entries.append(("ring", USEFUL, "delivered"))
    words = {"dead_end": "dead end", "no_match": "topics do not match", "out_of_range": "out of range"}
    reasons = [said for look, said in words.items() if way.nodes(look)]
    if reasons:
        entries.append(("down", IN_VAIN, "got it in vain: " + ", ".join(reasons)))
    return entries + [entry for entry in mesh_entries(scene) if entry[2] != "subscriber"]


def publication_slides(run: Any, which: int = 0, width: int = WIDTH) -> Stepper:
    """A path up to its first, second, ... hop, ``MOST_SLIDES`` at most; see `publication_path`."""
    way = publication_path(run, which)
    count = len(way.hops)
    steps = (
        list(range(count + 1))
        if count < MOST_SLIDES
        else [round(i * count / MOST_SLIDES) for i in range(MOST_SLIDES + 1)]
    )
    return Stepper([draw_path(run, way, step, width) for step in steps], [str(step) for step in steps], "hops")
