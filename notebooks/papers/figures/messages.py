"""Examples of DPS messages: a short exchange between two nodes, and a widget that dissects a message.

conversation(topic, subscription)    the messages between a subscriber and a publisher, by name
message_explorer(messages, topics)   a widget: choose or paste a message, and enter topics to search in its filter
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from workbench import draws
from workbench.errors import WorkbenchError
from workbench.protocols.dps import DPS, wire
from workbench.protocols.dps.bloom import HASHES
from workbench.protocols.dps.views.message import inspect_message
from workbench.views import palette
from workbench.views.rich import Explorer


def conversation(
    topic: str = "house/kitchen/temp",
    subscription: str = "house/+/temp",
    payload: bytes = b"21.5",
    **settings: Any,
) -> dict[str, bytes]:
    """Return the messages between a subscriber and a publisher as {name: bytes}, in the order of sending.

    ``settings``: parameters of `workbench.DPS`. Raises AttributeFormatError for an invalid topic.
    """
    protocol = DPS(**settings)
    nodes = [protocol.make_node(address, draws.Stream(address + 1)) for address in (0, 1)]
    subscriber, publisher = nodes
    for node in nodes:
        node.start(0)
    open_subscription = subscriber.subscribe_topics(subscription, 0)
    subscriber.link(1, 0)
    messages: dict[str, bytes] = {}
    _exchange(nodes, messages)
    publisher.publish_topics(topic, payload, 1, acknowledge=True)
    _exchange(nodes, messages)
    for arrival in open_subscription.take():
        subscriber.acknowledge(arrival, b"thanks", 2)
    _exchange(nodes, messages)
    return messages


def _exchange(nodes: list[Any], messages: dict[str, bytes]) -> None:
    """Pass frames between the nodes until none is left, and store each frame under a numbered name."""
    waiting = True
    while waiting:
        waiting = False
        for sender, node in enumerate(nodes):
            for neighbor, frame in node.take_frames():
                waiting = True
                name = wire.describe(frame)[0]
                role = "publisher" if sender else "subscriber"
                messages[f"{len(messages) + 1}: {name} of the {role}"] = frame
                nodes[neighbor].receive(frame, sender, 1, False)


def message_explorer(
    messages: Mapping[str, bytes | str], topics: Sequence[str] = (), hashes: int = HASHES, separators: str = "/"
) -> Explorer:
    """Return a widget that dissects a message: a list of messages, a field for hex digits, and a field for topics.

    Topics are separated by blanks. Without a kernel the widget shows the first message.
    """
    import ipywidgets

    named = {name: data if isinstance(data, str) else bytes(data).hex(" ") for name, data in messages.items()}
    full = ipywidgets.Layout(width="900px")
    choice = ipywidgets.Dropdown(options=list(named), description="message", layout=full)
    digits = ipywidgets.Textarea(
        value=next(iter(named.values()), ""), description="hex", rows=4, layout=full, continuous_update=False
    )
    topic_field = ipywidgets.Text(value=" ".join(topics), description="topics", layout=full, continuous_update=False)
    picture = ipywidgets.HTML()

    def show(_: Any = None) -> None:
        try:
            inspection = inspect_message(digits.value, topic_field.value.split(), hashes, separators)
            picture.value = inspection.to_html()
        except WorkbenchError as error:
            picture.value = f'<p style="color:{palette.LOST}">{html.escape(str(error))}.</p>'

    choice.observe(lambda change: setattr(digits, "value", named[change["new"]]), "value")
    for field in (digits, topic_field):
        field.observe(show, "value")
    show()
    return Explorer(ipywidgets.VBox([choice, digits, topic_field, picture]), picture.value)
