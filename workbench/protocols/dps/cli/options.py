"""The options of ``workbench dps``: subscribe, publish and bridge on a mesh of DPS nodes over UDP, and find them.

They are those of the example programs of the C implementation where these have them, with two differences: a node
listens on the loopback interface, and multicasts not at all, unless it is told to.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from workbench.protocols.dps.cli.keys import add_key_options

_LOOPBACK = "127.0.0.1:0"
_EXAMPLES = """\
two nodes:
  workbench dps subscribe -l 4000 'sensor/+/temp'
  workbench dps publish -p 4000 sensor/7/temp -m 21.5 -a

with the example programs of the C implementation, which encrypt unless they are told -x 0, and take a port alone for
one of [::1]:
  subscriber -x 0 -l 4001 'sensor/+/temp'
  workbench dps publish -p 4001 sensor/7/temp -m 21.5 -a
  workbench dps subscribe -l 4002 'sensor/+/temp'
  publisher -x 0 -a -p 127.0.0.1:4002 -m 21.5 sensor/7/temp

who is there, and without addresses (--multicast: beyond this machine):
  workbench dps discover house --topic sensor/7/temp
  workbench dps subscribe --discover house 'sensor/+/temp'
  workbench dps publish --discover house -w 1 sensor/7/temp -m 21.5

with a registry (any node that subscribes to this topic is one):
  workbench dps subscribe -l 4000 dps/registration_service
  workbench dps subscribe --registry 127.0.0.1:4000 'sensor/+/temp'
  workbench dps lookup 127.0.0.1:4000
"""


def add_parser(commands: Any) -> None:
    """Add the command and its own commands to the command line."""
    dps = commands.add_parser(
        "dps",
        help="subscribe, publish and bridge on a mesh of DPS nodes (UDP), and find them",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = dps.add_subparsers(dest="dps_command", required=True, metavar="COMMAND")
    for name, (text, add_options) in _COMMANDS.items():
        parser = which.add_parser(name, help=text)
        add_options(parser)
        _add_common(parser)
        parser.set_defaults(command=_command(name))


def _add_subscribe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "topics",
        nargs="*",
        metavar="TOPIC",
        help="all must match; + is a level, # the rest; alone they get nothing over links",
    )
    parser.add_argument(
        "-s",
        dest="sets",
        nargs="+",
        action="append",
        default=[],
        metavar="TOPIC",
        help="one more subscription; may be repeated",
    )
    parser.add_argument("-m", "--multicast", action="store_true", help="receive multicast publications, too")
    parser.add_argument("-a", "--ack", metavar="TEXT", help="what to acknowledge with (default: says who it is from)")
    parser.add_argument("--no-ack", action="store_true", help="acknowledge nothing")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no publications")
    parser.add_argument("-j", "--cbor", action="store_true", help="payloads are CBOR; print them as JSON")
    parser.add_argument("--expired", action="store_true", help="also tell when a retained publication ends")
    parser.add_argument("-n", "--count", type=_natural, help="end after so many publications")
    parser.add_argument("-w", "--wait", type=_seconds, default=0.0, metavar="S", help="before links are asked for")
    _add_finding(parser)
    add_key_options(parser, publishes=False)


def _add_publish(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", nargs="*", metavar="TOPIC")
    add_publication(parser)
    parser.add_argument("-w", "--wait", type=_seconds, default=0.0, metavar="S", help="between linking and publishing")
    parser.add_argument(
        "--stay", type=_seconds, metavar="S", help="after publishing (default: 2 with -a, else 0); longer to retain it"
    )
    parser.add_argument("-n", "--count", type=_natural, help="with -a: end after so many acknowledgements")
    parser.add_argument("--multicast", action="store_true", help="multicast it, too")
    parser.add_argument("--cbor", action="store_true", help="acknowledgements are CBOR; print them as JSON")
    _add_finding(parser)
    add_key_options(parser, publishes=True)


def add_publication(parser: argparse.ArgumentParser) -> None:
    """The options of one publication: of the command line, and of a line of standard input."""
    payload = parser.add_mutually_exclusive_group()
    payload.add_argument("-m", "--message", default="", metavar="TEXT", help="payload")
    payload.add_argument("-j", "--json-message", metavar="JSON", help="payload, sent as CBOR")
    parser.add_argument("-t", "--ttl", type=int, default=0, metavar="S", help="retain it for so long; -1: end that")
    parser.add_argument("-a", "--ack", action="store_true", help="ask for acknowledgements, and print them")
    parser.add_argument("--no-wildcards", action="store_true", help="only for those who spell the topic out")


def _add_bridge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", "--multicast", action="store_true", help="also bring what is multicast here into them")
    _add_finding(parser)


def _add_discover(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "discover", nargs="?", default="generic_discovery", metavar="SERVICE", help="(default: generic_discovery)"
    )
    parser.add_argument(
        "--topic", action="append", default=[], metavar="TOPIC", help="tell who may ask for it; may be repeated"
    )
    parser.add_argument("-m", "--multicast", action="store_true", help="look beyond this machine, too; needs -l [::]:0")
    parser.add_argument("-j", "--cbor", action="store_true", help="what nodes announce is CBOR; print it as JSON")
    parser.add_argument("--announce", default="", metavar="TEXT", help="what to tell those who find this node")
    parser.add_argument("-n", "--count", type=_natural, help="end after so many nodes")


def _add_register(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("registry", metavar="REGISTRY", help="host:port of it")
    parser.add_argument("addresses", nargs="+", metavar="ADDRESS", help="host:port to register")
    _add_tenant(parser)


def _add_lookup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("registry", metavar="REGISTRY", help="host:port of it")
    parser.add_argument("-w", "--wait", type=_seconds, default=5.0, metavar="S", help="for addresses (default: 5)")
    parser.add_argument("-n", "--count", type=_natural, default=16, help="end after so many (default: 16)")
    _add_tenant(parser)


def _add_tenant(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenant", default="anonymous_tenant", help="(default: anonymous_tenant)")


def _add_finding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--discover", metavar="SERVICE", help="find nodes of it here and link where it matters")
    parser.add_argument(
        "--announce", default="", metavar="TEXT", help="with --discover: what to tell those who find us"
    )
    parser.add_argument("--registry", metavar="ADDRESS", help="register there, and link to a node that has")
    _add_tenant(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-l",
        "--listen",
        default=_LOOPBACK,
        metavar="ADDRESS",
        help="host:port, or a port of 127.0.0.1 (default: any); [::]:0 is everybody's: README says who may reach it",
    )
    parser.add_argument(
        "-p",
        "--link",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="host:port or port to link to; may be repeated",
    )
    parser.add_argument("-r", "--update-ms", type=_natural, metavar="MS", help="subscription rate (default: 2000)")
    parser.add_argument("--link-loss", type=_seconds, metavar="S", help="between signs of life (default: 30)")
    parser.add_argument("--relink", type=_seconds, metavar="S", help="between attempts at a lost link (default: 10)")
    parser.add_argument("--for", dest="for_s", type=_seconds, metavar="S", help="end after that time")
    parser.add_argument(
        "--separators", default="/.", help="between levels of topics; alike in all nodes (default: /. as the examples')"
    )
    parser.add_argument("-b", "--filter-bits", type=_natural, help="alike in all nodes (default: 8192)")
    parser.add_argument("--hashes", type=_natural, help="alike in all nodes (default: 3)")
    parser.add_argument(
        "--interface", action="append", metavar="NAME", help="for multicast (default: all but loopback)"
    )
    parser.add_argument("--multicast-port", type=_natural, metavar="PORT", help="(default: 5683)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, for programs")
    parser.add_argument("-d", "--debug", action="store_true", help="tell what is dropped, and why")


def _natural(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return value


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    """A command of `commands.py`, which is imported when it is called: asyncio takes its time."""

    def call(options: argparse.Namespace) -> int:
        from workbench.protocols.dps.cli import commands

        return commands.run(options, getattr(commands, name))

    return call


# Name -> help, and the function that adds the options which are not common to all.
_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "subscribe": ("print what is published on topics, and acknowledge it if asked to", _add_subscribe),
    "publish": (
        "publish once on topics; without topics, once for each line of standard input: "
        "TOPIC ... [-t S] [-a] [-m TEXT | -j JSON]",
        _add_publish,
    ),
    "bridge": ("join meshes: pass on what comes from one for the others", _add_bridge),
    "discover": ("list the nodes that take part in discovery, and those that come and go", _add_discover),
    "register": ("register addresses of nodes for eight hours", _add_register),
    "lookup": ("list the addresses that are registered", _add_lookup),
}
