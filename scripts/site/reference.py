"""The reference: a page for each public name, written from its signature and docstring.

Docstrings of the workbench are plain text with ``code`` in backticks, aligned lists of parameters and indented
examples. `to_rst` turns them into reStructuredText: paragraphs, definition lists and literal blocks.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, get_args

import workbench
from workbench.extensions import Extension
from workbench.protocols.protocol import Protocol
from workbench.public_names import EXTENSIONS, HOME

# First part of a module's name -> the section of the index. Names of other modules are in the last section.
SECTIONS = {
    "sim": "Scenarios and runs",
    "sensor_field": "Scenarios and runs",
    "gallery": "Scenarios and runs",
    "protocols": "Protocols",
    "topology": "Networks",
    "datasets": "Networks",
    "mobility": "Networks",
    "attributes": "Attributes, subscriptions and readings",
    "analysis": "Analysis",
    "fuzzing": "Analysis",
    "sweeps": "Sweeps and comparisons",
    "pipelines": "Logs, traces and live readings",
    "motes": "Motes",
    "views": "Figures and widgets",
    "widgets": "Figures and widgets",
    "records": "Files and records",
    "errors": "Errors",
}
LAST_SECTION = "Other names"
RESULTS = "Results"
_SHORT_VALUE = 60


def owned(value: Any) -> bool:
    """Return whether a class or function is defined in a module of the workbench."""
    return str(getattr(value, "__module__", "")).partition(".")[0] == "workbench"


def is_module(value: Any) -> bool:
    """Return whether a public value is a module."""
    return isinstance(value, ModuleType)


def module_members(module: ModuleType) -> list[str]:
    """Return the public names of a module: its ``__all__``, or its own classes and functions."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def class_members(owner: type) -> list[str]:
    """Return the names of a class's public methods and properties that modules of the workbench define.

    Members of base classes are included, except those of `Protocol`, which are for authors of protocols.
    """
    names = set()
    for base in owner.__mro__:
        if not owned(base) or (base is Protocol and owner is not Protocol):
            continue
        for name, value in vars(base).items():
            is_method = inspect.isfunction(value) or isinstance(value, (classmethod, staticmethod, Extension))
            if not name.startswith("_") and (is_method or isinstance(value, (property, cached_property))):
                names.add(name)
    return sorted(name for name in names if inspect.getdoc(getattr(owner, name)))


@cache
def results() -> dict[str, type]:
    """Return {dotted name: class} of classes that are not public names, but that public functions return.

    Their methods are part of the interface, such as ``table.plot()``, so the classes that they return are included too.
    """
    public = {id(getattr(workbench, name)) for name in HOME}
    waiting = [*public_functions()]
    classes: dict[str, type] = {}
    for name in EXTENSIONS:
        module, _, class_name = name.rpartition(".")
        owner = getattr(import_module(f"workbench.{module}"), class_name)
        if id(owner) not in public and not _is_in_public_module(owner):
            classes[f"workbench.{name}"] = owner
            waiting.extend(getattr(owner, member) for member in class_members(owner))
    while waiting:
        function = waiting.pop()
        for result in _returned_classes(function):
            dotted = f"{result.__module__}.{result.__qualname__}"
            if dotted.startswith("workbench.widgets.") and _qualified_name(function) not in HOME:
                continue  # the parts of widgets are not for programs
            if owned(result) and id(result) not in public and dotted not in classes and inspect.getdoc(result):
                if result.__name__.startswith("_") or _is_in_public_module(result):
                    continue
                classes[dotted] = result
                waiting.extend(getattr(result, member) for member in class_members(result))
    return dict(sorted(classes.items(), key=lambda item: item[1].__name__))


def _qualified_name(function: Any) -> str:
    return str(getattr(function, "__qualname__", "."))


def _is_in_public_module(value: type) -> bool:
    """Return whether a public module exports a class, so that the page of the module describes it."""
    for name in HOME:
        module = getattr(workbench, name)
        if is_module(module) and value.__name__ in module_members(module):
            return True
    return False


def public_functions() -> Iterator[Any]:
    """Yield the public functions and methods: of the package, of its public modules, and of their classes."""
    for name in HOME:
        value = getattr(workbench, name)
        values = [getattr(value, member) for member in module_members(value)] if is_module(value) else [value]
        for entry in values:
            if inspect.isclass(entry) and owned(entry):
                yield from (getattr(entry, member) for member in class_members(entry))
            elif callable(entry):
                yield entry


def _returned_classes(function: Any) -> Iterator[type]:
    """Yield the classes in the annotation of a function's result; names that cannot be resolved are left out."""
    if isinstance(function, property):
        function = function.fget
    try:
        annotation = inspect.signature(function).return_annotation
    except (TypeError, ValueError):
        return
    if isinstance(annotation, str):
        names = getattr(inspect.unwrap(function), "__globals__", {})
        for word in re.findall(r"[A-Za-z_]\w*", annotation):
            if inspect.isclass(names.get(word)):
                yield names[word]
    else:
        yield from (part for part in (annotation, *get_args(annotation)) if inspect.isclass(part))


def page_of(name: str) -> str:
    """Return the path of a public name's page within the reference, without a suffix.

    Modules have a folder of their own, because some differ from a class only by case.
    """
    return f"modules/{name}" if is_module(getattr(workbench, name)) else name


def pages() -> dict[str, str]:
    """Return {path: reStructuredText}: the pages of all public names, of the classes of results, and the index."""
    contents = {f"{page_of(name)}.rst": _format_page(name) for name in HOME}
    for dotted, owner in results().items():
        contents[f"{page_of_result(dotted)}.rst"] = "\n".join(
            [*_heading(owner.__name__), *_document_class(dotted, owner)]
        )
    return contents | {"index.rst": _format_index()}


def page_of_result(dotted: str) -> str:
    """Return the path, within the reference, of the page of a class that `results` lists, given its dotted name."""
    return f"results/{dotted.removeprefix('workbench.')}"


def _heading(title: str, line: str = "=") -> list[str]:
    return [title, line * len(title), ""]


def _format_page(name: str) -> str:
    value = getattr(workbench, name)
    if not is_module(value):
        body = (
            _document_class(f"workbench.{name}", value)
            if inspect.isclass(value)
            else _document_function(f"workbench.{name}", value)
        )
        return "\n".join([*_heading(f"wb.{name}"), *body])
    lines = [*_heading(f"wb.{name}"), f".. py:module:: workbench.{name}", ""]
    lines += [*to_rst(inspect.getdoc(value) or ""), ""]
    groups = defaultdict(list)
    for member in module_members(value):
        entry = getattr(value, member)
        dotted = f"workbench.{name}.{member}"
        if member in HOME and (getattr(workbench, member) is entry or is_module(entry)):
            groups["Also public names of the package"].append(
                [f"* :doc:`wb.{member} <{_path_to_root(name)}{page_of(member)}>`"]
            )
        elif is_module(entry):
            groups["Modules"].append([f"``wb.{name}.{member}``", *_indent(to_rst(inspect.getdoc(entry) or "")[:1])])
        elif inspect.isclass(entry):
            groups["Classes"].append(_document_class(dotted, entry))
        elif callable(entry) and hasattr(entry, "__name__"):
            groups["Functions"].append(_document_function(dotted, entry))
        else:
            groups["Values"].append(_document_value(dotted, entry))
    for title in ("Functions", "Classes", "Values", "Modules", "Also public names of the package"):
        if title in groups:
            lines += _heading(title, "-")
            for entry_lines in groups[title]:
                lines += [*entry_lines, ""]
    return "\n".join(lines)


def _path_to_root(name: str) -> str:
    return "../" * page_of(name).count("/")


def _document_class(dotted: str, owner: type) -> list[str]:
    lines = [f".. autoclass:: {dotted}", "   :show-inheritance:" if _has_public_base(owner) else "", ""]
    for member in class_members(owner):
        value = inspect.getattr_static(owner, member)
        kind = "property" if isinstance(value, (property, cached_property)) else "method"
        getattr(owner, member)  # the first use of an extension loads it
        lines += [f"   .. auto{kind}:: {dotted}.{member}", ""]
    return lines


def _has_public_base(owner: type) -> bool:
    return any(owned(base) for base in owner.__bases__)


def _document_function(dotted: str, function: Any) -> list[str]:
    return [f".. autofunction:: {dotted}", ""]


def _document_value(dotted: str, value: Any) -> list[str]:
    text = repr(value)
    shown = text if len(text) <= _SHORT_VALUE else f"{text[:_SHORT_VALUE]}…"
    type_name = type(value).__name__
    return [f".. py:data:: {dotted}", f"   :type: {type_name}", f"   :value: {shown}", ""]


def _format_index() -> str:
    """Return the index: the public names by section, each with the first sentence of its docstring."""
    sections = defaultdict(list)
    for name, home in sorted(HOME.items(), key=lambda item: (item[0].lower(), item[0])):
        value = getattr(workbench, name)
        first = SECTIONS.get(home.partition(".")[0], LAST_SECTION)
        sections[first].append((f"wb.{name}", page_of(name), summary(value)))
    for dotted, owner in results().items():
        sections[RESULTS].append((owner.__name__, page_of_result(dotted), summary(owner)))
    lines = [
        *_heading("Reference"),
        "Public names of the package, which ``import workbench as wb`` makes available, by section. Each page has the",
        "signature, the docstring with shapes, units and errors, and a link to the source.",
        "",
    ]
    for section in dict.fromkeys([*SECTIONS.values(), LAST_SECTION, RESULTS]):
        if section not in sections:
            continue
        lines += _heading(section, "-")
        if section == RESULTS:
            lines += ["Functions return objects of these classes. They are not made directly.", ""]
        for title, page, sentence in sections[section]:
            lines += [f":doc:`{title} <{page}>`", f"   {_convert_inline(sentence)}", ""]
        lines += [".. toctree::", "   :hidden:", ""]
        lines += [f"   {title} <{page}>" for title, page, _ in sections[section]]
        lines += [""]
    return "\n".join(lines)


def summary(value: Any) -> str:
    """Return the first sentence of a value's docstring."""
    paragraph = (inspect.getdoc(value) or "").split("\n\n")[0]
    return re.split(r"(?<=[.!?])\s", " ".join(paragraph.split()))[0]


@cache
def targets() -> dict[str, str]:
    """Return {name in a docstring: dotted name with a page}.

    A docstring may use the forms "Run.save", "wb.Run.save" and "workbench.Run.save".
    """
    dotted_names = {}
    for name in HOME:
        value = getattr(workbench, name)
        if is_module(value):
            for member in module_members(value):
                entry = getattr(value, member)
                if not is_module(entry) and not (member in HOME and getattr(workbench, member) is entry):
                    dotted_names[f"{name}.{member}"] = f"workbench.{name}.{member}"
        else:
            dotted_names[name] = f"workbench.{name}"
            if inspect.isclass(value):
                dotted_names.update(
                    (f"{name}.{member}", f"workbench.{name}.{member}") for member in class_members(value)
                )
    for dotted, owner in results().items():
        dotted_names[owner.__name__] = dotted
        dotted_names.update((f"{owner.__name__}.{member}", f"{dotted}.{member}") for member in class_members(owner))
    prefixed = {f"{prefix}.{name}": dotted for name, dotted in dotted_names.items() for prefix in ("wb", "workbench")}
    return dotted_names | prefixed


_CODE = re.compile(r"``(.+?)``|`([^`\n]+)`|\b([A-Z]\w*Error)\b", re.DOTALL)
_ENTRY = re.compile(r"^(\S(?:.*?\S)?)\s{2,}(\S.*)$")
_UNDERLINE = re.compile(r"^[-=~]{3,}$")


def _convert_inline(text: str) -> str:
    """Return a line of prose as reStructuredText: code stays code, all other characters are literal."""
    parts, end = [], 0
    for match in _CODE.finditer(text):
        parts.append(_escape(text[end : match.start()]))
        code = match[1] or match[2] or match[3]
        target = targets().get(code.removesuffix("()"))
        literal = match[3] or f"``{code.strip()}``"  # errors of Python have no page here
        parts.append(f"\\ :py:obj:`{code} <{target}>`\\ " if target else f"\\ {literal}\\ ")
        end = match.end()
    return "".join([*parts, _escape(text[end:])])


def _escape(text: str) -> str:
    return re.sub(r"([\\*`|_:])", r"\\\1", text)


def _indent(lines: list[str], width: int = 3) -> list[str]:
    return [" " * width + line if line else "" for line in lines]


def to_rst(docstring: str) -> list[str]:
    """Return the lines of a docstring as reStructuredText.

    A block of aligned lines ("name    text") becomes a definition list; so do the entries of a section "Parameters".
    Indented blocks, tables and examples (>>>) become literal blocks. All other blocks are paragraphs.
    """
    lines = docstring.splitlines()
    blocks = [block.strip("\n") for block in re.split(r"\n[ \t]*\n", "\n".join(lines))]
    result: list[str] = []
    for block in blocks:
        block_lines = block.splitlines()
        if not block_lines:
            continue
        if len(block_lines) >= 2 and _UNDERLINE.match(block_lines[1]) and not _UNDERLINE.match(block_lines[0]):
            result += [f"**{_escape(block_lines[0])}**", "", *_convert_definitions(block_lines[2:]), ""]
        else:
            result += [*_convert_block(block_lines), ""]
    return result


def _convert_block(lines: list[str]) -> list[str]:
    if lines[0].startswith((" ", ">>>", "+--", "===", "|")):
        return _convert_literal(lines)
    if _ENTRY.match(lines[0]) and all(line.startswith("  ") or _ENTRY.match(line) for line in lines):
        return _convert_entries(lines)
    indented = next((number for number, line in enumerate(lines) if line.startswith("  ")), len(lines))
    paragraph = [_convert_inline(" ".join(line.strip() for line in lines[:indented]))]
    if indented == len(lines):
        return paragraph
    rest = indented
    while rest < len(lines) and lines[rest].startswith("  "):
        rest += 1
    following = _convert_block(lines[rest:]) if rest < len(lines) else []
    inner = inspect.cleandoc("\n".join(lines[indented:rest])).splitlines()
    if indented == 1 and len(lines[0]) <= 60 and not lines[0].rstrip().endswith(":"):  # a heading with its text
        first = lines[indented:rest]
        width = min(len(line) - len(line.lstrip()) for line in first)
        body = _convert_block([line[width:] for line in first])
        return [*paragraph, *_indent(body), "", *following]
    return [*paragraph, "", *(_convert_literal(inner)), "", *following]


def _convert_literal(lines: list[str]) -> list[str]:
    width = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return ["::", "", *_indent([line[width:] for line in lines])]


def _convert_entries(lines: list[str]) -> list[str]:
    """Return aligned lines ("name    text") as a reStructuredText definition list.

    A text may continue on further lines.
    """
    result: list[str] = []
    for line in lines:
        match = _ENTRY.match(line)
        if match and not line.startswith(" "):
            result += [
                _convert_inline(f"``{match[1]}``") if "`" not in match[1] else _convert_inline(match[1]),
                f"   {_convert_inline(match[2])}",
            ]
        else:
            result[-1] += f" {_convert_inline(line.strip())}"
    return result


def _convert_definitions(lines: list[str]) -> list[str]:
    """Return the lines of a numpydoc section, names with indented texts, as a reStructuredText definition list."""
    result = []
    for line in lines:
        if line.startswith(" "):
            result.append(f"   {_convert_inline(line.strip())}")
        else:
            result.append(_convert_inline(f"``{line.strip()}``"))
    return result


def process_docstring(app: Any, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Convert the lines of a docstring to reStructuredText, in place.

    A handler of autodoc's event ``autodoc-process-docstring``.
    """
    text = inspect.cleandoc("\n".join(lines))
    lines[:] = [*to_rst(text), "", *_describe_origin(value), ""]


_BACK = re.compile(r'(<a class="viewcode-back" href="[^"#]*)#([^"]*)"')


def repair_back_links(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Change the links of source pages so that they lead to names as the reference has them.

    A handler of Sphinx's event ``html-page-context``. For example, the source page of workbench.sim.changes.items links
    to workbench.sim.changes.items.crash; in the reference this name is workbench.crash.
    """
    if not page.startswith("_modules/") or "body" not in context:
        return
    objects = app.env.get_domain("py").objects
    module = page.removeprefix("_modules/").replace("/", ".")

    def repaired(match: re.Match[str]) -> str:
        address, dotted = match.groups()
        own = dotted.removeprefix(f"{module}.")
        docname = f"reference/{address.rpartition('reference/')[2].removesuffix('.html')}"
        if dotted in objects and objects[dotted].docname == docname:
            return match[0]
        endings = [f".{'.'.join(own.split('.')[start:])}" for start in range(own.count(".") + 1)]
        for ending in endings:
            for name, entry in objects.items():
                if entry.docname == docname and name.endswith(ending):
                    return f'{address}#{entry.node_id}"'
        return f'{address}"'

    context["body"] = _BACK.sub(repaired, context["body"])


def _describe_origin(value: Any) -> list[str]:
    """Return reStructuredText lines that name the module of a class or function; [] for values of other packages."""
    function = value.fget if isinstance(value, property) else inspect.unwrap(value) if callable(value) else value
    module = getattr(function, "__module__", None)
    if not module or not str(module).startswith("workbench"):
        return []
    return [".. rst-class:: wb-origin", "", f"Defined in ``{module}``."]
