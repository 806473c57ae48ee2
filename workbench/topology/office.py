"""An office floor: rooms on both sides of a corridor, walls that attenuate, and motes in every room."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import networkx as nx
import numpy as np

from workbench.errors import ParameterError
from workbench.keywords import checked
from workbench.topology.generators import as_propagation
from workbench.topology.graphs import build, number, round_positions, whole
from workbench.topology.propagation import POSITION, ROOM, Propagation, key_of, links_between, uniforms

MOST_NODES = 5000
GOOD_PDR = 0.5

_TRIES = 50
_DOORWAY_M = 0.9
_FROM_WALL_M = 0.5  # motes keep this distance from walls
_CORRIDOR_SHARE = 0.2  # of the motes; the others are in the rooms
_OPEN_PARTITIONS = 0.35  # share of the partitions that are omitted, which makes larger rooms
_QUARTERS = ((0, 0), (1, 1), (0, 1), (1, 0))  # of a room, diagonally opposite ones first

# Motes at low power, as in testbeds with several hops (the CC2420's two lowest levels are -25 and -15 dBm).
# The exponent is that of IEEE Std 802.15.4-2006, E.5.3, beyond 8 m.
OFFICE = Propagation(transmit_power_dBm=-20.0, exponent=3.3, shadowing_dB=4.0)


@checked
def office(
    nodes: int = 64,
    rooms: int = 16,
    wall_dB: float = 8.0,
    min_pdr: float = 0.1,
    propagation: Propagation | None = None,
    seed: int = 1,
) -> nx.DiGraph:
    """Return an office floor with ``rooms`` rooms (an even number) of 6 m x 6 m along a corridor 2.4 m wide.

    Some neighboring rooms are joined into larger ones; each room has a door to the corridor. A fifth of the nodes are
    along the corridor, the others in the rooms; they are numbered from left to right. Each wall between two nodes
    attenuates by ``wall_dB`` (8 dB for brick, 3 to 5 for plasterboard); doors do not attenuate. Loss, shadowing and
    delivery ratios are those of ``propagation`` (None: -20 dBm and exponent 3.3). Arcs below ``min_pdr`` are omitted.

    The floor is drawn again (attempt 0, 1, ... of the seed) until links that deliver at least half their frames connect
    every node to every other. Raises ParameterError after 50 attempts. ``graph.graph["walls"]`` lists the walls as
    ((x0_m, y0_m), (x1_m, y1_m)).
    """
    nodes = whole("nodes", nodes, 1, MOST_NODES)
    rooms = whole("rooms", rooms, 2, 200)
    if rooms % 2:
        raise ParameterError(f"`rooms` is {rooms}; it must be even: each side of the corridor has half of them.")
    wall_dB, min_pdr = number("wall_dB", wall_dB, 0, 100, "dB"), number("min_pdr", min_pdr, 0.001, GOOD_PDR)
    propagation = as_propagation(propagation, OFFICE)
    seed = whole("seed", seed, 0, 2**63 - 1)
    recipe: dict[str, Any] = {"kind": "office", "nodes": nodes, "rooms": rooms, "wall_dB": wall_dB, "min_pdr": min_pdr}
    recipe |= {"propagation": asdict(propagation), "seed": seed}
    for attempt in range(_TRIES):
        floor = Floor(rooms // 2, (seed, attempt))
        positions = floor.place(nodes)
        arcs, pdr = links_between(
            np.arange(nodes), positions, propagation, (seed, attempt), min_pdr, floor.walls, wall_dB
        )
        if _is_strongly_connected(nodes, arcs[pdr >= GOOD_PDR]):
            walls = [tuple(map(tuple, wall)) for wall in round_positions(floor.walls).tolist()]
            return build(np.arange(nodes), positions, arcs, pdr, recipe=recipe, walls=walls)
    raise ParameterError(
        f"An office with {nodes} nodes in {rooms} rooms is not connected by links that deliver half their frames or "
        f"more ({_TRIES} attempts with seed {seed}); use more nodes, fewer rooms, thinner walls (wall_dB is "
        f"{wall_dB:g}) or more transmit power ({propagation.transmit_power_dBm:g} dBm)."
    )


def attempt_of(recipe: Mapping[str, Any], positions_m: np.ndarray) -> int:
    """Return the number of the attempt (0, 1, ...) at which `office` drew the positions (n, 2) of a network.

    ``recipe`` has the arguments with which `office` generated the network. Raises ParameterError if no attempt gives
    these positions.
    """
    for attempt in range(_TRIES):
        floor = Floor(recipe["rooms"] // 2, (recipe["seed"], attempt))
        if np.array_equal(floor.place(recipe["nodes"]), positions_m):
            return attempt
    raise ParameterError(
        "`positions_m` are not the positions that `office` generates; pass the network as it was generated"
    )


Segment = list[tuple[float, float]]


class Floor:
    """A random floor plan: rooms on both sides of a corridor, made of square modules of 6 m x 6 m.

    ``columns`` is the number of modules on each side; a room consists of one or several modules. ``draw`` is (seed,
    attempt), which determines the plan. ``walls`` (w, 2, 2) has the end points of the walls in m.
    """

    module_m, depth_m, corridor_m = 6.0, 6.0, 2.4

    def __init__(self, columns: int, draw: tuple[int, int]):
        self.columns = columns
        self.draw = draw
        self.width_m = columns * self.module_m
        self.height_m = 2 * self.depth_m + self.corridor_m
        has_wall = uniforms(key_of(draw, ROOM), np.arange(2 * (columns - 1))) >= _OPEN_PARTITIONS
        # The borders between rooms of the lower and the upper side, in modules from the left.
        self.borders = [[0, *(1 + np.flatnonzero(side)).tolist(), columns] for side in has_wall.reshape(2, columns - 1)]
        self.walls = np.array([*self._outer_walls(), *self._partition_walls(), *self._corridor_walls()])

    def _outer_walls(self) -> list[Segment]:
        corners = [(0, 0), (self.width_m, 0), (self.width_m, self.height_m), (0, self.height_m)]
        return [[corners[index - 1], corner] for index, corner in enumerate(corners)]

    def _partition_walls(self) -> Iterator[Segment]:
        for borders, (bottom, top) in zip(self.borders, self._room_row_sides(), strict=True):
            for border in borders[1:-1]:
                x = border * self.module_m
                yield [(x, bottom), (x, top)]

    def _corridor_walls(self) -> Iterator[Segment]:
        """Yield the walls between rooms and corridor, with a gap for the door near the left end of each room."""
        for borders, y in zip(self.borders, (self.depth_m, self.depth_m + self.corridor_m), strict=True):
            x = 0.0
            for border in borders[:-1]:
                opening_m = border * self.module_m + 1.0
                yield [(x, y), (opening_m, y)]
                x = opening_m + _DOORWAY_M
            yield [(x, y), (self.width_m, y)]

    def _room_row_sides(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return ((bottom, top), (bottom, top)): the y coordinates in m of the lower and of the upper row of rooms."""
        return (0.0, self.depth_m), (self.depth_m + self.corridor_m, self.height_m)

    def place(self, nodes: int) -> np.ndarray:
        """Return random positions (n, 2) in m for ``nodes`` motes, some in the corridor and the others in the rooms.

        The positions are sorted from left to right.
        """
        in_corridor = min(nodes, max(1, round(_CORRIDOR_SHARE * nodes)))
        uniform_draws = uniforms(key_of(self.draw, POSITION), np.arange(2 * nodes)).reshape(-1, 2)
        positions = np.concatenate(
            (self._place_in_corridor(uniform_draws[:in_corridor]), self._place_in_rooms(uniform_draws[in_corridor:]))
        )
        positions = round_positions(positions)
        return positions[np.lexsort((positions[:, 1], positions[:, 0]))]

    def _place_in_corridor(self, spread: np.ndarray) -> np.ndarray:
        """Return positions (n, 2) in m, spread along the corridor and at most a quarter of its width from its axis.

        ``spread`` (n, 2) has a pair of random numbers in [0, 1) for each position.
        """
        step_m = self.width_m / len(spread)
        x = (np.arange(len(spread)) + 0.3 + 0.4 * spread[:, 0]) * step_m
        y = self.height_m / 2 + (spread[:, 1] - 0.5) * self.corridor_m / 2
        return np.column_stack((x, y))

    def _place_in_rooms(self, spread: np.ndarray) -> np.ndarray:
        """Return positions (n, 2) in m in the rooms, whose floor consists of square modules.

        ``spread`` (n, 2) has a pair of random numbers in [0, 1) for each position. Motes are assigned to the modules in
        turn, in a random order of modules, so the modules' numbers of motes differ by at most one. Motes in the same
        module are assigned to its four quarters in turn, which keeps them apart.
        """
        modules = 2 * self.columns
        module_draws = uniforms(key_of(self.draw, ROOM), 2 * self.columns + np.arange(2 * modules)).reshape(2, modules)
        module_order, first_quarter = np.argsort(module_draws[0], kind="stable"), (4 * module_draws[1]).astype(int)
        index = np.arange(len(spread))
        module = module_order[index % modules]
        quarter = np.array(_QUARTERS)[(first_quarter[module] + index // modules) % 4]
        inner_size_m = np.array((self.module_m - 2 * _FROM_WALL_M, self.depth_m - 2 * _FROM_WALL_M))
        bottoms = np.array([bottom for bottom, _ in self._room_row_sides()])
        corners = np.column_stack(((module % self.columns) * self.module_m, bottoms[module // self.columns]))
        return corners + _FROM_WALL_M + (quarter + 0.2 + 0.6 * spread) * inner_size_m / 2


def _is_strongly_connected(nodes: int, arcs: np.ndarray) -> bool:
    graph = nx.DiGraph(arcs.tolist())
    graph.add_nodes_from(range(nodes))
    return bool(nx.is_strongly_connected(graph))
