"""Layers of TinyDiffusion, computed from events, compared with the state of a node: caches and gradients."""

from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.neighbor import data, interest, make_node
from tests.views.traces import trace_of
from workbench.attributes.text import to_text
from workbench.protocols.diffusion.views.known import HEAD, REINFORCED, RESERVE, cached_interests, gradients
from workbench.protocols.diffusion.wire import Data, encode_data, encode_interest
from workbench.sim.rows import Columns
from workbench.sim.trace import EVENT_NAMES

SECOND = 1_000_000
NODE = 5
# Each interest has the number that its sink gave it.
INTERESTS = [(8, 1, "TEMP GE 25"), (9, 1, "TEMP GE 25"), (6, 2, "HUMIDITY GE 5"), (7, 3, "TEMP GE 20")]


@st.composite
def receptions(draw):
    """Draw a reception of a node: (seconds since the previous one, message, whether it is a reinforcement)."""
    kind = draw(st.sampled_from(["interest", "interest", "interest", "reinforcement", "data", "black", "cancel"]))
    sink, sequence, constraints = draw(st.sampled_from(INTERESTS))
    hop = draw(st.integers(1, 4))
    if kind == "data":
        return draw(st.integers(0, 3)), data(hop=hop, source=20, sequence=draw(st.integers(0, 5))), False
    if kind == "black":
        return draw(st.integers(0, 3)), (hop, draw(st.booleans())), False
    expiration_s = 0 if kind == "cancel" else draw(st.sampled_from([3, 5, 100]))
    unicast = kind == "reinforcement"
    if unicast:
        sequence = draw(st.integers(10, 30))
    message = interest(constraints, hop, sink, sequence, draw(st.integers(0, 3)), 50, expiration_s)
    return draw(st.integers(0, 3)), message, unicast


def looks_of_gradients(node, now):
    """Return {(sink, neighbor, look)} of the gradients that a node holds."""
    looks = set()
    for entry in node.cache.entries:
        heads = entry.heads()
        for gradient in entry.gradients:
            if gradient.expires_us > now:
                is_head = heads[gradient.sink] is gradient
                look = RESERVE if not is_head else HEAD if gradient.reinforced_by is None else REINFORCED
                looks.add((gradient.sink, gradient.neighbor, look))
    return looks


@settings(max_examples=examples(300))
@given(st.lists(receptions(), max_size=40), st.sampled_from([2, 10]))
def test_gradients_and_caches_equal_those_of_the_node(all_heard, most):
    node = make_node(NODE, max_interests=most, max_gradients=4, blacklist_loss=0.5)
    rows, states, now = [], [], 0
    for seconds, message, unicast in all_heard:
        now += seconds * SECOND + 1
        if isinstance(message, Data):
            node.receive(encode_data(message), message.previous_hop, now, False)
        elif len(message) == 2:
            node.clean(now)
            node.link_quality(message[0], float(message[1]), 1.0, now)
        else:
            node.receive(encode_interest(message), message.previous_hop, now, not unicast)
        node.clean(now)
        for event in node.take_events():
            peer, name, origin, sequence, value, detail = event
            text = to_text(detail) if isinstance(detail, tuple) else detail
            more = {"peer": peer, "message": name, "origin": origin, "sequence": sequence, "value": value}
            rows.append((now, NODE, EVENT_NAMES[type(event)], more | {"detail": text}))
        states.append((now, looks_of_gradients(node, now), [to_text(entry.attributes) for entry in node.cache.entries]))
    duration_us = now + 1
    columns = Columns(trace_of(*rows))
    shown, (interests, words) = gradients(columns, duration_us), cached_interests(columns, duration_us)
    assert (shown["from_us"][1:] >= shown["from_us"][:-1]).all()
    for time_us, state, texts in states:
        is_now = (shown["from_us"] <= time_us) & (time_us < shown["until_us"])
        names = ("origin", "peer", "look")
        assert set(zip(*[shown[name][is_now].tolist() for name in names], strict=True)) == state
        is_now = (interests["from_us"] <= time_us) & (time_us < interests["until_us"])
        cached_texts = [words[text] for text in interests["text"][is_now].tolist()]
        assert set(cached_texts) <= set(texts) and len(cached_texts) == len(set(cached_texts))


def test_gradients_of_a_run_have_one_head_per_node_and_sink():
    workload = [
        wb.subscribe(at=[0, 8], what="TEMP GE 25"),
        wb.publish(at=4, what="TEMP IS 26", every_s=3, start_s=2),
    ]
    run = wb.Scenario(wb.topology.grid(3, 3), wb.Diffusion(), workload, duration_s=70, seed=1).run()
    shown = gradients(Columns(run.trace), 70 * SECOND)
    for time_us in (25 * SECOND, 55 * SECOND):
        is_head = (shown["from_us"] <= time_us) & (time_us < shown["until_us"]) & (shown["look"] != RESERVE)
        pairs = list(zip(shown["node"][is_head].tolist(), shown["origin"][is_head].tolist(), strict=True))
        assert sorted(pairs) == [(node, sink) for node in range(9) for sink in (0, 8) if node != sink]
        assert (shown["look"][is_head] == REINFORCED).any()
