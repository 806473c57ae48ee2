"""The network at a time as a static figure for papers, drawn from the same intervals and colours as the player."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.errors import ParameterError
from workbench.views import caption, palette
from workbench.views.drawing import Drawing, text_width
from workbench.views.ground import Plan, lay_out
from workbench.views.player import legend
from workbench.views.player.counters import running
from workbench.views.player.decoding import of_event
from workbench.views.player.inspector import ROLES
from workbench.views.player.intervals import LOST_AT, Intervals, Table, intervals, read
from workbench.views.protocols import message_colours

WIDTH = 700
TALLEST = 580
MARGIN = 16
MOST_LABELS = 12
SMALL = 11.0


def network_drawing(
    run: Any, time_s: float | None = None, width: int = WIDTH, event: tuple[int, int] | None = None
) -> Drawing:
    """The state of a run at a time (None: at its end): a `Drawing` with ``to_svg()``, ``to_png()`` and ``save(path)``.

    ``width`` in px, 96 to the inch: 700 suits the width of a page. ``event``, (origin, sequence), leaves out what is
    about other events. Raises ParameterError for a time outside of the run, or an event that is not in it.
    """
    time_us = time_us_of(run, time_s, "network_drawing")
    if width < 300:
        raise ParameterError(f"network_drawing: width is {width!r}; a network needs 300 px or more")
    seen = intervals(of_event(run.trace, event), round(run.scenario.duration_s * 1e6))
    plan = lay_out(run.scenario.topology)
    scene = Scene(plan, seen, time_us, width, message_colours(run.scenario.protocol))
    picture = scene.draw()
    heading = _heading(run, time_us / 1e6, width)
    explained = _legend(scene.roles, width, scene.colours)
    page = Drawing(width, heading.height + picture.height + explained.height, title=caption.title(run))
    page.add(heading, 0, 0)
    page.add(picture, 0, heading.height)
    page.add(explained, 0, heading.height + picture.height)
    return page


def time_us_of(run: Any, time_s: float | None, what: str) -> int:
    """A time of the run in µs (None: its end); ParameterError, which names the view ``what``, for one outside of it."""
    duration_s = run.scenario.duration_s
    if time_s is not None and not 0 <= time_s <= duration_s:
        raise ParameterError(f"{what}: time_s is {time_s!r}; this run lasts from 0 to {duration_s:g} s")
    return round((duration_s if time_s is None else time_s) * 1e6)


class Scene:
    """What is alive at a time, at its place on a page. ``roles``: what the legend has to explain.

    ``colours``: those of the protocol's messages.
    """

    def __init__(
        self, plan: Plan, seen: Intervals, time_us: int, width: int, colours: Mapping[str, str] | None = None
    ) -> None:
        self.plan, self.seen, self.time_us = plan, seen, time_us
        self.colours = colours or {}
        x0, y0, x1, y1 = plan.box_m
        self.width = width
        self.scale = min((width - 4 * MARGIN) / (x1 - x0), TALLEST / (y1 - y0))
        left = (width - self.scale * (x1 - x0)) / 2
        top = 1.4 * MARGIN
        self.height = self.scale * (y1 - y0) + 2 * top + 14
        self.x = left + self.scale * (plan.x_m - x0)
        self.y = top + self.scale * (y1 - plan.y_m)
        self.walls = [
            (
                left + self.scale * (a - x0),
                top + self.scale * (y1 - b),
                left + self.scale * (c - x0),
                top + self.scale * (y1 - d),
            )
            for a, b, c, d in plan.walls.tolist()
        ]
        self.node = float(np.clip(0.15 * plan.spacing_m * self.scale, 1.8, 6.0))
        self.roles: set[str] = set()
        self.band: list[tuple[float, float]] = []  # points along the reinforced path, which names should not hide
        self.drawing = Drawing(width, self.height)

    def draw(self) -> Drawing:
        """Everything, lowest first."""
        self._links()
        self._reinforced()
        self._gradients()
        self._waves()
        self._nodes()
        self._losses()
        self._packets()
        self._labels()
        self._scale_bar()
        return self.drawing

    def _ends(self, table: Table) -> list[tuple[int, int, int]]:
        """(row, place of node, place of peer) of the rows whose nodes are in the plan."""
        node, peer = self.plan.place(table["node"]), self.plan.place(table["peer"])
        return [(i, int(node[i]), int(peer[i])) for i in np.flatnonzero((node >= 0) & (peer >= 0)).tolist()]

    def _between(self, a: int, b: int, share: float) -> tuple[float, float]:
        return self.x[a] + share * (self.x[b] - self.x[a]), self.y[a] + share * (self.y[b] - self.y[a])

    def _links(self) -> None:
        links = self.plan.links
        better = np.maximum(links["pdr_ab"], links["pdr_ba"])
        thin = 0.6 if self.node < 3 else 1.0
        for a, b, pdr in zip(links["a"].tolist(), links["b"].tolist(), better.tolist(), strict=True):
            look = {"colour": palette.link_colour(pdr), "width": thin * (0.4 + 0.5 * pdr)}
            self.drawing.segment(self.x[a], self.y[a], self.x[b], self.y[b], **look)
            self.roles.add("link")
        for wall in self.walls:
            self.drawing.segment(*wall, colour=palette.WALL, width=2)
            self.roles.add("wall")

    def _reinforced(self) -> None:
        for _, a, b in self._ends(self.seen.alive("reinforced", self.time_us)):
            look = {"colour": palette.REINFORCED, "width": max(1.5 * self.node, 4), "opacity": 0.5}
            self.drawing.segment(self.x[a], self.y[a], self.x[b], self.y[b], **look)
            self.band += [self._between(a, b, share) for share in np.linspace(0.1, 0.9, 9).tolist()]
            self.roles.add("reinforced")

    def _gradients(self) -> None:
        table = self.seen.alive("gradient", self.time_us)
        ends = self._ends(table)
        # Those in reserve lie below the heads; on a dense page they would hide them.
        for is_head in (False, True) if self.node >= 3 else (True,):
            for i, a, b in ends:
                if (table["look"][i] == "head") == is_head:
                    self._gradient(a, b, float(table["weight"][i]), is_head)

    def _gradient(self, a: int, b: int, weight: float, is_head: bool) -> None:
        length = math.hypot(self.x[b] - self.x[a], self.y[b] - self.y[a]) or 1.0
        clear = min(self.node / length, 0.4)
        start, end = self._between(a, b, clear), self._between(a, b, 1 - 1.3 * clear)
        width = (0.7 if self.node >= 3 else 0.5) * (1 + 0.5 * weight)
        head = min(max(1.3 * self.node, 3.5), 0.5 * length) * (1 + 0.12 * weight)
        opacity = 1.0 if is_head else 0.2
        self.drawing.arrow(*start, *end, head=head, at=0.6, opacity=opacity, colour=palette.GRADIENT, width=width)
        self.roles.add("gradient" if is_head else "other gradient")

    def _waves(self) -> None:
        table = self.seen.alive("interest_wave", self.time_us)
        places = self.plan.place(table["node"])
        for i in np.flatnonzero(places >= 0).tolist():
            share = (self.time_us - table["from_us"][i]) / (table["until_us"][i] - table["from_us"][i])
            radius = self.node * (1 + 2.4 * math.sqrt(share))
            message = str(table["look"][i])
            look = {
                "stroke": palette.message_colour(message, self.colours),
                "width": 1.6,
                "opacity": 0.95 - 0.7 * share,
            }
            self.drawing.circle(self.x[places[i]], self.y[places[i]], radius, **look)
            self.roles.add(f"wave {message}")

    def _nodes(self) -> None:
        bigger = {
            "sink": max(1.35 * self.node, 4.5),
            "source": max(1.45 * self.node, 5),
            "failed": max(1.2 * self.node, 4),
        }
        self.role_of, self.share_of = self._role_of(), self._share_of()
        width = 0.8 if self.node >= 3 else 0.4
        for place in sorted(range(len(self.plan.ids)), key=lambda place: -ROLES.index(self.role_of[place])):
            role = self.role_of[place]
            fill, marker = palette.NODE_LOOKS[role]
            fill = palette.rank_colour(self.share_of[place]) if role == "decoding" else fill
            radius = bigger.get(role, self.node)
            self.drawing.marker(marker, self.x[place], self.y[place], radius, fill, palette.OUTLINE, width)
            self.roles.add(role)

    def _role_of(self) -> list[str]:
        """The first of ROLES that applies to each place."""
        best = np.full(len(self.plan.ids), len(ROLES) - 1)
        for what in ("node_state", "failed"):
            table = self.seen.alive(what, self.time_us)
            for place, look in zip(self.plan.place(table["node"]).tolist(), table["look"].tolist(), strict=True):
                if place >= 0:
                    best[place] = min(best[place], ROLES.index(look))
        return [ROLES[which] for which in best.tolist()]

    def _share_of(self) -> list[float]:
        """Of each place the largest rank over m of what it decodes."""
        table = self.seen.alive("node_state", self.time_us)
        share = np.zeros(len(self.plan.ids))
        places = self.plan.place(table["node"])
        rows = (table["look"] == "decoding") & (places >= 0)
        np.maximum.at(share, places[rows], table["weight"][rows])
        return share.tolist()

    def _losses(self) -> None:
        table = self.seen.alive("lost", self.time_us)
        for i, node, peer in self._ends(table):
            x, y = self._between(peer, node, LOST_AT)
            is_unicast = table["weight"][i] > 0
            radius = max(0.75 * self.node, 3) * (1 if is_unicast else 0.5)
            look = {"width": 1.8 if is_unicast else 1.0, "opacity": 1.0 if is_unicast else 0.5}
            self.drawing.cross(x, y, radius, colour=palette.LOST, **look)
            self.roles.add("lost")

    def _packets(self) -> None:
        for what in ("data_packet", "reinforcement_packet"):
            table = self.seen.alive(what, self.time_us)
            for i, a, b in self._ends(table):
                share = (self.time_us - table["from_us"][i]) / (table["until_us"][i] - table["from_us"][i])
                share *= float(table["weight"][i])
                x, y = self._between(a, b, share)
                message = str(table["look"][i])
                colour = palette.message_colour(message, self.colours)
                length = math.hypot(self.x[b] - self.x[a], self.y[b] - self.y[a]) or 1.0
                tail = self._between(a, b, max(share - min(0.3, 5 * self.node / length), 0))
                self.drawing.segment(*tail, x, y, colour=colour, width=2.2)
                self.drawing.circle(x, y, max(0.8 * self.node, 3.2), fill=colour, stroke="#FFFFFF", width=1)
                self.roles.add(f"packet {message}")

    # Words

    def _labels(self) -> None:
        """Name sinks, sources and failed nodes, where their names hide as little as possible."""
        named = [i for i, role in enumerate(self.role_of) if role in ("sink", "source", "failed")]
        if len(named) > MOST_LABELS:
            return
        taken: list[tuple[float, float, float, float]] = []
        for place in named:
            text = f"{self.role_of[place]} {self.plan.ids[place]}"
            box, x, y = min(
                self._boxes(place, text_width(text, SMALL)), key=lambda found: self._hidden(found[0], taken)
            )
            taken.append(box)
            self.drawing.text(x, y, text, size=SMALL, halo=palette.BACKGROUND)

    def _boxes(self, place: int, wide: float) -> list[tuple[tuple[float, float, float, float], float, float]]:
        """Boxes around a node that could hold its name: (box, x and baseline of the text)."""
        x, y, gap = self.x[place], self.y[place], 1.6 * self.node + 3
        corners = [
            (x - wide / 2, y - gap - SMALL),
            (x - wide / 2, y + gap),
            (x + gap, y - SMALL / 2),
            (x - gap - wide, y - SMALL / 2),
            (x + 0.7 * gap, y - 0.7 * gap - SMALL),
            (x - 0.7 * gap - wide, y - 0.7 * gap - SMALL),
            (x + 0.7 * gap, y + 0.7 * gap),
            (x - 0.7 * gap - wide, y + 0.7 * gap),
        ]
        return [((left, top, left + wide, top + SMALL), left, top + 0.82 * SMALL) for left, top in corners]

    def _hidden(self, box: tuple[float, float, float, float], taken: list[tuple]) -> float:
        """How bad it is to write there: off the page, over another name, over nodes or walls."""
        left, top, right, bottom = box
        reach = self.node + 1
        bad = 100.0 * (left < 2 or right > self.width - 2 or top < 0 or bottom > self.height)
        bad += 50.0 * sum(left < r and right > l and top < b and bottom > t for l, t, r, b in taken)  # noqa: E741
        over = (self.x > left - reach) & (self.x < right + reach) & (self.y > top - reach) & (self.y < bottom + reach)
        bad += 4.0 * float(over.sum())
        bad += 0.5 * sum(left < x < right and top < y < bottom for x, y in self.band)
        for x0, y0, x1, y1 in self.walls:
            crosses = max(min(x0, x1), left) <= min(max(x0, x1), right) and max(min(y0, y1), top) <= min(
                max(y0, y1), bottom
            )
            bad += 4.0 * crosses
        return bad

    def _scale_bar(self) -> None:
        length_m = caption.round_length((self.width - 4 * MARGIN) / self.scale / 7)
        right, y = self.width - MARGIN, self.height - 5
        left = right - length_m * self.scale
        self.drawing.segment(left, y, right, y, colour=palette.FAINT_TEXT, width=1.6)
        look = {"size": SMALL, "anchor": "end", "colour": palette.FAINT_TEXT}
        self.drawing.text(left - 5, y + 3.5, f"{length_m:g} m", **look)


def _heading(run: Any, time_s: float, width: int) -> Drawing:
    """Title and time, then what ran and what came of it."""
    columns = read(run.trace)
    totals = running(columns, None)
    until = int(np.searchsorted(totals["time_us"], round(time_s * 1e6), "right"))
    so_far = ""
    if until:
        deliveries, sent = int(totals["deliveries"][until - 1]), int(totals["transmissions"][until - 1])
        so_far = f"so far: deliveries {deliveries:,} · transmissions {sent:,}"
    whole = " · ".join(f"{name} {number}" for name, number in caption.key_numbers(run))
    lines = [caption.workload(run), caption.conditions(run) + (f" · {whole}" if whole else "")]
    if time_s < run.scenario.duration_s and so_far:
        lines.append(so_far)
    drawing = Drawing(width, 0)
    clock = f"t = {time_s:,.3f} s"
    drawing.text(width - MARGIN, 26, clock, size=14, anchor="end")
    room = width - 3 * MARGIN - text_width(clock, 14)
    y = 26.0
    for line in _wrapped(caption.title(run), 15, room):
        drawing.text(MARGIN, y, line, size=15, bold=True)
        y += 18
    for line in lines:
        for piece in _wrapped(line, SMALL, width - 2 * MARGIN):
            drawing.text(MARGIN, y, piece, size=SMALL, colour=palette.FAINT_TEXT)
            y += 15
    drawing.height = y - 6
    return drawing


def _wrapped(text: str, size: float, room: float) -> list[str]:
    """A text in lines that fit; a word that does not fit by itself gets a line of its own."""
    lines: list[str] = []
    for word in text.split():
        # Fonts that show an SVG may be a little wider than Pillow's.
        if lines and text_width(f"{lines[-1]} {word}", size) * 1.06 <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


# The legend

SWATCH = 20.0
LINE = 17.0


def _legend(roles: set[str], width: int, colours: Mapping[str, str]) -> Drawing:
    """The roles that are in the picture, in as many lines as they need."""
    drawing = Drawing(width, 0)
    x, y = float(MARGIN), 16.0
    for role in legend.ordered(roles):
        name = legend.name(role)
        wide = SWATCH + 6 + text_width(name, SMALL) * 1.06
        if x + wide > width - MARGIN and x > MARGIN:
            x, y = float(MARGIN), y + LINE
        _swatch(drawing, role, x, y - 4, colours)
        drawing.text(x + SWATCH + 5, y, name, size=SMALL)
        x += wide + 14
    drawing.height = y + 12
    return drawing


def _swatch(drawing: Drawing, role: str, x: float, y: float, colours: Mapping[str, str]) -> None:
    """A sample of a role, ``SWATCH`` px wide, around the line y."""
    middle, right = x + SWATCH / 2, x + SWATCH
    if role == "decoding":
        for share, at in ((0.15, x + 4), (0.6, middle), (1.0, right - 4)):
            drawing.circle(at, y, 4.4, fill=palette.rank_colour(share), stroke=palette.OUTLINE, width=0.8)
    elif role in palette.NODE_LOOKS:
        fill, marker = palette.NODE_LOOKS[role]
        drawing.marker(marker, middle, y, 5, fill, palette.OUTLINE, 0.8)
    elif role in ("gradient", "other gradient"):
        opacity = 1.0 if role == "gradient" else 0.35
        drawing.arrow(x, y, right, y, head=7, at=0.6, colour=palette.GRADIENT, width=1.2, opacity=opacity)
    elif role.startswith("wave "):
        drawing.circle(middle, y, 5, stroke=palette.message_colour(role[5:], colours), width=1.6)
    elif role.startswith("packet "):
        colour = palette.message_colour(role[7:], colours)
        drawing.segment(x + 2, y, middle + 2, y, colour=colour, width=2.2)
        drawing.circle(middle + 3, y, 4.2, fill=colour, stroke="#FFFFFF", width=1)
    elif role == "lost":
        drawing.cross(middle, y, 4, colour=palette.LOST, width=1.8)
    else:
        colour, width = {
            "link": (palette.LINK_GOOD, 1.2),
            "wall": (palette.WALL, 2.0),
            "reinforced": (palette.blend(palette.BACKGROUND, palette.REINFORCED, 0.5), 6.0),
        }[role]
        drawing.segment(x + width / 2, y, right - width / 2, y, colour=colour, width=width)
