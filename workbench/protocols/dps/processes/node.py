"""One node of a mesh of processes: a DPS node on UDP that takes its orders as lines of JSON, and answers so.

    python -m workbench.protocols.dps.processes.node LISTEN SETTINGS

LISTEN is an address, SETTINGS a JSON object of parameters of `workbench.DPS`. The package starts it and talks to it.
It ends when its standard input does, so none is left behind by a process that was killed.

Orders, one a line: {"id": 1, "do": "link", "to": "127.0.0.1:40001"}; subscribe (topics), publish (topics, text, ttl_s,
acknowledge), catch_up, state. Each is answered with a line with the same id: what came of it, or "error", a sentence.
Besides there are lines with "event": listening, publication (what a subscription was given; it is acknowledged with
this node's address if that is wanted) and answer (to what was published here).
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from workbench.errors import WorkbenchError
from workbench.protocols.dps.udp.addresses import as_text


def say(**line: Any) -> None:
    """A line for whoever has started this process."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class MeshNode:
    """What a node does with its orders."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self._held: list[Any] = []  # subscriptions and series live as long as the process

    async def link(self, order: dict[str, Any]) -> dict[str, Any]:
        """Ask a neighbor for a link, and again whenever there is none."""
        await self.node.keep_linked(order["to"])
        return {}

    async def subscribe(self, order: dict[str, Any]) -> dict[str, Any]:
        """Tell of each publication that these topics match, and acknowledge it if that is wanted."""
        self._held.append(await self.node.subscribe(*order["topics"], handler=self._got))
        return {}

    def _got(self, publication: Any) -> None:
        topics = list(publication.topics)
        numbered = {"series": publication.publication_id.hex(), "sequence": publication.sequence}
        say(event="publication", topics=topics, text=publication.text, hops=publication.hops, **numbered)
        if publication.wants_answer:  # after its line: who has the answer can read the publication
            publication.acknowledge(str(self.node))

    async def publish(self, order: dict[str, Any]) -> dict[str, Any]:
        """Publish, and tell of each answer."""
        number = order["id"]

        def answered(answer: Any) -> None:
            say(event="answer", to=number, sender=bytes(answer.data).decode("utf-8", "replace"))

        series = await self.node.publish(
            order["topics"],
            order["text"],
            ttl_s=order.get("ttl_s", 0),
            acknowledge=order.get("acknowledge", False),
            handler=answered,
        )
        self._held.append(series)
        return {}

    async def catch_up(self, order: dict[str, Any]) -> dict[str, Any]:
        """Nothing but the reply: who has read it has read all lines before it."""
        return {}

    async def state(self, order: dict[str, Any]) -> dict[str, Any]:
        """Links by neighbor, the bits that each has told and those of their sum, datagrams, and what was dropped."""
        node = self.node
        links = node.core.links
        union, _ = links.interests.combine(None)
        told = {as_text(one): remote.inbound[0].popcount for one, remote in links.remotes.items() if remote.inbound}
        counts = {"sent": node.sent, "received": node.received}
        return {"links": node.links, "told": told, "bits": union.popcount, **counts, "drops": node.drops}


async def serve(listen: str, settings: dict[str, Any]) -> None:
    """Be a node until standard input ends."""
    from workbench.protocols.dps import DPS
    from workbench.protocols.dps.udp import dps_node

    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    async with dps_node(listen, DPS(**settings)) as node:
        mesh_node = MeshNode(node)
        say(event="listening", address=str(node))
        while line := await orders.readline():
            order = json.loads(line)
            try:
                answer = await getattr(mesh_node, order["do"])(order)
            except WorkbenchError as error:
                answer = {"error": str(error)}
            say(id=order["id"], **answer)


def main() -> None:
    """What ``python -m`` runs."""
    listen, settings = sys.argv[1:]
    try:
        asyncio.run(serve(listen, json.loads(settings)))
    except WorkbenchError as error:
        say(event="error", error=str(error))
    except (KeyboardInterrupt, BrokenPipeError):  # Ctrl-C in the notebook's terminal comes here too; it ends the mesh.
        pass


if __name__ == "__main__":
    main()
