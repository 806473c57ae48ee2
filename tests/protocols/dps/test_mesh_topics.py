"""Expected subscribers of a mesh of processes, without processes: the topics' separators, and wildcard-only topics."""

import networkx as nx
import pytest

from workbench.protocols.dps.processes import DPSMesh


@pytest.mark.parametrize(
    ("settings", "subscribed", "topic", "counted"),
    [
        ({}, ("a/+",), "a/b", (True, True)),
        ({}, ("a/+",), "a/b/c", (False, False)),
        ({"separators": "/."}, ("a.+",), "a.b", (True, True)),
        ({"separators": "."}, ("a.+",), "a.b.c", (False, False)),
        # A wildcard alone is not announced to neighbors; together with another topic it is announced with that topic.
        ({}, ("#",), "a/b", (True, False)),
        ({}, ("+",), "a", (True, False)),
        ({}, ("#", "a/+"), "a/b", (True, True)),
    ],
)
def test_the_expected_subscribers_of_a_publication(settings, subscribed, topic, counted):
    mesh = DPSMesh(nx.path_graph(2), settings)
    mesh.subscriptions[0] = [subscribed]
    assert (mesh._subscribes(topic, 0, True), mesh._subscribes(topic, 0, False)) == counted
