"""The process of one node in a `DPSMesh`: a DPS node on UDP that reads orders and writes replies as lines of JSON.

    python -m workbench.protocols.dps.processes.node LISTEN SETTINGS

LISTEN is an address, SETTINGS a JSON object of parameters of `workbench.DPS`. `DPSMesh` starts the process. It ends
at the end of its standard input, so no process survives a `DPSMesh` that was killed.

Each order is one line: {"id": 1, "do": "link", "to": "127.0.0.1:40001"}; the other orders are subscribe (topics),
publish (topics, text, ttl_s, acknowledge), catch_up and state. The reply is a line with the same id and the result, or
with "error" and a sentence.

Lines with "event" are not replies. The events are: listening; publication, which a subscription received, and which is
acknowledged with this node's address on request; answer, an acknowledgement of a publication of this node.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from workbench.errors import WorkbenchError
from workbench.protocols.dps.udp.addresses import as_text


def write_line(**line: Any) -> None:
    """Write a line to standard output, for the process that started this one."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class MeshNode:
    """A node that executes orders: each method executes the order of its name and returns the fields of the reply."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self._references: list[Any] = []  # keeps subscriptions and series alive

    async def link(self, order: dict[str, Any]) -> dict[str, Any]:
        """Link to a neighbor, and request the link again whenever it is lost."""
        await self.node.keep_linked(order["to"])
        return {}

    async def subscribe(self, order: dict[str, Any]) -> dict[str, Any]:
        """Subscribe; write a line for each publication, and acknowledge it if that is requested."""
        self._references.append(await self.node.subscribe(*order["topics"], handler=self._report_publication))
        return {}

    def _report_publication(self, publication: Any) -> None:
        topics = list(publication.topics)
        numbers = {"series": publication.publication_id.hex(), "sequence": publication.sequence}
        write_line(event="publication", topics=topics, text=publication.text, hops=publication.hops, **numbers)
        if publication.wants_answer:  # After the line, so the publication can be read when its answer arrives.
            publication.acknowledge(str(self.node))

    async def publish(self, order: dict[str, Any]) -> dict[str, Any]:
        """Publish, and write a line for each acknowledgement."""
        number = order["id"]

        def write_answer(answer: Any) -> None:
            write_line(event="answer", to=number, sender=bytes(answer.data).decode("utf-8", "replace"))

        series = await self.node.publish(
            order["topics"],
            order["text"],
            ttl_s=order.get("ttl_s", 0),
            acknowledge=order.get("acknowledge", False),
            handler=write_answer,
        )
        self._references.append(series)
        return {}

    async def catch_up(self, order: dict[str, Any]) -> dict[str, Any]:
        """Do nothing: the reply shows the reader that it has read all lines that were written before."""
        return {}

    async def state(self, order: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of `DPSMesh.state`, with addresses instead of node numbers."""
        node = self.node
        links = node.core.links
        union, _ = links.interests.combine(None)
        neighbor_bits = {
            as_text(neighbor): remote.inbound[0].popcount
            for neighbor, remote in links.remotes.items()
            if remote.inbound
        }
        counts = {"sent": node.sent, "received": node.received}
        return {"links": node.links, "told": neighbor_bits, "bits": union.popcount, **counts, "drops": node.drops}


async def serve(listen: str, settings: dict[str, Any]) -> None:
    """Open a node and execute orders until standard input ends."""
    from workbench.protocols.dps import DPS
    from workbench.protocols.dps.udp import dps_node

    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    async with dps_node(listen, DPS(**settings)) as node:
        mesh_node = MeshNode(node)
        write_line(event="listening", address=str(node))
        while line := await orders.readline():
            order = json.loads(line)
            try:
                reply = await getattr(mesh_node, order["do"])(order)
            except WorkbenchError as error:
                reply = {"error": str(error)}
            write_line(id=order["id"], **reply)


def main() -> None:
    """Run a node with the address and the settings in the command line's arguments."""
    listen, settings = sys.argv[1:]
    try:
        asyncio.run(serve(listen, json.loads(settings)))
    except WorkbenchError as error:
        write_line(event="error", error=str(error))
    except (
        KeyboardInterrupt,
        BrokenPipeError,
    ):  # Ctrl-C in a terminal reaches this process too; `DPSMesh` ends it then.
        pass


if __name__ == "__main__":
    main()
