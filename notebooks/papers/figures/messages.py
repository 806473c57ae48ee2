"""Messages of DPS to look at: a short conversation, and a widget in which messages and topics can be written.

conversation(topic, subscription)    the messages of a subscriber that links and of a publisher, by name
message_explorer(messages, topics)   choose or paste a message, name topics
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
    """The messages of two nodes: a subscriber that links, and a publisher. name -> bytes, in order.

    ``settings``: parameters of `workbench.DPS`. AttributeFormatError for topics that are none.
    """
    protocol = DPS(**settings)
    nodes = [protocol.make_node(address, draws.Stream(address + 1)) for address in (0, 1)]
    subscriber, publisher = nodes
    for node in nodes:
        node.start(0)
    subscription_ = subscriber.subscribe_topics(subscription, 0)
    subscriber.link(1, 0)
    told: dict[str, bytes] = {}
    _exchange(nodes, told)
    publisher.publish_topics(topic, payload, 1, acknowledge=True)
    _exchange(nodes, told)
    for arrival in subscription_.take():
        subscriber.acknowledge(arrival, b"thanks", 2)
    _exchange(nodes, told)
    return told


def _exchange(nodes: list[Any], told: dict[str, bytes]) -> None:
    """Hand over messages until there are none; each is noted under a name of its own."""
    waiting = True
    while waiting:
        waiting = False
        for sender, node in enumerate(nodes):
            for neighbor, frame in node.take_frames():
                waiting = True
                name = wire.describe(frame)[0]
                who = "publisher" if sender else "subscriber"
                told[f"{len(told) + 1}: {name} of the {who}"] = frame
                nodes[neighbor].receive(frame, sender, 1, False)


def message_explorer(
    messages: Mapping[str, bytes | str], topics: Sequence[str] = (), hashes: int = HASHES, separators: str = "/"
) -> Explorer:
    """A widget: messages to choose from, a field for the hex of another one, a field for topics (with blanks between).

    Without a kernel it shows the first message.
    """
    import ipywidgets

    named = {name: data if isinstance(data, str) else bytes(data).hex(" ") for name, data in messages.items()}
    full = ipywidgets.Layout(width="900px")
    choice = ipywidgets.Dropdown(options=list(named), description="message", layout=full)
    digits = ipywidgets.Textarea(
        value=next(iter(named.values()), ""), description="hex", rows=4, layout=full, continuous_update=False
    )
    given = ipywidgets.Text(value=" ".join(topics), description="topics", layout=full, continuous_update=False)
    picture = ipywidgets.HTML()

    def show(_: Any = None) -> None:
        try:
            inspection = inspect_message(digits.value, given.value.split(), hashes, separators)
            picture.value = inspection.to_html()
        except WorkbenchError as error:
            picture.value = f'<p style="color:{palette.LOST}">{html.escape(str(error))}.</p>'

    choice.observe(lambda change: setattr(digits, "value", named[change["new"]]), "value")
    for field in (digits, given):
        field.observe(show, "value")
    show()
    return Explorer(ipywidgets.VBox([choice, digits, given, picture]), picture.value)
