"""The rules of the house: what may import what, who may name whom, and where a thing belongs that breaks a rule.

A `House` is a tree of sources, that of the package or one made up for a test. ``faults(house)`` lists what breaks a
rule, each with a sentence that says where the thing belongs. Sources are read (`ast`), not imported.

Rules
    inside     within a protocol imports point one way (`MAY_IMPORT`): wire, rules and events -> node and its other
               parts -> the package's page -> fast, metrics, dissector -> views; page -> explain; udp -> cli, processes
    between    a protocol imports no other one, unless its page says ``KIND_OF = "the other one"``
    rooms      rooms import only what is left of them (`ROOMS`), lazily or for types too, but for `UPWARD`; generic
               rooms import of protocols only the contract
    names      generic rooms name no protocol: neither as an identifier nor in a text; a docstring may name one in its
               examples and in its prose, but not the path of a module of it. An experiment (`EXPERIMENTS`) names what
               it runs, as a notebook does
    circles    no import circle at import time; none through several rooms or protocols, lazy imports counted
    prefixes   no folder in which prefixes do the work of sub-folders
    lists      only `public_names` lists protocols
    constants  a constant of a protocol stands once
    mote       what runs on a mote imports only what MicroPython has, and nothing from a package's page

At import time means: neither within a function nor under ``if TYPE_CHECKING``. Other imports are lazy. Names of modules
in texts are not imports: a protocol's class names its parts, and `public_names.EXTENSIONS` the displays of values.
"""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import networkx as nx

PACKAGE = "workbench"

EXPERIMENTS = {"cli/demo.py"}

# Rooms from left to right; "contract" stands for the files in protocols/ itself.
ROOMS = (
    (
        *("errors", "draws", "purposes", "public_names", "array_draws", "java", "suggestion", "keywords", "plugins"),
        *("folded_errors", "notice", "columns", "extensions"),
    ),
    ("attributes", "coding"),
    ("contract",),
    ("topology", "datasets", "sensor_field"),
    ("sim",),
    ("analysis", "fuzzing"),
    ("motes",),
    ("sweeps",),
    ("records",),
    ("pipelines",),
    ("views",),
    ("widgets",),
    ("cli", "__main__"),
)
# (importing file, imported module) -> why this import points to the right: at most three of them.
UPWARD: dict[tuple[str, str], str] = {}
RANK = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}
CONTRACT = ("contract", "parameter", "protocol", "subscriptions", "recent", "link_estimator", "dissection")
NAMELESS = ("sim", "analysis", "fuzzing", "motes", "sweeps", "pipelines", "records", "views", "widgets", "cli")

# Part of a protocol -> the parts that it may import. "node" stands for the node and its other parts, "page" for what
# has the Protocol class: the package's `__init__`, and modules that `public_names` lists.
BASE = ("wire", "rules", "events")
DEFINITION = {*BASE, "node"}
MAY_IMPORT = {
    **dict.fromkeys(BASE, DEFINITION),
    "node": DEFINITION,
    "page": {*DEFINITION, "page"},
    "fast": {*DEFINITION, "page", "fast"},
    "metrics": {*DEFINITION, "page", "metrics"},
    "dissector": {*DEFINITION, "page", "dissector"},
    "explain": {*DEFINITION, "page", "explain"},
    "views": {*DEFINITION, "page", "fast", "metrics", "dissector", "views"},
    "udp": {*DEFINITION, "page", "udp"},
    "cli": {*DEFINITION, "page", "udp", "cli"},
    "processes": {*DEFINITION, "page", "udp", "processes"},
}
# Part of a protocol -> the rightmost room that it may import.
REACH = {
    **dict.fromkeys((*DEFINITION, "page"), "contract"),
    "fast": "sim",
    "metrics": "sim",
    "dissector": "contract",
    "explain": "analysis",
    "views": "views",
    "udp": "contract",
    "processes": "topology",
    "cli": "cli",
}
HOST_PARTS = tuple(part for part in MAY_IMPORT if part not in DEFINITION and part != "page")

MICROPYTHON = {"array", "binascii", "collections", "hashlib", "heapq", "math", "struct", PACKAGE}


class Fault(NamedTuple):
    """What breaks a rule: ``where`` a path (or a folder), ``what`` a module, a name or the like."""

    rule: str
    where: str
    what: str
    sentence: str


class Import(NamedTuple):
    """``module`` is what is loaded; ``is_page``: a name is taken from a package's `__init__`."""

    module: str
    line: int
    is_lazy: bool
    is_page: bool


class Place(NamedTuple):
    """Where a module is: its room ("protocols" for those of a protocol), its protocol, and its part of that."""

    room: str
    protocol: str = ""
    part: str = ""


class House:
    """Sources by their paths within the package: {"sim/kernel.py": "..."}."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = dict(sorted(files.items()))
        self.trees = {path: ast.parse(text) for path, text in self.files.items()}
        self.modules = {module_of(path): path for path in self.files}
        self.imports = {path: list(self._imports(path)) for path in self.files}

    @classmethod
    def at(cls, folder: Path) -> "House":
        """The package in a folder."""
        paths = sorted(folder.rglob("*.py"))
        return cls({path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths})

    @cached_property
    def protocols(self) -> tuple[str, ...]:
        """The protocols' folders."""
        found = {path.split("/")[1] for path in self.files if re.match(r"protocols/\w+/", path)}
        return tuple(sorted(found))

    @cached_property
    def public(self) -> dict[str, str]:
        """The table of public protocols: a protocol's class -> its module within the package."""
        table = constants(self.trees["public_names.py"]) if "public_names.py" in self.trees else {}
        return dict(table.get("PROTOCOLS", {}))

    @cached_property
    def pages(self) -> set[str]:
        """The modules that have public protocols."""
        return {f"{PACKAGE}.{home}" for home in self.public.values()}

    @cached_property
    def names(self) -> set[str]:
        """What protocols are called in code: their folders and classes, in small letters and without underscores."""
        return {name.replace("_", "").lower() for name in (*self.protocols, *self.public)}

    def kind_of(self, protocol: str) -> str:
        """The protocol that this one says it is a kind of, or ""."""
        page = self.trees.get(f"protocols/{protocol}/__init__.py")
        return str(constants(page).get("KIND_OF", "")) if page else ""

    def is_package(self, module: str) -> bool:
        """Whether a module is a package of this house."""
        return self.modules.get(module, "").endswith("__init__.py") or module in self._folders

    @cached_property
    def _folders(self) -> set[str]:
        folders = {path.rpartition("/")[0] for path in self.files if "/" in path}
        return {module_of(f"{folder}/__init__.py") for folder in folders}

    def place(self, module: str) -> Place:
        """Where a module of the package is."""
        names = module.split(".")[1:] or [""]
        if names[0] != "protocols":
            return Place(names[0])
        if len(names) < 2 or names[1] not in self.protocols:
            return Place("contract")
        part = names[2] if len(names) > 2 else "page"
        if module in self.pages:
            part = "page"
        return Place("protocols", names[1], part if part in MAY_IMPORT else "node")

    def _imports(self, path: str) -> Iterator[Import]:
        for node, is_lazy in _imports_in(self.trees[path]):
            for alias in node.names:
                module = alias.name
                if isinstance(node, ast.ImportFrom):
                    home = _home(path, node)
                    inner = f"{home}.{alias.name}"
                    module = inner if inner in self.modules or self.is_package(inner) else home
                yield Import(module, node.lineno, is_lazy, self.is_package(module))

    def own_imports(self) -> Iterator[tuple[str, Place, Import, Place]]:
        """(path, where it is, an import of this package, where that is) of each file but the package's page."""
        for path, imports in self.imports.items():
            here = self.place(module_of(path))
            for one in imports:
                if one.module.startswith(f"{PACKAGE}.") and here.room:
                    yield path, here, one, self.place(one.module)


def module_of(path: str) -> str:
    """'sim/kernel.py' -> 'workbench.sim.kernel', 'sim/__init__.py' -> 'workbench.sim'."""
    return ".".join([PACKAGE, *path.removesuffix(".py").split("/")]).removesuffix(".__init__")


def _imports_in(tree: ast.AST, is_lazy: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Import statements, and whether they are lazy."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, is_lazy
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            waits = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for_types = isinstance(node, ast.If) and ast.dump(node.test).startswith("Name(id='TYPE_CHECKING'")
            yield from _imports_in(node, is_lazy or waits or for_types)


def _home(path: str, node: ast.ImportFrom) -> str:
    """The module that names are imported from, also where dots stand for folders."""
    above = [PACKAGE, *path.split("/")][: -node.level] if node.level else []
    return ".".join([*above, *([node.module] if node.module else [])])


def constants(tree: ast.AST) -> dict[str, object]:
    """Module-level names and their values, where these are plain: numbers, texts, and tuples and tables of them."""
    found: dict[str, object] = {}
    for node in getattr(tree, "body", ()):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found.update(_assigned(target, node.value))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            found.update(_assigned(node.target, node.value))
    return found


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, object]]:
    if isinstance(target, ast.Name):
        plain = _plain(value)
        if plain is not None:
            yield target.id, plain
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, its in zip(target.elts, value.elts, strict=True):
            yield from _assigned(one, its)


def _plain(value: ast.expr) -> object:
    """A literal's value, that of arithmetic over numbers too; None for anything else."""
    try:
        return ast.literal_eval(value)
    except ValueError:
        pass
    numbers = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)
    if isinstance(value, ast.BinOp) and all(isinstance(node, numbers) for node in ast.walk(value)):
        return eval(compile(ast.Expression(value), "constant", "eval"), {"__builtins__": {}})
    return None


# The rules


def faults(house: House) -> list[Fault]:
    """All that breaks a rule, but for what runs on a mote (`mote_faults`)."""
    found = [*inside(house), *between(house), *rooms(house), *names(house), *circles(house), *prefixes(house)]
    return list(dict.fromkeys([*found, *lists(house), *constants_twice(house)]))


def inside(house: House) -> Iterator[Fault]:
    """Imports within a protocol, or of the protocol that it is a kind of, that point the wrong way."""
    for path, here, one, there in house.own_imports():
        if here.protocol and there.protocol and there.protocol in (here.protocol, house.kind_of(here.protocol)):
            if there.part not in MAY_IMPORT[here.part]:
                yield _fault(
                    "inside",
                    path,
                    one,
                    f"a protocol's {_part(here.part)} may import only {_listed(MAY_IMPORT[here.part])} of it; what "
                    f"both need belongs into {_common(here, there)}",
                )
            elif here.part in BASE and (way := _way_to_node(house, one.module, there.protocol)):
                yield _fault(
                    "inside",
                    path,
                    one,
                    f"which leads to the node ({way}); {here.part} is below the node: what it needs of it belongs into "
                    f"protocols/{here.protocol}/rules.py or a part that does not import the node",
                )


def _common(here: Place, there: Place) -> str:
    folder = f"protocols/{there.protocol}"
    if here.part in DEFINITION:
        return f"{folder}/rules.py, wire.py or a part of the node, from where the {_part(there.part)} may import it"
    return f"the definition ({folder}/rules.py, wire.py, a part of the node)"


def _part(part: str) -> str:
    return {"node": "node and its parts", "page": "page (`__init__.py`)"}.get(part, part)


def _way_to_node(house: House, module: str, protocol: str) -> str:
    """How a module of a protocol comes to import its node, or ""."""
    node = f"{PACKAGE}.protocols.{protocol}.node"
    ways, seen = [[module]], {module}
    while ways:
        way = ways.pop()
        if way[-1] == node:
            return " -> ".join(one.rpartition(".")[2] for one in way)
        for one in house.imports.get(house.modules.get(way[-1], ""), ()):
            if one.module not in seen and house.place(one.module).protocol == protocol:
                seen.add(one.module)
                ways.append([*way, one.module])
    return ""


def between(house: House) -> Iterator[Fault]:
    """Imports of another protocol."""
    for path, here, one, there in house.own_imports():
        if here.protocol and there.protocol and there.protocol not in (here.protocol, house.kind_of(here.protocol)):
            yield _fault(
                "between",
                path,
                one,
                f"a protocol imports no other one: what both need belongs into a generic room ({_generic(here.part)}); "
                f'if {here.protocol} is a kind of {there.protocol}, its page says KIND_OF = "{there.protocol}"',
            )


def _generic(part: str) -> str:
    return {"fast": "sim/fast/", "views": "views/", "metrics": "sim/metrics.py", "cli": "cli/"}.get(
        part, "protocols/recent.py and its neighbors, attributes/, coding/"
    )


def rooms(house: House) -> Iterator[Fault]:
    """Imports between rooms that point the wrong way, files in no room, and protocols that generic rooms import."""
    for path in house.files:
        here = house.place(module_of(path))
        if here.room and here.room != "protocols" and here.room not in RANK:
            yield Fault("rooms", path, here.room, _no_room(path, here.room))
        stem = path.removeprefix("protocols/").removesuffix(".py")
        if here.room == "contract" and stem not in (*CONTRACT, "__init__"):
            yield Fault("rooms", path, stem, _no_contract(path))
    for path, here, one, there in house.own_imports():
        if here.protocol:
            yield from _beyond_reach(path, here, one, there)
        elif there.protocol:
            why = (
                f"a generic room imports of protocols only {_listed(CONTRACT)}: what is this protocol's own belongs "
                f"into protocols/{there.protocol}/, where {here.room}/ finds it by name at run time; what is "
                f"everybody's belongs into {here.room}/ or a room left of it"
            )
            yield _fault("rooms", path, one, why)
        elif RANK.get(there.room, -1) > RANK.get(here.room, 99) and (path, one.module) not in UPWARD:
            why = (
                f"{there.room} is right of {here.room}, which imports only what is left of it: what both need belongs "
                f"into {here.room} or left of it; what only {there.room} needs belongs there; what displays or runs a "
                f"value belongs into {there.room} and into public_names.EXTENSIONS"
            )
            yield _fault("rooms", path, one, why)


def _beyond_reach(path: str, here: Place, one: Import, there: Place) -> Iterator[Fault]:
    """A part of a protocol that imports a room which is not there for it."""
    if RANK.get(there.room, -1) <= RANK[REACH[here.part]]:
        return
    hosts = [part for part in HOST_PARTS if RANK[REACH[part]] >= RANK.get(there.room, 99)]
    folder = f"protocols/{here.protocol}"
    yield _fault(
        "rooms",
        path,
        one,
        f"a protocol's {_part(here.part)} imports rooms up to {REACH[here.part]} only: what needs {there.room} belongs "
        "into " + (" or ".join(f"{folder}/{part}" for part in hosts) or f"{there.room}/"),
    )


def _no_room(path: str, room: str) -> str:
    return (
        f"{PACKAGE}/{path}: the house has no room {room!r}; it belongs into one of "
        f"{_listed(one for some in ROOMS for one in some if one != 'contract')}, or into a protocol's folder"
    )


def _no_contract(path: str) -> str:
    return (
        f"{PACKAGE}/{path}: in protocols/ itself are only {_listed(CONTRACT)}; what is one protocol's own belongs into "
        f"its folder, what is not about protocols into a generic room"
    )


def names(house: House) -> Iterator[Fault]:
    """Generic rooms that name a protocol."""
    for path, tree in house.trees.items():
        if path.split("/")[0] not in NAMELESS or path in EXPERIMENTS:
            continue
        told = set()
        for line, text in _names_in(tree):
            for name in sorted(longest(named_in(text, house.names)) - told):
                told.add(name)
                yield Fault(
                    "names",
                    path,
                    name,
                    f"{PACKAGE}/{path}:{line} names the protocol {name} ({text.strip()[:60]!r}): what one protocol "
                    f"alone has belongs into its folder in protocols/; its class says it, or it is found by name",
                )


def _names_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of identifiers, of texts, and of what looks like the path of a module in docstrings."""
    docstrings = set(_docstrings(tree))
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in docstrings:
                yield from ((line, found) for found in re.findall(r"protocols[./]\w+", node.value))
            else:
                yield line, node.value
        elif not isinstance(node, ast.Import | ast.ImportFrom):  # `rooms` looks at these
            for field in ("id", "attr", "name", "arg"):
                if isinstance(getattr(node, field, None), str):
                    yield line, getattr(node, field)


def _docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr):
                yield first.value


def named_in(text: str, protocols: Iterable[str]) -> set[str]:
    """The protocols that a text or an identifier names: `dps_mesh`, `CodedDiffusion`, "flooding.fast"."""
    return _joined(text) & set(protocols)


@functools.cache
def _joined(text: str) -> frozenset[str]:
    """Return the words of a text, and up to three of them beside each other as one word."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", text)]
    ends = ((i, j) for i in range(len(words)) for j in range(i + 1, min(i + 3, len(words)) + 1))
    return frozenset("".join(words[i:j]) for i, j in ends)


def longest(found: set[str]) -> set[str]:
    """Names without those that are a part of another one: of "coded diffusion" not "diffusion"."""
    return {name for name in found if not any(name != other and name in other for other in found)}


def circles(house: House) -> Iterator[Fault]:
    """Circles of imports at import time, and those that span packages if lazy imports count, each told once."""
    arcs = _arcs(house, are_lazy_counted=False)
    done: set[str] = set()
    for module in sorted(arcs):
        circle = _circle_from(module, arcs, done, [])
        if circle:
            first = house.modules[circle[0]]
            shown = " -> ".join(one.removeprefix(f"{PACKAGE}.") for one in (*circle, circle[0]))
            why = "what they need of each other belongs into a module that both import"
            yield Fault("circles", first, shown, f"{PACKAGE}/{first}: a circle of imports, {shown}: {why}")

    for knot in knots(house):
        packages = sorted({"/".join(filter(None, house.place(module)[:2])) for module in knot})
        if len(packages) > 1:
            first, shown = house.modules[knot[0]], ", ".join(packages)
            why = (
                f"lazy imports lead in a circle through {shown}: what they need of each other belongs into one of them"
            )
            yield Fault("circles", first, shown, f"{PACKAGE}/{first}: {why}")


def _arcs(house: House, are_lazy_counted: bool) -> dict[str, list[str]]:
    """Module -> the modules of the package that it imports, in order of their names."""
    return {
        module_of(path): sorted(
            {one.module for one in imports if (are_lazy_counted or not one.is_lazy) and one.module in house.modules}
        )
        for path, imports in house.imports.items()
    }


def knots(house: House) -> list[list[str]]:
    """Groups of modules that import each other in circles, lazily or for types too; the largest first."""
    graph = nx.DiGraph((module, other) for module, others in _arcs(house, True).items() for other in others)
    found = [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
    return sorted(found, key=lambda group: (-len(group), group))


def _circle_from(module: str, arcs: Mapping[str, list[str]], done: set[str], way: list[str]) -> list[str]:
    if module in way:
        return way[way.index(module) :]
    if module in done:
        return []
    for other in arcs[module]:
        circle = _circle_from(other, arcs, done, [*way, module])
        if circle:
            done.update(way, [module])
            return circle
    done.add(module)
    return []


def prefixes(house: House) -> Iterator[Fault]:
    """Files of a folder that share their first word."""
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path in house.files:
        folder, _, name = path.rpartition("/")
        if not name.startswith("__"):
            groups[folder, name.removesuffix(".py").split("_")[0]].add(name)
        above, _, own = folder.rpartition("/")
        if own:
            groups[above, own.split("_")[0]].add(f"{own}/")
    for (folder, word), found in sorted(groups.items()):
        if len(found) > 1:
            inner = f"{PACKAGE}/{folder}/{word}/".replace("//", "/")
            yield Fault(
                "prefixes",
                folder,
                word,
                f"{PACKAGE}/{folder}: {_listed(found)} share the word {word!r}: they belong into a folder {inner}, or "
                f"need names that say what is different about them",
            )


def lists(house: House) -> Iterator[Fault]:
    """Tables with several protocols."""
    for path, tree in house.trees.items():
        if path == "public_names.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set):
                found = {name for inner in _entries(node) for name in named_in(inner, house.names)}
                if len(found := longest(found)) > 1:
                    why = (
                        "only public_names.py lists protocols: what is said of each belongs into its own folder, where "
                        "its class says it when asked"
                    )
                    what = ",".join(sorted(found))
                    yield Fault("lists", path, what, f"{PACKAGE}/{path}:{node.lineno} lists {what}: {why}")
                    break


def _entries(node: ast.AST) -> Iterator[str]:
    """Texts and names that a table has as keys and values, and those of tables within it."""
    inner = (*node.keys, *node.values) if isinstance(node, ast.Dict) else getattr(node, "elts", ())
    for one in inner:
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and " " not in one.value:
            yield one.value
        elif isinstance(one, ast.Name | ast.Attribute):
            yield ast.unparse(one)
        elif isinstance(one, ast.Tuple | ast.List):
            yield from _entries(one)


def constants_twice(house: House) -> Iterator[Fault]:
    """Constants that a protocol's folder has in two files, with the same value."""
    for protocol in house.protocols:
        places: dict[tuple[str, str], list[str]] = defaultdict(list)
        for path in house.files:
            if path.startswith(f"protocols/{protocol}/"):
                for name, value in constants(house.trees[path]).items():
                    if name.lstrip("_").isupper():
                        places[name.lstrip("_"), repr(value)].append(path)
        for (name, value), paths in sorted(places.items()):
            if len(paths) > 1 and any(house.place(module_of(path)).part in (*DEFINITION, "page") for path in paths):
                first = min(paths, key=lambda path: list(MAY_IMPORT).index(house.place(module_of(path)).part))
                others = [path for path in paths if path != first]
                why = f"it belongs into {PACKAGE}/{first}, from where the other imports it"
                sentence = f"{PACKAGE}/{others[0]}: {name} = {value} stands in {first} too: {why}"
                yield Fault("constants", others[0], name, sentence)


def mote_faults(house: House, modules: Iterable[str]) -> Iterator[Fault]:
    """What keeps modules, and what they import, from running on a mote."""
    waiting, seen = list(modules), set(modules)
    while waiting:
        path = house.modules[waiting.pop()]
        for one in house.imports[path]:
            if one.module.split(".")[0] not in MICROPYTHON:
                why = "what needs it belongs into a file that a mote does not load: a protocol's page or its host parts"
                yield _fault("mote", path, one, f"MicroPython has no {one.module.split('.')[0]}; {why}")
            elif one.module == f"{PACKAGE}.protocols.protocol":
                why = "it is the host's: what a node needs of it belongs into protocols/contract.py or the node"
                yield _fault("mote", path, one, why)
            elif one.is_page:
                why = "a package's page does not go on a mote: what it needs of it belongs into a module of its own"
                yield _fault("mote", path, one, why)
            elif one.module in house.modules and one.module not in seen:
                seen.add(one.module)
                waiting.append(one.module)


def _fault(rule: str, path: str, one: Import, why: str) -> Fault:
    return Fault(rule, path, one.module, f"{PACKAGE}/{path}:{one.line} imports {one.module}: {why}")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
