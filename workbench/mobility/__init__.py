"""Movements of nodes: mobility models, tracks, and movement files of other programs.

    models     Waypoints, RandomWaypoint, GaussMarkov      values that give each node a track
               MODELS, from_dict                           model classes by their names in JSON; a model from JSON
    tracks     Track, positions                            a path, and the positions of a node at given times
    files      read_bonnmotion, write_bonnmotion,          movements of BonnMotion,
               read_ns2, read_cooja                        ns-2 and Cooja

Theory of operation
    A model is a value that can be written to JSON and read back. ``model.track(node, ...)`` computes the path of a
    node, piecewise linear in time, and ``model.tracks(nodes, ...)`` the paths of many nodes at once.
    Random numbers are hashes of the seed and the node, so a track is the same on every machine, and does not depend on
    other nodes. Random models start in their stationary distribution; `workbench.mobility.models` explains how.

    >>> model = RandomWaypoint(width_m=100, height_m=50, fastest_m_s=2)
    >>> track = model.track(node=3, place_m=(0, 0), extent_m=(100, 50), duration_s=60, seed=1)
    >>> positions(track, [0, 30_000_000]).shape
    (2, 2)

Cost
    Tracks of 1,500 nodes for 300 s take some 10 ms with RandomWaypoint, and 0.1 s with GaussMarkov. A vertex takes
    24 B.

Reference
    W. Navidi, T. Camp: Stationary distributions for the random waypoint mobility model, IEEE TMC 3(1), 2004;
    J.-Y. Le Boudec, M. Vojnović: The random trip model: stability, stationary regime, and perfect simulation,
    IEEE/ACM Transactions on Networking 14(6), 2006;
    B. Liang, Z. Haas: Predictive distance-based mobility management for PCS networks, INFOCOM 1999;
    T. Camp, J. Boleng, V. Davies: A survey of mobility models for ad hoc network research, WCMC 2(5), 2002;
    N. Aschenbruck et al.: BonnMotion: a mobility scenario generation and analysis tool, SIMUTools 2010.
"""

from workbench.keywords import answer_for
from workbench.mobility.files import read_bonnmotion, read_cooja, read_ns2, write_bonnmotion
from workbench.mobility.models import MODELS, GaussMarkov, MobilityModel, RandomWaypoint, Waypoints, from_dict
from workbench.mobility.tracks import Track, positions

__all__ = [
    "MODELS",
    "GaussMarkov",
    "MobilityModel",
    "RandomWaypoint",
    "Track",
    "Waypoints",
    "from_dict",
    "positions",
    "read_bonnmotion",
    "read_cooja",
    "read_ns2",
    "write_bonnmotion",
]

answer_for(__name__)
