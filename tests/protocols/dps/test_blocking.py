"""A DPS node in a separate thread, for programs without asyncio."""

import threading

import pytest

import workbench as wb
from tests.until import PATIENCE_S


def test_calls_wait_for_the_node():
    with wb.dps_node() as publisher, wb.dps_node() as subscriber:
        subscription = subscriber.subscribe("a/+", expired=True)
        neighbor = publisher.link(str(subscriber), timeout_s=PATIENCE_S)
        assert publisher.links == {str(subscriber): "active"}
        series = publisher.publish("a/b", "hello", ttl_s=100, acknowledge=True)
        publication = subscription.next(PATIENCE_S)
        assert (publication.text, subscription.topics) == ("hello", ("a/+",))
        publication.acknowledge("thanks")
        assert series.next(PATIENCE_S).data == b"thanks"
        assert series.publish(b"again", ttl_s=100) == series.sequence == 2
        series.expire()
        assert [subscription.next(PATIENCE_S).is_expiry for _ in range(2)] == [False, True]
        subscription.unsubscribe()
        assert list(subscription) == []
        publisher.unlink(neighbor)


def test_thread_ends_with_the_node_and_errors_are_raised_in_the_caller():
    before = threading.active_count()
    with wb.dps_node() as node:
        with pytest.raises(wb.AttributeFormatError):
            node.publish("a/+")
        with pytest.raises(wb.LinkError, match="in use"), wb.dps_node(node.address):
            pass
        received = node.subscribe("a").next(0.01)
        assert received is None
    assert threading.active_count() == before


def test_handler_that_calls_its_node_gets_an_error_instead_of_a_deadlock():
    errors = []

    def handler(publication):
        for call in (lambda: node.publish("b"), node.close):
            with pytest.raises(wb.LinkError, match="a handler must not") as error:
                call()
            errors.append(error)

    with wb.dps_node() as node:
        node.subscribe("a", handler=handler)
        node.publish("a")
        assert (len(errors), node.drops, node.sent, node.received) == (2, {}, 0, 0)


def test_iterating_ends_when_the_node_is_closed():
    node = wb.dps_node()
    blocking = node.__enter__()
    subscription = blocking.subscribe("a")
    received = []
    reader = threading.Thread(target=lambda: received.extend(publication.data for publication in subscription))
    reader.start()
    blocking.publish("a", b"1")
    blocking.close()
    reader.join(PATIENCE_S)
    assert received == [b"1"]


def test_received_publications_can_be_read_from_a_closed_node_and_calls_are_errors():
    with wb.dps_node() as node:
        subscription = node.subscribe("a")
        node.publish("a", b"1")
    node.close()
    assert [publication.data for publication in subscription] == [b"1"]
    with pytest.raises(wb.LinkError, match="the node is closed"):
        node.publish("a", b"2")
