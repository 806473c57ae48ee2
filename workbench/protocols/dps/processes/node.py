"""The process of one node in a `DPSMesh`: a DPS node on UDP that reads commands and writes replies as lines of JSON.

    python -m workbench.protocols.dps.processes.node LISTEN SETTINGS

LISTEN is an address, SETTINGS a JSON object of parameters of `workbench.DPS`. `DPSMesh` starts the process. It ends at
the end of its standard input, so no process survives a `DPSMesh` that was killed.

Each command is one line: {"id": 1, "do": "link", "to": "127.0.0.1:40001"}; the other commands are subscribe (topics),
publish (topics, text, ttl_s, acknowledge), catch_up and state. The reply is a line with the same id and the result, or
with "error" and a sentence.

Lines with "event" are not replies. The events are:

    listening    the node is open; it has this "address"
    publication  a subscription received a publication. If the publisher requests acknowledgements, the node sends an
                 acknowledgement that contains its own address
    answer       the node received an acknowledgement; "to" is the id of the publish command
    error        the node could not be opened
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from workbench.errors import WorkbenchError
from workbench.protocols.dps.udp.addresses import as_text


def write_line(**line: Any) -> None:
    """Write the keyword arguments as a line of JSON to standard output, which the parent process reads."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class MeshNode:
    """A DPS node that executes the commands of `DPSMesh`.

    Each public method executes the command with the same name, and returns the fields of the reply. ``command`` is the
    parsed JSON object of the command.
    """

    def __init__(self, node: Any) -> None:
        self.node = node
        self._references: list[Any] = []  # keeps subscriptions and series alive

    async def link(self, command: dict[str, Any]) -> dict[str, Any]:
        """Request a link to the address in the field ``to``, and request it again after each loss."""
        await self.node.keep_linked(command["to"])
        return {}

    async def subscribe(self, command: dict[str, Any]) -> dict[str, Any]:
        """Subscribe to the topics in the field ``topics``.

        Each received publication is written as a line, and acknowledged if its publisher requests this.
        """
        self._references.append(await self.node.subscribe(*command["topics"], handler=self._report_publication))
        return {}

    def _report_publication(self, publication: Any) -> None:
        topics = list(publication.topics)
        identity_fields = {"series": publication.publication_id.hex(), "sequence": publication.sequence}
        write_line(event="publication", topics=topics, text=publication.text, hops=publication.hops, **identity_fields)
        if publication.wants_answer:  # After the line, so the publication can be read when its answer arrives.
            publication.acknowledge(str(self.node))

    async def publish(self, command: dict[str, Any]) -> dict[str, Any]:
        """Publish the field ``text`` on the topics in the field ``topics``; write a line for each acknowledgement."""
        command_number = command["id"]

        def write_answer(answer: Any) -> None:
            write_line(event="answer", to=command_number, sender=bytes(answer.data).decode("utf-8", "replace"))

        series = await self.node.publish(
            command["topics"],
            command["text"],
            ttl_s=command.get("ttl_s", 0),
            acknowledge=command.get("acknowledge", False),
            handler=write_answer,
        )
        self._references.append(series)
        return {}

    async def catch_up(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do nothing: when the reply arrives, `DPSMesh` has read all lines that this process wrote before the reply."""
        return {}

    async def state(self, command: dict[str, Any]) -> dict[str, Any]:
        """Return the state of this node: the fields of `DPSMesh.state`, with addresses instead of node numbers."""
        node = self.node
        node_links = node.core.links
        interests_union, _ = node_links.interests.combine(None)
        neighbor_bits = {
            as_text(neighbor): remote.inbound[0].popcount
            for neighbor, remote in node_links.remotes.items()
            if remote.inbound
        }
        datagram_counts = {"sent": node.sent, "received": node.received}
        return {
            "links": node.links,
            "told": neighbor_bits,
            "bits": interests_union.popcount,
            **datagram_counts,
            "drops": node.drops,
        }


async def serve(listen: str, settings: dict[str, Any]) -> None:
    """Open a node and execute commands until standard input ends."""
    from workbench.protocols.dps import DPS
    from workbench.protocols.dps.udp import dps_node

    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    async with dps_node(listen, DPS(**settings)) as node:
        mesh_node = MeshNode(node)
        write_line(event="listening", address=str(node))
        while command_line := await commands.readline():
            command = json.loads(command_line)
            try:
                reply = await getattr(mesh_node, command["do"])(command)
            except WorkbenchError as error:
                reply = {"error": str(error)}
            write_line(id=command["id"], **reply)


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
