"""The rules of this package's structure: which module may import which, and which may name protocols.

A `SourceTree` holds source files of the package, or made-up files of a test. ``faults(sources)`` lists the breaches of
the rules, each with a sentence that names the right location. Sources are parsed (`ast`), not imported.

Rules
    inside     within a protocol imports point one way (`MAY_IMPORT`): wire, rules and events -> node and its other
               parts -> `__init__` -> fast, metrics, dissector -> views; `__init__` -> explain; udp -> cli, processes
    between    a protocol imports another protocol only if its `__init__` has ``KIND_OF = "the other protocol"``
    packages   a package imports only packages to its left (`PACKAGES`), also lazily and for types, except `UPWARD`;
               generic packages import only the contract from the protocols
    names      generic packages name no protocol, neither in identifiers nor in strings. A docstring may name a
               protocol in examples and prose, but not the path of a module of a protocol. An experiment
               (`EXPERIMENTS`) names the protocols that it runs, as a notebook does
    cycles     imports at import time have no cycle; with lazy imports, no cycle spans several packages or protocols
    prefixes   files of a folder do not share prefixes that should be sub-folders
    lists      only `public_names` lists protocols
    constants  a constant of a protocol is defined once
    mote       modules for motes import only modules that MicroPython has, and nothing from an `__init__`

At import time means: neither within a function nor under ``if TYPE_CHECKING``. Other imports are lazy. Names of modules
in strings are not imports: a protocol's class names its parts, and `public_names.EXTENSIONS` the displays of values.
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

# Packages from left to right; "contract" stands for the files in protocols/ itself.
PACKAGES = (
    (
        *(
            "errors",
            "draws",
            "purposes",
            "public_names",
            "array_draws",
            "java",
            "locations",
            "suggestion",
            "keywords",
            "plugins",
        ),
        *("folded_errors", "notice", "columns", "extensions"),
    ),
    ("attributes", "coding"),
    ("contract",),
    ("topology", "datasets", "sensor_field", "mobility"),
    ("sim",),
    ("analysis", "fuzzing", "gallery"),
    ("motes",),
    ("sweeps",),
    ("records", "captures", "classes"),
    ("pipelines",),
    ("views",),
    ("widgets",),
    ("publishing",),
    ("cli", "__main__"),
)
# (importing file, imported module) -> why this import points to the right; at most three entries.
UPWARD: dict[tuple[str, str], str] = {}
RANK = {name: rank for rank, names in enumerate(PACKAGES) for name in names}
CONTRACT = (
    "contract",
    "parameter",
    "protocol",
    "subscriptions",
    "recent",
    "link_estimator",
    "dissection",
    "field_tables",
)
NAMELESS = (
    "sim",
    "analysis",
    "fuzzing",
    "gallery",
    "motes",
    "sweeps",
    "pipelines",
    "records",
    "captures",
    "classes",
    "views",
    "widgets",
    "publishing",
    "cli",
)

# Part of a protocol -> the parts that it may import. "node" stands for the node and its other parts, "init" for the
# modules with the Protocol class: the package's `__init__`, and modules that `public_names` lists.
BASE = ("wire", "rules", "events")
DEFINITION = {*BASE, "node"}
MAY_IMPORT = {
    **dict.fromkeys(BASE, DEFINITION),
    "node": DEFINITION,
    "init": {*DEFINITION, "init"},
    "fast": {*DEFINITION, "init", "fast"},
    "metrics": {*DEFINITION, "init", "metrics"},
    "dissector": {*DEFINITION, "init", "dissector"},
    "explain": {*DEFINITION, "init", "explain"},
    "views": {*DEFINITION, "init", "fast", "metrics", "dissector", "views"},
    "udp": {*DEFINITION, "init", "udp"},
    "cli": {*DEFINITION, "init", "udp", "cli"},
    "processes": {*DEFINITION, "init", "udp", "processes"},
}
# Part of a protocol -> the rightmost package that it may import.
REACH = {
    **dict.fromkeys((*DEFINITION, "init"), "contract"),
    "fast": "sim",
    "metrics": "sim",
    "dissector": "contract",
    "explain": "analysis",
    "views": "views",
    "udp": "contract",
    "processes": "topology",
    "cli": "cli",
}
HOST_PARTS = tuple(part for part in MAY_IMPORT if part not in DEFINITION and part != "init")

MICROPYTHON = {"array", "binascii", "collections", "hashlib", "heapq", "math", "struct", PACKAGE}


class Fault(NamedTuple):
    """A breach of a rule: the rule, the path or folder, and the module, name or word that breaks it."""

    rule: str
    where: str
    subject: str
    sentence: str


class Import(NamedTuple):
    """An import: the loaded module, its line, and whether it is lazy or takes a name from a package's `__init__`."""

    module: str
    line: int
    is_lazy: bool
    is_from_init: bool


class Location(NamedTuple):
    """The location of a module: its package ("protocols" within a protocol), its protocol, and the protocol's part."""

    package: str
    protocol: str = ""
    part: str = ""


class SourceTree:
    """Source files by their paths within the package: {"sim/kernel.py": "..."}."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = dict(sorted(files.items()))
        self.trees = {path: ast.parse(text) for path, text in self.files.items()}
        self.modules = {module_of(path): path for path in self.files}
        self.imports = {path: list(self._imports(path)) for path in self.files}

    @classmethod
    def at(cls, folder: Path) -> "SourceTree":
        """Read the source files of the package in a folder."""
        paths = sorted(folder.rglob("*.py"))
        return cls({path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths})

    @cached_property
    def protocols(self) -> tuple[str, ...]:
        """The names of the protocols' folders."""
        folders = {path.split("/")[1] for path in self.files if re.match(r"protocols/\w+/", path)}
        return tuple(sorted(folders))

    @cached_property
    def public(self) -> dict[str, str]:
        """The table of public protocols: a protocol's class -> its module within the package."""
        table = constants(self.trees["public_names.py"]) if "public_names.py" in self.trees else {}
        return dict(table.get("PROTOCOLS", {}))

    @cached_property
    def class_modules(self) -> set[str]:
        """The modules with the class of a public protocol."""
        return {f"{PACKAGE}.{home}" for home in self.public.values()}

    @cached_property
    def names(self) -> set[str]:
        """The names of protocols in code: their folders and classes, in lower case and without underscores."""
        return {name.replace("_", "").lower() for name in (*self.protocols, *self.public)}

    def kind_of(self, protocol: str) -> str:
        """Return the protocol of which this protocol declares to be a kind, or ""."""
        init = self.trees.get(f"protocols/{protocol}/__init__.py")
        return str(constants(init).get("KIND_OF", "")) if init else ""

    def is_package(self, module: str) -> bool:
        """Check whether a module is a package of this tree."""
        return self.modules.get(module, "").endswith("__init__.py") or module in self._folders

    @cached_property
    def _folders(self) -> set[str]:
        folders = {path.rpartition("/")[0] for path in self.files if "/" in path}
        return {module_of(f"{folder}/__init__.py") for folder in folders}

    def locate(self, module: str) -> Location:
        """Return the location of a module of the package."""
        names = module.split(".")[1:] or [""]
        if names[0] != "protocols":
            return Location(names[0])
        if len(names) < 2 or names[1] not in self.protocols:
            return Location("contract")
        part = names[2] if len(names) > 2 else "init"
        if module in self.class_modules:
            part = "init"
        return Location("protocols", names[1], part if part in MAY_IMPORT else "node")

    def _imports(self, path: str) -> Iterator[Import]:
        for node, is_lazy in _imports_in(self.trees[path]):
            for alias in node.names:
                module = alias.name
                if isinstance(node, ast.ImportFrom):
                    home = _home(path, node)
                    inner = f"{home}.{alias.name}"
                    module = inner if inner in self.modules or self.is_package(inner) else home
                yield Import(module, node.lineno, is_lazy, self.is_package(module))

    def own_imports(self) -> Iterator[tuple[str, Location, Import, Location]]:
        """Yield (path, its location, import, location of the imported module) of each import from this package.

        The package's own `__init__` is skipped.
        """
        for path, imports in self.imports.items():
            origin = self.locate(module_of(path))
            for imported in imports:
                if imported.module.startswith(f"{PACKAGE}.") and origin.package:
                    yield path, origin, imported, self.locate(imported.module)


def module_of(path: str) -> str:
    """Return the module of a path: 'sim/kernel.py' -> 'workbench.sim.kernel', 'sim/__init__.py' -> 'workbench.sim'."""
    return ".".join([PACKAGE, *path.removesuffix(".py").split("/")]).removesuffix(".__init__")


def _imports_in(tree: ast.AST, is_lazy: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield each import statement, and whether it is lazy."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, is_lazy
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            waits = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for_types = isinstance(node, ast.If) and ast.dump(node.test).startswith("Name(id='TYPE_CHECKING'")
            yield from _imports_in(node, is_lazy or waits or for_types)


def _home(path: str, node: ast.ImportFrom) -> str:
    """Return the absolute module of an import statement, also if leading dots stand for folders."""
    above = [PACKAGE, *path.split("/")][: -node.level] if node.level else []
    return ".".join([*above, *([node.module] if node.module else [])])


def constants(tree: ast.AST) -> dict[str, object]:
    """Return module-level names with plain values: numbers, strings, and tuples and dictionaries of them."""
    values: dict[str, object] = {}
    for node in getattr(tree, "body", ()):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                values.update(_assigned(target, node.value))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            values.update(_assigned(node.target, node.value))
    return values


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, object]]:
    if isinstance(target, ast.Name):
        plain = _plain(value)
        if plain is not None:
            yield target.id, plain
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for element, element_value in zip(target.elts, value.elts, strict=True):
            yield from _assigned(element, element_value)


def _plain(value: ast.expr) -> object:
    """Return the value of a literal or of arithmetic over numbers, or None."""
    try:
        return ast.literal_eval(value)
    except ValueError:
        pass
    numbers = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)
    if isinstance(value, ast.BinOp) and all(isinstance(node, numbers) for node in ast.walk(value)):
        return eval(compile(ast.Expression(value), "constant", "eval"), {"__builtins__": {}})
    return None


# The rules


def faults(sources: SourceTree) -> list[Fault]:
    """Return every breach of a rule, except the rule for motes (`mote_faults`)."""
    rules = (inside, between, packages, names, cycles, prefixes, lists, constants_twice)
    return list(dict.fromkeys(fault for rule in rules for fault in rule(sources)))


def inside(sources: SourceTree) -> Iterator[Fault]:
    """Yield imports that point the wrong way within a protocol, or into the protocol of which it is a kind."""
    for path, origin, imported, target in sources.own_imports():
        related = (origin.protocol, sources.kind_of(origin.protocol))
        if origin.protocol and target.protocol and target.protocol in related:
            if target.part not in MAY_IMPORT[origin.part]:
                yield _fault(
                    "inside",
                    path,
                    imported,
                    f"a protocol's {_part(origin.part)} may import only {_listed(MAY_IMPORT[origin.part])} of it; "
                    f"code for both belongs into {_common(origin, target)}",
                )
            elif origin.part in BASE and (chain := _chain_to_node(sources, imported.module, target.protocol)):
                yield _fault(
                    "inside",
                    path,
                    imported,
                    f"which imports the node ({chain}); {origin.part} is below the node: shared code belongs into "
                    f"protocols/{origin.protocol}/rules.py or a part that does not import the node",
                )


def _common(origin: Location, target: Location) -> str:
    folder = f"protocols/{target.protocol}"
    if origin.part in DEFINITION:
        return f"{folder}/rules.py, wire.py or a part of the node, from where the {_part(target.part)} may import it"
    return f"the definition ({folder}/rules.py, wire.py, a part of the node)"


def _part(part: str) -> str:
    return {"node": "node and its parts", "init": "`__init__.py`"}.get(part, part)


def _chain_to_node(sources: SourceTree, module: str, protocol: str) -> str:
    """Return the chain of imports from a module of a protocol to its node, or ""."""
    node = f"{PACKAGE}.protocols.{protocol}.node"
    chains, seen = [[module]], {module}
    while chains:
        chain = chains.pop()
        if chain[-1] == node:
            return " -> ".join(name.rpartition(".")[2] for name in chain)
        for imported in sources.imports.get(sources.modules.get(chain[-1], ""), ()):
            if imported.module not in seen and sources.locate(imported.module).protocol == protocol:
                seen.add(imported.module)
                chains.append([*chain, imported.module])
    return ""


def between(sources: SourceTree) -> Iterator[Fault]:
    """Yield imports of another protocol."""
    for path, origin, imported, target in sources.own_imports():
        related = (origin.protocol, sources.kind_of(origin.protocol))
        if origin.protocol and target.protocol and target.protocol not in related:
            yield _fault(
                "between",
                path,
                imported,
                f"protocols do not import each other: shared code belongs into a generic package "
                f"({_generic(origin.part)}); if {origin.protocol} is a kind of {target.protocol}, its `__init__` needs "
                f'KIND_OF = "{target.protocol}"',
            )


def _generic(part: str) -> str:
    return {"fast": "sim/fast/", "views": "views/", "metrics": "sim/metrics.py", "cli": "cli/"}.get(
        part, "protocols/recent.py and its neighbors, attributes/, coding/"
    )


def packages(sources: SourceTree) -> Iterator[Fault]:
    """Yield imports to the right, files in unknown packages, and imports of protocols by generic packages."""
    for path in sources.files:
        origin = sources.locate(module_of(path))
        if origin.package and origin.package != "protocols" and origin.package not in RANK:
            yield Fault("packages", path, origin.package, _unknown_package(path, origin.package))
        stem = path.removeprefix("protocols/").removesuffix(".py")
        if origin.package == "contract" and stem not in (*CONTRACT, "__init__"):
            yield Fault("packages", path, stem, _not_in_contract(path))
    for path, origin, imported, target in sources.own_imports():
        if origin.protocol:
            yield from _beyond_reach(path, origin, imported, target)
        elif target.protocol:
            why = (
                f"a generic package imports only {_listed(CONTRACT)} of the protocols: code of this protocol belongs "
                f"into protocols/{target.protocol}/, where {origin.package}/ finds it by name at run time; code for "
                f"all protocols belongs into {origin.package}/ or a package left of it"
            )
            yield _fault("packages", path, imported, why)
        elif RANK.get(target.package, -1) > RANK.get(origin.package, 99) and (path, imported.module) not in UPWARD:
            why = (
                f"{target.package} is right of {origin.package}, which imports only packages to its left: shared code "
                f"belongs into {origin.package} or left of it; code for {target.package} alone belongs there; a "
                f"function that displays or runs a value belongs into {target.package} and into public_names.EXTENSIONS"
            )
            yield _fault("packages", path, imported, why)


def _beyond_reach(path: str, origin: Location, imported: Import, target: Location) -> Iterator[Fault]:
    """Yield a fault if a part of a protocol imports a package beyond its reach."""
    if RANK.get(target.package, -1) <= RANK[REACH[origin.part]]:
        return
    hosts = [part for part in HOST_PARTS if RANK[REACH[part]] >= RANK.get(target.package, 99)]
    folder = f"protocols/{origin.protocol}"
    yield _fault(
        "packages",
        path,
        imported,
        f"a protocol's {_part(origin.part)} imports packages up to {REACH[origin.part]} only: code that uses "
        f"{target.package} belongs into " + (" or ".join(f"{folder}/{part}" for part in hosts) or f"{target.package}/"),
    )


def _unknown_package(path: str, package: str) -> str:
    return (
        f"{PACKAGE}/{path}: {package!r} is not a known package; the file belongs into one of "
        f"{_listed(name for group in PACKAGES for name in group if name != 'contract')}, or into a protocol's folder"
    )


def _not_in_contract(path: str) -> str:
    return (
        f"{PACKAGE}/{path}: protocols/ itself contains only {_listed(CONTRACT)}; code of one protocol belongs into "
        f"its folder, other code into a generic package"
    )


def names(sources: SourceTree) -> Iterator[Fault]:
    """Yield names of protocols in generic packages."""
    for path, tree in sources.trees.items():
        if path.split("/")[0] not in NAMELESS or path in EXPERIMENTS:
            continue
        reported = set()
        for line, text in _names_in(tree):
            for name in sorted(longest(named_in(text, sources.names)) - reported):
                reported.add(name)
                yield Fault(
                    "names",
                    path,
                    name,
                    f"{PACKAGE}/{path}:{line} names the protocol {name} ({text.strip()[:60]!r}): code of one "
                    f"protocol belongs into its folder in protocols/; its class returns it, or it is found by name",
                )


def _names_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of identifiers, of strings, and of paths of protocols' modules in docstrings."""
    docstrings = set(_docstrings(tree))
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in docstrings:
                yield from ((line, path) for path in re.findall(r"protocols[./]\w+", node.value))
            else:
                yield line, node.value
        elif not isinstance(node, ast.Import | ast.ImportFrom):  # `packages` checks imports
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
    """Return the protocols that a text or an identifier names: `dps_mesh`, `CodedDiffusion`, "flooding.fast"."""
    return _joined(text) & set(protocols)


@functools.cache
def _joined(text: str) -> frozenset[str]:
    """Return the words of a text, and each two or three adjacent words joined into one."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", text)]
    ends = ((i, j) for i in range(len(words)) for j in range(i + 1, min(i + 3, len(words)) + 1))
    return frozenset("".join(words[i:j]) for i, j in ends)


def longest(names: set[str]) -> set[str]:
    """Return names without names that are a part of another name: of "codeddiffusion" not "diffusion"."""
    return {name for name in names if not any(name != other and name in other for other in names)}


def cycles(sources: SourceTree) -> Iterator[Fault]:
    """Yield cycles of imports at import time, and cycles with lazy imports that span packages, each once."""
    arcs = _arcs(sources, are_lazy_counted=False)
    done: set[str] = set()
    for module in sorted(arcs):
        cycle = _cycle_from(module, arcs, done, [])
        if cycle:
            first = sources.modules[cycle[0]]
            shown = " -> ".join(name.removeprefix(f"{PACKAGE}.") for name in (*cycle, cycle[0]))
            why = "shared code belongs into a module that both import"
            yield Fault("cycles", first, shown, f"{PACKAGE}/{first}: a cycle of imports, {shown}: {why}")

    for group in cyclic_groups(sources):
        packages = sorted({"/".join(filter(None, sources.locate(module)[:2])) for module in group})
        if len(packages) > 1:
            first, shown = sources.modules[group[0]], ", ".join(packages)
            why = f"lazy imports form a cycle through {shown}: shared code belongs into one of these packages"
            yield Fault("cycles", first, shown, f"{PACKAGE}/{first}: {why}")


def _arcs(sources: SourceTree, are_lazy_counted: bool) -> dict[str, list[str]]:
    """Return {module: the modules of the package that it imports, sorted by name}."""
    arcs = {}
    for path, imports in sources.imports.items():
        counted = {imported.module for imported in imports if are_lazy_counted or not imported.is_lazy}
        arcs[module_of(path)] = sorted(counted & sources.modules.keys())
    return arcs


def cyclic_groups(sources: SourceTree) -> list[list[str]]:
    """Return groups of modules that import each other in cycles, also lazily and for types; the largest first."""
    graph = nx.DiGraph((module, other) for module, others in _arcs(sources, True).items() for other in others)
    groups = [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
    return sorted(groups, key=lambda group: (-len(group), group))


def _cycle_from(module: str, arcs: Mapping[str, list[str]], done: set[str], chain: list[str]) -> list[str]:
    if module in chain:
        return chain[chain.index(module) :]
    if module in done:
        return []
    for other in arcs[module]:
        cycle = _cycle_from(other, arcs, done, [*chain, module])
        if cycle:
            done.update(chain, [module])
            return cycle
    done.add(module)
    return []


def prefixes(sources: SourceTree) -> Iterator[Fault]:
    """Yield groups of files of a folder that share their first word."""
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path in sources.files:
        folder, _, name = path.rpartition("/")
        if not name.startswith("__"):
            groups[folder, name.removesuffix(".py").split("_")[0]].add(name)
        above, _, own = folder.rpartition("/")
        if own:
            groups[above, own.split("_")[0]].add(f"{own}/")
    for (folder, word), files in sorted(groups.items()):
        if len(files) > 1:
            inner = f"{PACKAGE}/{folder}/{word}/".replace("//", "/")
            yield Fault(
                "prefixes",
                folder,
                word,
                f"{PACKAGE}/{folder}: {_listed(files)} share the word {word!r}: they belong into a folder {inner}, or "
                f"need names that show their difference",
            )


def lists(sources: SourceTree) -> Iterator[Fault]:
    """Yield tables with several protocols, the first of each file."""
    for path, tree in sources.trees.items():
        if path == "public_names.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set):
                protocols = {name for inner in _entries(node) for name in named_in(inner, sources.names)}
                if len(protocols := longest(protocols)) > 1:
                    why = (
                        "only public_names.py lists protocols: a value for each protocol belongs into its own folder, "
                        "where its class returns it"
                    )
                    listed = ",".join(sorted(protocols))
                    yield Fault("lists", path, listed, f"{PACKAGE}/{path}:{node.lineno} lists {listed}: {why}")
                    break


def _entries(node: ast.AST) -> Iterator[str]:
    """Yield the strings and names in the keys and values of a table, and in tuples and lists within it."""
    inner = (*node.keys, *node.values) if isinstance(node, ast.Dict) else getattr(node, "elts", ())
    for entry in inner:
        if isinstance(entry, ast.Constant) and isinstance(entry.value, str) and " " not in entry.value:
            yield entry.value
        elif isinstance(entry, ast.Name | ast.Attribute):
            yield ast.unparse(entry)
        elif isinstance(entry, ast.Tuple | ast.List):
            yield from _entries(entry)


def constants_twice(sources: SourceTree) -> Iterator[Fault]:
    """Yield constants that two files of a protocol's folder define with the same value."""
    for protocol in sources.protocols:
        places: dict[tuple[str, str], list[str]] = defaultdict(list)
        for path in sources.files:
            if path.startswith(f"protocols/{protocol}/"):
                for name, value in constants(sources.trees[path]).items():
                    if name.lstrip("_").isupper():
                        places[name.lstrip("_"), repr(value)].append(path)
        for (name, value), paths in sorted(places.items()):
            if len(paths) > 1 and any(sources.locate(module_of(path)).part in (*DEFINITION, "init") for path in paths):
                first = min(paths, key=lambda path: list(MAY_IMPORT).index(sources.locate(module_of(path)).part))
                others = [path for path in paths if path != first]
                why = f"it belongs into {PACKAGE}/{first}, from where the other imports it"
                sentence = f"{PACKAGE}/{others[0]}: {name} = {value} is also in {first}: {why}"
                yield Fault("constants", others[0], name, sentence)


def mote_faults(sources: SourceTree, modules: Iterable[str]) -> Iterator[Fault]:
    """Yield imports that modules, and the modules they import, cannot have on a mote."""
    waiting, seen = list(modules), set(modules)
    while waiting:
        path = sources.modules[waiting.pop()]
        for imported in sources.imports[path]:
            if imported.module.split(".")[0] not in MICROPYTHON:
                why = "such code belongs into a file that a mote does not load: a protocol's `__init__` or host parts"
                yield _fault("mote", path, imported, f"MicroPython has no {imported.module.split('.')[0]}; {why}")
            elif imported.module == f"{PACKAGE}.protocols.protocol":
                why = "it is for hosts only: code for a node belongs into protocols/contract.py or the node"
                yield _fault("mote", path, imported, why)
            elif imported.is_from_init:
                why = "a mote has no package's `__init__`: code for motes belongs into a module of its own"
                yield _fault("mote", path, imported, why)
            elif imported.module in sources.modules and imported.module not in seen:
                seen.add(imported.module)
                waiting.append(imported.module)


def _fault(rule: str, path: str, imported: Import, why: str) -> Fault:
    return Fault(rule, path, imported.module, f"{PACKAGE}/{path}:{imported.line} imports {imported.module}: {why}")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
