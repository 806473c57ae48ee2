"""DPS's decoder with damaged messages: ``benchmarks/dps_fuzz.py [--messages 1000000] [--seed 1]``.

Messages of the C implementation, if its captures are beside the repository, or else messages of the workbench, are
damaged: bytes are changed, deleted or inserted, lengths become huge, two messages are spliced. Each message is decoded,
and its encrypted part opened. Only DecodeError may be raised; any other error ends the run with the bytes. The program
prints the outcomes, and the most time and memory that a message took: process times in one pass, memory in another,
because tracing memory is slow. The slowest message is timed again, alone. A node with 1000 subscriptions also receives
messages that were made to be slow.
"""

import argparse
import gc
import json
import random
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from workbench import draws
from workbench.errors import DecodeError
from workbench.protocols.dps import DPS, bloom
from workbench.protocols.dps import wire as dps
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.cose import A256KW, KeyStore, Security
from workbench.protocols.dps.node import DPSNode
from workbench.protocols.dps.publications import MOST_TOPICS
from workbench.protocols.dps.topics import publication_items, subscription_items
from workbench.protocols.dps.wire import coap

CAPTURES = Path(__file__).resolve().parents[2] / "shared" / "vectors" / "dps" / "captured_messages.json"
# Heads of CBOR that announce huge lengths, nest, or have an indefinite length.
HEADS = tuple(
    bytes.fromhex(head)
    for head in [
        "9bffffffffffffffff",
        "bbffffffffffffffff",
        "5bffffffffffffffff",
        "7bffffffffffffffff",
        "9a00ffffff",
        "ba00ffffff",
        "1bffffffffffffffff",
        "3bffffffffffffffff",
        "9f",
        "bf",
        "5f",
        "7f",
        "ff",
        "81818181818181818181",
        "a1a1a1a1a1",
        "c1c1c1c1",
        "d8609f",
        "fb7ff8000000000000",
        "83011a0007ffc0",
        "83031a0007ffc040",
        "830319200040",
        "83001920005904",
        "f4",
        "f6",
        "f7",
        "00",
        "20",
        "40",
        "60",
        "80",
        "a0",
    ]
)
LARGEST_B = 65507
SUBSCRIPTIONS = 1000


def main() -> None:
    """Decode damaged messages, and print outcomes, times and memory."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    keys, messages, origin = real_messages() if CAPTURES.is_file() else own_messages()
    print(f"{options.messages:,} damaged messages, made of {len(messages)} {origin}; seed {options.seed}")
    security = Security(keys)
    report_times(security, messages, options)
    report_memory(security, messages, options)


def report_times(security: Security, messages: list[bytes], options: argparse.Namespace) -> None:
    """Decode the damaged messages, and print outcomes and times."""
    outcomes: Counter[str] = Counter()
    slowest_s, slowest, total_B = 0.0, b"", 0
    started = time.process_time()
    for frame in damaged_messages(messages, options):
        total_B += len(frame)
        begin = time.process_time()
        outcomes[find_outcome(security, frame)] += 1
        taken_s = time.process_time() - begin
        if taken_s > slowest_s:
            slowest_s, slowest = taken_s, frame
    all_s = time.process_time() - started
    print(f"outcomes: {', '.join(f'{name} {count:,}' for name, count in outcomes.most_common())}")
    print(f"all: {all_s:.0f} s with their making, {total_B / options.messages:.0f} B a message")
    print(
        f"slowest: {1e3 * slowest_s:.2f} ms, again {1e3 * measure_decode_s(security, slowest):.2f} ms, {len(slowest)} B"
    )
    for name, frame in worst_messages().items():
        print(f"made to be slow, {name}: {1e3 * measure_decode_s(security, frame):.2f} ms, {len(frame)} B")
        print(f"    at a node with {SUBSCRIPTIONS} subscriptions: {1e3 * measure_receive_s(frame):.2f} ms")


def measure_receive_s(frame: bytes, subscriptions: int = SUBSCRIPTIONS) -> float:
    """Return the seconds of process time in which a node with this many subscriptions processes a stranger's frame."""
    node = node_with(subscriptions)
    clear_cache()
    begin = time.process_time()
    node.receive(frame, "stranger", 0, False)
    return time.process_time() - begin


def node_with(subscriptions: int) -> DPSNode:
    """Return a node with this many subscriptions, all of which begin with a wildcard.

    So no subscription can be excluded by the beginning of a topic.
    """
    node: DPSNode = DPS(filter_bits=bloom.LENGTH).make_node(1, draws.Stream(draws.make_key(1)))
    node.tells_all = False
    node.start(0)
    for number in range(subscriptions):
        node.subscribe_topics(f"+/{number}", 0)
    return node


def report_memory(security: Security, messages: list[bytes], options: argparse.Namespace) -> None:
    """Decode the damaged messages again, and print the most memory that a message allocated."""
    gc.collect()
    largest_B, largest = 0, b""
    tracemalloc.start()
    for frame in damaged_messages(messages, options):
        size_B = memory_B(security, frame)
        if size_B > largest_B:
            largest_B, largest = size_B, frame
    print(f"most memory: {largest_B:,} B, of {len(largest)} B")
    for name, frame in worst_messages().items():
        print(f"made to be large, {name}: {memory_B(security, frame):,} B, of {len(frame)} B")
    tracemalloc.stop()


def memory_B(security: Security, frame: bytes) -> int:
    """Return the largest memory in bytes that is allocated while a frame is decoded; tracemalloc must be running."""
    clear_cache()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    find_outcome(security, frame)
    return tracemalloc.get_traced_memory()[1] - before


def measure_decode_s(security: Security, frame: bytes) -> float:
    """Decode a frame five times, and return the shortest process time in seconds."""
    times = []
    for _ in range(5):
        clear_cache()
        begin = time.process_time()
        find_outcome(security, frame)
        times.append(time.process_time() - begin)
    return min(times)


def clear_cache() -> None:
    """Clear the cache of decoded filters, so that each filter is decoded anew."""
    bloom._decode_runs.cache_clear()


def find_outcome(security: Security, frame: bytes) -> str:
    """Decode a frame like a node, and return the outcome.

    "refused": not a valid message; "read": valid and not encrypted; "opened", "not opened": whether its encrypted part
    can be decrypted.
    """
    try:
        inner = coap.unwrap(frame) if frame[:1] == b"\x50" else frame
        message = dps.decode(inner)
    except DecodeError:
        return "refused"
    except Exception:
        print(f"FAILED on {frame.hex()}")
        raise
    if getattr(message, "data", b"") is not None:
        return "read"
    try:
        security.open(message)
    except DecodeError:
        return "not opened"
    except Exception:
        print(f"FAILED to open {frame.hex()}")
        raise
    return "opened"


def worst_messages(size_B: int = LARGEST_B) -> dict[str, bytes]:
    """Return {name: message} of messages of at most ``size_B`` bytes that are slow to process.

    They have long vectors, many topics or deep nesting.
    """
    head, identity = bytes.fromhex("850101a301199c4202000f00"), bytes(16)
    inner = bytes.fromhex("a502000350") + identity + bytes.fromhex("040105f506")
    room = size_B - len(head) - len(inner) - 20
    runs = bytes.fromhex("83011a0007ffc05a") + room.to_bytes(4, "big") + b"\xff" * room
    full = bytes.fromhex("83031a0007ffc040")
    # A filter that matches every subscription, with as many topics as fit, and with as many as a node compares.
    short = b"\x61a" * ((room - 40) // 2)
    usual = bytes.fromhex("830319200040")
    many = usual + bytes.fromhex("a20b9a") + (len(short) // 2).to_bytes(4, "big") + short + b"\x0c\x40"
    topic = b"a/" * (min(room // MOST_TOPICS, 2048) // 2 - 3) + b"a"
    long = b"\x79" + len(topic).to_bytes(2, "big") + topic
    compared = usual + bytes.fromhex("a20b99") + MOST_TOPICS.to_bytes(2, "big") + long * MOST_TOPICS + b"\x0c\x40"
    topics = bytes.fromhex("830119200040a20b9a") + (room - 40).to_bytes(4, "big") + b"\x60" * (room - 40) + b"\x0c\x40"
    return {
        "run lengths": head + inner + runs + bytes.fromhex("a20b800c40"),
        "complement of nothing": head + inner + full + bytes.fromhex("a20b800c40"),
        "empty topics": head + inner + topics,
        "topics for all": head + inner + many,
        "long topics for all": head + inner + compared,
        "nesting": bytes.fromhex("850101a1") + bytes.fromhex("1863") + b"\x81" * room + b"\x00",
        "encrypted items": head + inner + bytes.fromhex("830119200040d860") + b"\x81" * (room - 40) + b"\x00",
    }


def damaged_messages(messages: list[bytes], options: argparse.Namespace) -> Iterator[bytes]:
    """Yield the damaged messages that the options (seed, number) specify; equal options give equal messages."""
    draw = random.Random(options.seed)
    for _ in range(options.messages):
        data = bytearray(draw.choice(messages))
        for _ in range(1 + int(draw.expovariate(0.7))):
            draw.choice(DAMAGES)(data, draw, messages)
        yield bytes(data[:LARGEST_B])


def _flip_bit(data: bytearray, draw: random.Random, _: list[bytes]) -> None:
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _change_byte(data: bytearray, draw: random.Random, _: list[bytes]) -> None:
    if data:
        data[draw.randrange(len(data))] = draw.randrange(256)


def _cut_bytes(data: bytearray, draw: random.Random, _: list[bytes]) -> None:
    offset = draw.randrange(len(data) + 1)
    del data[offset : offset + 1 + int(draw.expovariate(0.2))]


def _truncate(data: bytearray, draw: random.Random, _: list[bytes]) -> None:
    del data[draw.randrange(len(data) + 1) :]


def _insert_bytes(data: bytearray, draw: random.Random, _: list[bytes]) -> None:
    offset = draw.randrange(len(data) + 1)
    data[offset:offset] = draw.randbytes(1 + int(draw.expovariate(0.3)))


def _insert_head(data: bytearray, draw: random.Random, _: list[bytes]) -> None:
    offset = draw.randrange(len(data) + 1)
    head = draw.choice(HEADS)
    data[offset : offset + draw.choice((0, 1, len(head)))] = head


def _repeat_bytes(data: bytearray, draw: random.Random, _: list[bytes]) -> None:
    offset = draw.randrange(len(data) + 1)
    piece = data[offset : offset + 1 + int(draw.expovariate(0.1))]
    data[offset:offset] = piece * (1 + int(draw.expovariate(0.2)))


def _splice_messages(data: bytearray, draw: random.Random, messages: list[bytes]) -> None:
    other = draw.choice(messages)
    data[draw.randrange(len(data) + 1) :] = other[draw.randrange(len(other)) :]


DAMAGES = (
    _flip_bit,
    _flip_bit,
    _change_byte,
    _cut_bytes,
    _truncate,
    _insert_bytes,
    _insert_head,
    _insert_head,
    _repeat_bytes,
    _splice_messages,
)


def real_messages() -> tuple[KeyStore, list[bytes], str]:
    """Return (keys, messages that nodes of the C implementation sent, a description of them)."""
    captured = json.loads(CAPTURES.read_text(encoding="utf-8"))
    keys = KeyStore()
    for pair in captured["test_keys_A256KW"]:
        keys.add_symmetric(bytes.fromhex(pair["kid"]), bytes.fromhex(pair["key"]))
    return keys, [bytes.fromhex(message["hex"]) for message in captured["messages"]], "messages of the C implementation"


def own_messages(port: int = 40001) -> tuple[KeyStore, list[bytes], str]:
    """Return (keys, a message of each kind from a node that listens at ``port``, a description of them)."""
    keys = KeyStore()
    keys.add_symmetric(b"key", bytes(range(32)))
    identity = bytes(range(16))
    interests = BitVector.of(subscription_items("a/+/c"))
    vector = BitVector.of(publication_items("a/b/c"))
    link = (port, None, 1, dps.SAK_REQUESTED, identity, interests.fuzzy_hash(), interests)
    publication = dps.Publication(port, None, 20, 1, 20, identity, 1, True, vector, ("a/b/c",), b"hello")
    acknowledgement = dps.Acknowledgement(identity, 1, b"thanks")
    security = Security(keys, A256KW, [b"key"])
    messages = [dps.Subscription(*link), dps.SubscriptionAcknowledgement(*link, 1), publication, acknowledgement]
    messages += [security.seal(publication), security.seal(acknowledgement)]
    frames = [dps.encode(message) for message in messages]
    return keys, [*frames, coap.wrap(frames[2], 1)], "messages of our own"


if __name__ == "__main__":
    main()
