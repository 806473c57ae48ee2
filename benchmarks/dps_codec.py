"""DPS's topics, filters and messages, one by one and in arrays: ``benchmarks/dps_codec.py [--quick]``.

Topics become filters, filters are routed and topics matched: one by one by `workbench.protocols.dps.bloom` and
`workbench.protocols.dps.topics`, and all at once by `workbench.protocols.dps.bloom.arrays`. Messages are encoded and
decoded one by one. Times are process times of one thread, medians of interleaved runs. Both methods must give the same
answers.
"""

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from machine import machine
from tables import ratio, table
from timing import interleaved

from workbench.protocols.dps import wire as dps
from workbench.protocols.dps.bloom import BitVector, routes
from workbench.protocols.dps.bloom import arrays as bloom_arrays
from workbench.protocols.dps.bloom.arrays import Texts
from workbench.protocols.dps.cose import A256KW, KeyStore, Security
from workbench.protocols.dps.topics import matches, publication_items, subscription_items

RUNS, QUICK_RUNS = 5, 3
# Rates of the C implementation in millions a second, one at a time, measured earlier on a similar machine.
REFERENCE = {"publication's topic to filter": 0.34, "routing decision": 7.3, "topic match": 38.0}

KINDS = ("temperature", "humidity", "wind", "rain")
PUBLISHED = [f"{kind}/{site}/{sensor}" for kind in KINDS for site in "abcde" for sensor in range(100)]
SUBSCRIBED = [
    topic
    for kind in KINDS
    for site in "abcde"
    for topic in (f"{kind}/{site}/7", f"{kind}/+/7", f"+/{site}/8", f"{kind}/{site}/#", f"+/{site}/+")
]
ALONE = 20  # publications that are routed one by one, because each pair takes microseconds


class Mesh:
    """Topics and their filters: as single values for coding one by one, and as arrays for coding all at once."""

    def __init__(self) -> None:
        self.published, self.subscribed = Texts.of(PUBLISHED), Texts.of(SUBSCRIBED)
        self.filters = bloom_arrays.publication_filters(self.published)
        self.interests = bloom_arrays.subscription_filters(self.subscribed)
        self.needs = bloom_arrays.fuzzy_hashes(self.interests)
        self.vectors = bloom_arrays.to_vectors(self.filters)[:ALONE]
        self.links = [(vector, vector.fuzzy_hash()) for vector in bloom_arrays.to_vectors(self.interests)]
        self.check()

    def check(self) -> None:
        """Raise AssertionError unless coding one by one and all at once give the same filters, routes and matches."""
        assert self.vectors == [BitVector.of(publication_items(topic)) for topic in PUBLISHED[:ALONE]]
        assert self.links == [
            (vector, vector.fuzzy_hash())
            for vector in (BitVector.of(subscription_items(topic)) for topic in SUBSCRIBED)
        ]
        routed = [[routes(vector, *link) for link in self.links] for vector in self.vectors]
        assert bloom_arrays.routes(self.filters[:ALONE], self.interests, self.needs).tolist() == routed
        matched = [[matches(topic, other) for other in SUBSCRIBED] for topic in PUBLISHED[:ALONE]]
        assert bloom_arrays.matches(PUBLISHED[:ALONE], SUBSCRIBED).tolist() == matched


def comparisons(mesh: Mesh) -> dict[str, tuple[Callable[[], int], Callable[[], int]]]:
    """Return {name of a task: (job that does it one by one, job that does it all at once)}.

    Each job returns the number of items that it has processed.
    """
    return {
        "publication's topic to filter": (lambda: _filters(mesh), lambda: _filters_at_once(mesh)),
        "routing decision": (lambda: _routes(mesh), lambda: _routes_at_once(mesh)),
        "topic match": (lambda: _matches(mesh), lambda: _matches_at_once(mesh)),
    }


def _filters(mesh: Mesh) -> int:
    for topic in PUBLISHED:
        BitVector.of(publication_items(topic))
    return len(PUBLISHED)


def _filters_at_once(mesh: Mesh) -> int:
    return sum(bloom_arrays.publication_filters(mesh.published).shape[0] for _ in range(10))


def _routes(mesh: Mesh) -> int:
    for vector in mesh.vectors:
        for interests, needs in mesh.links:
            routes(vector, interests, needs)
    return len(mesh.vectors) * len(mesh.links)


def _routes_at_once(mesh: Mesh) -> int:
    return sum(bloom_arrays.routes(mesh.filters, mesh.interests, mesh.needs).size for _ in range(5))


def _matches(mesh: Mesh) -> int:
    for topic in PUBLISHED[:ALONE]:
        for other in SUBSCRIBED:
            matches(topic, other)
    return ALONE * len(SUBSCRIBED)


def _matches_at_once(mesh: Mesh) -> int:
    return sum(bloom_arrays.matches(mesh.published, mesh.subscribed).size for _ in range(10))


def messages() -> dict[str, Callable[[], int]]:
    """Return {name of an operation: job}; a job executes the operation a thousand times and returns this number.

    The operations encode, decode, encrypt or decrypt a message.
    """
    keys = KeyStore()
    keys.add_symmetric(b"key", bytes(range(32)))
    security = Security(keys, A256KW, [b"key"])
    vector, interests = BitVector.of(publication_items("a/b/c")), BitVector.of(subscription_items("a/+/c"))
    publication = dps.Publication(40001, None, 0, 0, 0, bytes(16), 1, True, vector, ("a/b/c",), b"hello")
    subscription = dps.Subscription(40001, None, 1, 2, bytes(16), interests.fuzzy_hash(), interests)
    acknowledgement = dps.Acknowledgement(bytes(16), 1, b"thanks")
    jobs: dict[str, Callable[[], object]] = {}
    named = {"publication": publication, "subscription": subscription, "acknowledgement": acknowledgement}
    for name, message in named.items():
        frame = dps.encode(message)
        jobs[f"{name}, {len(frame)} B: encode"] = lambda message=message: dps.encode(message)
        jobs[f"{name}, {len(frame)} B: decode"] = lambda frame=frame: dps.decode(frame)
    received = dps.decode(dps.encode(publication))
    sealed = dps.decode(dps.encode(security.seal(publication)))
    assert security.open(sealed).message.data == b"hello"
    jobs["publication: pass on"] = lambda: dps.encode(dps.with_next_hop(received, 40002, 0))
    jobs["publication: encrypt, A256KW"] = lambda: security.seal(publication)
    jobs["publication: decrypt, A256KW"] = lambda: security.open(sealed)
    repeated_jobs = {name: _repeat_thousand(job) for name, job in jobs.items()}
    # The codec caches filters; with so many filters, each has left the cache before it occurs again.
    others = [publication._replace(filter=BitVector.of(publication_items(topic))) for topic in PUBLISHED[:1000]]
    frames = [dps.encode(message) for message in others]
    repeated_jobs["publication, a new filter: encode"] = lambda: len([dps.encode(message) for message in others])
    repeated_jobs["publication, a new filter: decode"] = lambda: len([dps.decode(frame) for frame in frames])
    return repeated_jobs


def _repeat_thousand(job: Callable[[], object]) -> Callable[[], int]:
    def run() -> int:
        for _ in range(1000):
            job()
        return 1000

    return run


def report(quick: bool) -> Iterator[str]:
    """Yield the report on topics, filters and messages, in pieces of Markdown; ``quick``: measure fewer runs.

    Each piece is yielded as soon as it is measured.
    """
    runs = QUICK_RUNS if quick else RUNS
    yield NOTES
    mesh = Mesh()
    pairs = comparisons(mesh)
    jobs = {(name, method): job for name, both in pairs.items() for method, job in enumerate(both)}
    rates = {key: each.receptions / each.seconds / 1e6 for key, each in interleaved(jobs, runs).items()}
    rows = []
    for name in pairs:
        alone, at_once, in_c = rates[name, 0], rates[name, 1], REFERENCE[name]
        rows.append(
            [name, f"{alone:.3f}", f"{at_once:.2f}", ratio(at_once / alone), f"{in_c:.2f}", ratio(at_once / in_c)]
        )
    header = ["millions a second", "one by one", "all at once", "at once / by one", "C, elsewhere", "at once / C"]
    yield table(header, rows) + "\n"
    fill = np.bitwise_count(mesh.filters).sum() / mesh.filters.size / 64 if hasattr(np, "bitwise_count") else None
    routed = bloom_arrays.routes(mesh.filters, mesh.interests, mesh.needs)
    matched = bloom_arrays.matches(mesh.published, mesh.subscribed)
    yield (
        f"{len(PUBLISHED)} publications{'' if fill is None else f' with {100 * fill:.2f} % of the bits set'}, "
        f"{len(SUBSCRIBED)} subscriptions; {100 * matched.mean():.1f} % of the pairs match, "
        f"{100 * routed.mean():.1f} % are routed.\n"
    )
    rows = [
        [name, f"{1e6 * each.seconds / each.receptions:.1f}"] for name, each in interleaved(messages(), runs).items()
    ]
    yield table(["message", "µs"], rows) + "\n"


NOTES = """\
Filters of 8192 bits, 3 hashes. The rates of the C implementation (dps-for-iot) were measured on a similar machine, not
in this run, and are there for scale: one at a time, with its own topics.
"""


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Measure DPS's topics, filters and messages.")
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    print(f"## DPS's topics, filters and messages\n\n{machine()}\n")
    for piece in report(parser.parse_args().quick):
        print(piece, flush=True)


if __name__ == "__main__":
    main()
