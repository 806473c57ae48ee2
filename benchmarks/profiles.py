"""The distribution of a run's time: cProfile's own times, by module and by function."""

import cProfile
import pstats
from collections import Counter
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def profile_job(job: Callable[[], object], top: int = 12) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """Profile a job; return (shares of modules, shares of functions) of its time, each [(name, share)], largest first.

    There are at most ``top`` functions. Time in called functions does not count for their caller.
    """
    profile = cProfile.Profile()
    profile.runcall(job)
    functions: Counter = Counter()
    modules: Counter = Counter()
    for (path, _, name), (_, _, own, _, _) in pstats.Stats(profile).stats.items():
        module = _find_module(path)
        modules[module] += own
        functions[f"{module} {name}"] += own
    total = sum(modules.values())
    return (
        [(name, own / total) for name, own in modules.most_common(8)],
        [(name, own / total) for name, own in functions.most_common(top)],
    )


def _find_module(path: str) -> str:
    if path == "~":
        return "built-in"
    if path.startswith("<"):
        return "named tuples"  # namedtuple compiles its constructors from strings
    try:
        return str(Path(path).relative_to(REPOSITORY / "workbench"))
    except ValueError:
        return "libraries"
