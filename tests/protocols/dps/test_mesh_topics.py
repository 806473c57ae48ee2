"""Whom a mesh of processes counts as asked, without any process: topics by its own separators, and wildcards alone."""

import networkx as nx
import pytest

from workbench.protocols.dps.processes import DPSMesh


@pytest.mark.parametrize(
    ("settings", "asked", "topic", "counted"),
    [
        ({}, ("a/+",), "a/b", (True, True)),
        ({}, ("a/+",), "a/b/c", (False, False)),
        ({"separators": "/."}, ("a.+",), "a.b", (True, True)),
        ({"separators": "."}, ("a.+",), "a.b.c", (False, False)),
        # A wildcard alone asks no neighbor for anything, but beside another topic it is asked for with that.
        ({}, ("#",), "a/b", (True, False)),
        ({}, ("+",), "a", (True, False)),
        ({}, ("#", "a/+"), "a/b", (True, True)),
    ],
)
def test_who_is_to_get_a_publication(settings, asked, topic, counted):
    mesh = DPSMesh(nx.path_graph(2), settings)
    mesh.subscriptions[0] = [asked]
    assert (mesh._subscribes(topic, 0, True), mesh._subscribes(topic, 0, False)) == counted
