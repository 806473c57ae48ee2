"""Translation of the protocols' dissectors from Python to Lua, so that Wireshark decodes what `wb.dissect` decodes.

Theory of operation
    A dissector module has a table of the fields (`workbench.protocols.field_tables`), or calls a `Cutter` for each
    field. To describe the fields a second time for Wireshark would be a second source of errors. So the code itself is
    translated: the module's table or its function ``dissect``, and every function, class and constant that these reach,
    `Cutter` included.
    The file runtime.lua defines what Lua lacks: Python's truth values, slices, formats, large integers and exceptions.

    Names are resolved when the code is translated: a global name becomes a reference to the translated object, the
    attribute of a module is looked up, and constants become Lua tables. Variables stay variables.

Translated parts of Python
    Functions, lambdas, plain classes, named tuples and generators for ``with`` (`contextlib.contextmanager`); if, for,
    while, with, try, raise, return, assignments; expressions without ``await``, ``yield`` or ``:=``; f-strings and
    ``%``; calls of the built-in functions and methods that runtime.lua has.

    A function that is marked as `workbench.protocols.dissection.host_only` is replaced by its substitute.

    If a function contains anything else, its Lua version raises an error with the reason. A frame whose dissection
    reaches such a function is shown as one field with this reason.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

from workbench.errors import WorkbenchError

_KEYWORDS_TEXT = """
and break do else elseif end false for function goto if in local nil not or repeat return then true until while
"""
KEYWORDS = frozenset(_KEYWORDS_TEXT.split())
# Built-in functions that runtime.lua has under the same name.
_RUNTIME_TEXT = """
abs all any bin bool bytearray bytes dict divmod enumerate float int isinstance len list map max min range repr set
sorted str sum tuple zip
"""
_RUNTIME = frozenset(_RUNTIME_TEXT.split())
# (module, name) of functions of the standard library that runtime.lua has.
_LIBRARY = {("_struct", "calcsize"), ("_struct", "unpack_from"), ("zlib", "crc32"), ("binascii", "crc32")}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.LShift: "shl",
    ast.RShift: "shr",
    ast.BitAnd: "band",
    ast.BitOr: "bor",
    ast.BitXor: "bxor",
    ast.Pow: "pow",
}


class UntranslatableError(WorkbenchError):
    """An error: Python code that cannot be translated to Lua was reached."""


class Translation:
    """A translation of Python objects to Lua code, which defines each object as a value of the Lua table M.

    `reference` translates an object and all objects that it uses; ``text`` is the code of all objects so far.
    """

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}  # function -> why it could not be translated
        self._names: dict[Any, str] = {}  # id of an object, or (class, name) -> its name in M
        self._named_objects: list[Any] = []  # so that no id is used twice
        self._classes: list[type] = []
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The Lua code that defines all objects so far."""
        return "\n".join(self._pieces)

    def reference(self, value: Any, hint: str = "constant") -> str:
        """Return a Lua expression for a Python value; translate the value first if that is necessary.

        ``hint``: the name of the value in the Python code, from which its name in Lua is made. Raises
        UntranslatableError if the value cannot be translated.
        """
        literal = _format_literal(value)
        if literal is not None:
            return literal
        name = getattr(value, "__name__", "")
        if (getattr(value, "__module__", None), name) in _LIBRARY or value is object:
            return f"py.{name}"
        if getattr(builtins, name, None) is value and name in _RUNTIME:
            return "py.list_from" if value is list else f"py.{name}"
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == "builtins":
            return f"py.{name}"
        if id(value) not in self._names:
            self._define(value, hint)
        return f"M.{self._names[id(value)]}"

    def parameters_of(self, method: str) -> list[inspect.Parameter]:
        """Return the parameters, without self, of the method with the name ``method`` in the translated classes.

        If several classes have such a method, the first one counts. Raises UntranslatableError if none has it.
        """
        for cls in self._classes:
            function = vars(cls).get(method)
            if callable(function):
                return list(inspect.signature(function).parameters.values())[1:]
        raise UntranslatableError(f"keyword arguments of the method {method}, which no translated class has")

    def _assign_name(self, value: Any, hint: str) -> str:
        module = getattr(value, "__module__", "").removeprefix("workbench.").removeprefix("protocols.")
        wanted = re.sub(r"\W", "_", f"{module}_{getattr(value, '__qualname__', hint)}".strip("_"))
        name, number = wanted, 1
        while name in self._names.values():
            number += 1
            name = f"{wanted}_{number}"
        self._names[id(value)] = name
        self._named_objects.append(value)
        return name

    def _define(self, value: Any, hint: str) -> None:
        if isinstance(value, ModuleType):
            raise UntranslatableError(f"the module {value.__name__} as a value")
        if isinstance(value, FunctionType):
            name = self._assign_name(value, hint)
            self._pieces.append(self._translate_function(getattr(value, "substitute", value), f"M.{name}"))
        elif isinstance(value, type):
            self._define_class(value, hint)
        elif isinstance(value, (tuple, list, set, frozenset)):
            name = self._assign_name(value, hint)
            kind = "list" if isinstance(value, (tuple, list)) else "set"
            fields = getattr(type(value), "_fields", None)
            elements = sorted(value) if kind == "set" else value
            items = ", ".join(self.reference(item, hint) for item in elements)
            maker = self.reference(type(value)) + f"({items})" if fields else f"py.{kind}_of({len(value)}, {{{items}}})"
            self._pieces.append(f"M.{name} = {maker}")
        elif isinstance(value, Mapping):
            name = self._assign_name(value, hint)
            # A dictionary of objects is a cache: its contents depend on what this process has done.
            items_ = [(key, item) for key, item in value.items() if not _is_workbench_object(item)]
            pairs = ", ".join(f"{{{self.reference(key)}, {self.reference(item, hint)}}}" for key, item in items_)
            self._pieces.append(f"M.{name} = py.dict_of({{{pairs}}})")
        else:
            raise UntranslatableError(f"{hint}, of the type {type(value).__name__}")

    def _define_class(self, cls: type, hint: str) -> None:
        name = self._assign_name(cls, hint)
        fields = getattr(cls, "_fields", None)
        if fields is not None:
            defaults = [
                f"[{_quote_text(key)}] = {self.reference(item)}"
                for key, item in getattr(cls, "_field_defaults", {}).items()
            ]
            names = ", ".join(map(_quote_text, fields))
            self._pieces.append(
                f"M.{name} = py.named_tuple({_quote_text(cls.__name__)}, {{{names}}}, {{{', '.join(defaults)}}})"
            )
            return
        if not cls.__module__.startswith("workbench"):
            raise UntranslatableError(f"the class {cls.__qualname__} of the module {cls.__module__}")
        bases = [self.reference(base, base.__name__) for base in cls.__bases__]
        self._classes.append(cls)
        self._pieces.append(f"M.{name} = py.class({_quote_text(cls.__name__)}, {{{', '.join(bases)}}})")
        for key, member in vars(cls).items():
            place = (
                f"M.{name}.{_escape_attribute(key)}"
                if _escape_attribute(key)[0] != "["
                else f"M.{name}{_escape_attribute(key)}"
            )
            if isinstance(member, property) and member.fget is not None:
                self._pieces.append(self._translate_function(member.fget, f"M.{name}.__getters.{key}"))
            elif isinstance(member, (staticmethod, classmethod)):
                self._pieces.append(self._translate_function(member.__func__, place))
                if isinstance(member, classmethod):
                    self._pieces.append(f"{place} = py.class_method(M.{name}, {place})")
            elif inspect.isfunction(member):
                self._pieces.append(self._translate_function(member, place))
            elif not key.startswith("__"):
                try:
                    self._pieces.append(f"{place} = {self.reference(member, key)}")
                except UntranslatableError:
                    continue

    def _translate_function(self, function: Any, place: str) -> str:
        is_context = hasattr(function, "__wrapped__")
        plain: Any = inspect.unwrap(function)
        qualified = f"{plain.__module__}.{plain.__qualname__}"
        try:
            source = textwrap.dedent(inspect.getsource(plain))
            tree = ast.parse(source).body[0]
            if isinstance(tree, ast.FunctionDef):
                code = _FunctionTranslator(self, plain).function(tree, is_context)
            else:
                raise UntranslatableError("a lambda outside of a function")
        except (UntranslatableError, OSError, SyntaxError, TypeError) as error:
            self.problems[qualified] = str(error)
            code = f"function() error({_quote_text(f'{qualified} is not translated: {error}')}, 0) end"
        return f"{place} = {code}"


def _is_workbench_object(value: Any) -> bool:
    """Return whether a value is an instance of a class of the workbench that is not a named tuple."""
    return type(value).__module__.startswith("workbench") and not isinstance(value, (tuple, type))


def _format_literal(value: Any) -> str | None:
    """Return the Lua literal of a number, text, bytes, boolean or None; None for any other value."""
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value)) if abs(value) < 1 << 53 else f"py.int({_quote_text(str(int(value)))})"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return _quote_text(value)
    if isinstance(value, bytes):
        return f"py.b({_quote_text(value)})"
    return None


def _quote_text(value: str | bytes) -> str:
    """Return a text or bytes as a Lua string literal, in ASCII."""
    data = value.encode() if isinstance(value, str) else value
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03d}" for b in data) + '"'


def _escape_attribute(name: str) -> str:
    return f"[{_quote_text(name)}]" if name in KEYWORDS else name


def _escape_local(name: str) -> str:
    return f"{name}_" if name in KEYWORDS or name in ("py", "M", "None") else name


def _assigned_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a function assigns, but not those that functions and comprehensions within it assign."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        elif isinstance(child, ast.FunctionDef | ast.ExceptHandler) and child.name:
            yield child.name
        if not isinstance(
            child, ast.FunctionDef | ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp
        ):
            yield from _assigned_names(child)


class _FunctionTranslator:
    """A translator of one function, with the functions and comprehensions within it.

    ``depth`` is the number of Lua closures around the current statement; each ``with`` and ``try`` becomes a closure. A
    ``return`` within a closure returns a table with the value, and the code around the closure returns this value.
    """

    def __init__(self, translation: Translation, function: Any) -> None:
        self.translation = translation
        self.globals = function.__globals__
        self.enclosed = {
            name: cell.cell_contents
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        }
        self.scopes: list[set[str]] = []
        self.imported: dict[str, Any] = {}
        self.depth = 0
        self.count = 0
        self.is_context = False

    # Functions

    def function(self, tree: ast.FunctionDef, is_context: bool = False) -> str:
        """Return a Lua expression that defines the function whose syntax tree is ``tree``.

        ``is_context``: whether the function is a context manager, the only kind of function that may contain ``yield``.
        """
        self.is_context = is_context
        parameters = self._translate_parameters(tree.args)
        locals_ = set(_assigned_names(tree)) - {name for name, _ in parameters}
        self.scopes.append({name for name, _ in parameters} | locals_)
        names = sorted(map(_escape_local, locals_))
        lines = [
            f"if {_escape_local(name)} == nil then {_escape_local(name)} = {default} end"
            for name, default in parameters
            if default
        ]
        variables = [f"local {', '.join(names)}"] if names else []
        body = variables + self.block(tree.body)
        if is_context:
            body = ["local body_result", *body, "return body_result"]
            body = ["return function(body)", *body, "end"]
        self.scopes.pop()
        rest = [f"local {_escape_local(tree.args.vararg.arg)} = py.list(...)"] if tree.args.vararg else []
        arguments = [
            _escape_local(name) for name, _ in parameters if not tree.args.vararg or name != tree.args.vararg.arg
        ]
        arguments += ["..."] if tree.args.vararg else []
        return "\n".join([f"function({', '.join(arguments)})", *rest, *lines, *body, "end"])

    def _translate_parameters(self, arguments: ast.arguments) -> list[tuple[str, str]]:
        """Return [(name, Lua expression of the default or "")] of a function's parameters."""
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = [""] * (len(positional) - len(arguments.defaults)) + [self.value(d) for d in arguments.defaults]
        parameters = [(a.arg, d) for a, d in zip(positional, defaults, strict=True)]
        for keyword, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            parameters.append((keyword.arg, self.value(default) if default else ""))
        if arguments.vararg:
            parameters.append((arguments.vararg.arg, ""))
        if arguments.kwarg:
            raise UntranslatableError("a parameter with **")
        return parameters

    # Statements

    def block(self, statements: list[ast.stmt]) -> list[str]:
        """Return the lines of Lua code for several Python statements."""
        return [line for statement in statements for line in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[str]:
        """Return the lines of Lua code for a Python statement.

        Raises UntranslatableError for a kind of statement that has no translation.
        """
        method = getattr(self, f"_do_{type(node).__name__}", None)
        if method is None:
            raise UntranslatableError(f"the statement {type(node).__name__} in line {node.lineno} of its function")
        lines: list[str] = method(node)
        return lines

    def _do_Expr(self, node: ast.Expr) -> list[str]:
        if isinstance(node.value, ast.Constant):
            return []
        if isinstance(node.value, ast.Yield):
            if not self.is_context:
                raise UntranslatableError("a generator")
            return [f"body_result = body({self.value(node.value.value) if node.value.value else ''})"]
        return [f"local _ = {self.value(node.value)}"]

    def _do_Pass(self, node: ast.Pass) -> list[str]:
        return []

    def _do_Assert(self, node: ast.Assert) -> list[str]:
        return []

    def _do_Return(self, node: ast.Return) -> list[str]:
        value = self.value(node.value) if node.value else "None"
        return [f"do return {f'{{{value}}}' if self.depth else value} end"]

    def _do_Assign(self, node: ast.Assign) -> list[str]:
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            return [f"{_escape_local(node.targets[0].id)} = {self.value(node.value)}"]
        self.count += 1
        temporary = f"value_{self.count}"
        lines = [f"local {temporary} = {self.value(node.value)}"]
        for target in node.targets:
            lines += self.store(target, temporary)
        return ["do", *lines, "end"]

    def _do_AnnAssign(self, node: ast.AnnAssign) -> list[str]:
        return self.store(node.target, self.value(node.value)) if node.value else []

    def _do_AugAssign(self, node: ast.AugAssign) -> list[str]:
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        return self.store(node.target, self._translate_operation(node.op, self.value(read), self.value(node.value)))

    def store(self, target: ast.expr, value: str) -> list[str]:
        """Return the lines of Lua code that assign ``value``, a Lua expression, to ``target``, a Python expression.

        If ``target`` is a tuple, ``value`` must be a variable, because the code evaluates it once for each element.
        """
        if isinstance(target, ast.Name):
            return [f"{_escape_local(target.id)} = {value}"]
        if isinstance(target, ast.Attribute):
            name = _escape_attribute(target.attr)
            return [f"{self.value(target.value)}{'' if name[0] == '[' else '.'}{name} = {value}"]
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
            return [f"py.set_item({self.value(target.value)}, {self.value(target.slice)}, {value})"]
        if isinstance(target, ast.Tuple | ast.List):
            lines, count = [], len(target.elts)
            starred = [i for i, element in enumerate(target.elts) if isinstance(element, ast.Starred)]
            for index, element in enumerate(target.elts):
                if isinstance(element, ast.Starred):
                    behind = index - count + 1
                    part = f"py.slice({value}, {index}, {behind if behind else 'None'})"
                    lines += self.store(element.value, part)
                else:
                    lines += self.store(
                        element, f"py.item({value}, {index - count if starred and index > starred[0] else index})"
                    )
            return lines
        raise UntranslatableError(f"an assignment to {ast.unparse(target)}")

    def _do_If(self, node: ast.If) -> list[str]:
        lines = [f"if {self.condition(node.test)} then", *self.block(node.body)]
        return [*lines, *(["else", *self.block(node.orelse)] if node.orelse else []), "end"]

    def _do_While(self, node: ast.While) -> list[str]:
        if node.orelse:
            raise UntranslatableError("the else branch of a loop")
        return [f"while {self.condition(node.test)} do", *self._translate_loop_body(node.body), "end"]

    def _do_For(self, node: ast.For) -> list[str]:
        if node.orelse:
            raise UntranslatableError("the else branch of a loop")
        self.count += 1
        item = f"item_{self.count}"
        lines = [f"for _, {item} in py.each({self.value(node.iter)}) do", *self.store(node.target, item)]
        return [*lines, *self._translate_loop_body(node.body), "end"]

    def _translate_loop_body(self, body: list[ast.stmt]) -> list[str]:
        depth, self.depth_of_loop = getattr(self, "depth_of_loop", 0), self.depth
        lines = ["do", *self.block(body), "end", "::continue::"]
        self.depth_of_loop = depth
        return lines

    def _do_Break(self, node: ast.Break) -> list[str]:
        return [self._translate_jump("break")]

    def _do_Continue(self, node: ast.Continue) -> list[str]:
        return [self._translate_jump("goto continue")]

    def _translate_jump(self, statement: str) -> str:
        if self.depth != self.depth_of_loop:
            raise UntranslatableError("a jump out of a with or try statement")
        return f"do {statement} end" if statement != "break" else "do break end"

    def _do_Raise(self, node: ast.Raise) -> list[str]:
        return [f"error({self.value(node.exc) if node.exc else 'caught'}, 0)"]

    def _do_FunctionDef(self, node: ast.FunctionDef) -> list[str]:
        depth, self.depth, context = self.depth, 0, self.is_context
        code = self.function(node)
        self.depth, self.is_context = depth, context
        return [f"{_escape_local(node.name)} = {code}"]

    def _do_ImportFrom(self, node: ast.ImportFrom) -> list[str]:
        module = __import__(node.module or "", None, None, [alias.name for alias in node.names])
        self.imported.update({alias.asname or alias.name: getattr(module, alias.name) for alias in node.names})
        return []

    def _translate_closure(self, argument: str, lines: list[str], statements: list[ast.stmt]) -> list[str]:
        self.depth += 1
        code = [f"function({argument})", *lines, *self.block(statements), "end"]
        self.depth -= 1
        return code

    def _return_from_closure(self, call: list[str]) -> list[str]:
        """Return Lua code that calls a closure and, if a ``return`` statement ended the closure, returns its value.

        ``call``: the lines of the call. The result is a list of lines.
        """
        self.count += 1
        result = f"result_{self.count}"
        returned = result if self.depth else f"{result}[1]"
        return ["do", f"local {result} = {call[0]}", *call[1:], f"if {result} then return {returned} end", "end"]

    def _do_With(self, node: ast.With) -> list[str]:
        if len(node.items) != 1:
            raise UntranslatableError("a with statement with several context managers")
        (item,) = node.items
        store = self.store(item.optional_vars, "entered") if item.optional_vars else []
        context = self.value(item.context_expr)
        first, *rest = self._translate_closure("entered", store, node.body)
        rest[-1] += ")"
        return self._return_from_closure([f"({context})({first}", *rest])

    def _do_Try(self, node: ast.Try) -> list[str]:
        first, *lines = self._translate_closure("", [], node.body)
        lines[-1] += ", {"
        for handler in node.handlers:
            kind = self.value(handler.type) if handler.type else "py.Exception"
            store = [f"{_escape_local(handler.name)} = caught"] if handler.name else []
            code = self._translate_closure("caught", store, handler.body)
            lines += [f"{{{kind}, {code[0]}", *code[1:-1], "end},"]
        lines.append("}")
        for part in (node.orelse, node.finalbody):
            if part:
                code = self._translate_closure("", [], part)
                lines += [f", {code[0]}", *code[1:]]
            else:
                lines.append(", nil")
        lines.append(")")
        return self._return_from_closure([f"py.try({first}", *lines])

    # Conditions

    def condition(self, node: ast.expr) -> str:
        """Return a Lua expression that is true if the Python expression ``node`` has a true value, else false.

        The values that Python counts as false, such as 0 and "", differ from Lua's.
        """
        if isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            return f"({word.join(map(self.condition, node.values))})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"(not {self.condition(node.operand)})"
        if isinstance(node, ast.Compare):
            return self.value(node)
        return f"py.truth({self.value(node)})"

    # Expressions

    def value(self, node: ast.expr) -> str:
        """Return a Lua expression with the value of a Python expression.

        Raises UntranslatableError for a kind of expression that has no translation.
        """
        method = getattr(self, f"_of_{type(node).__name__}", None)
        if method is None:
            raise UntranslatableError(f"the expression {ast.unparse(node)[:60]}")
        code: str = method(node)
        return code

    def _of_Constant(self, node: ast.Constant) -> str:
        literal = _format_literal(node.value)
        if literal is None:
            raise UntranslatableError(f"the constant {node.value!r}")
        return literal

    def _is_variable(self, name: str) -> bool:
        return name not in self.imported and any(name in scope for scope in self.scopes)

    def _resolve_static(self, node: ast.expr) -> Any:
        """Return the Python object to which an expression refers: a global name, or an attribute of a module.

        Raises LookupError for all other expressions, and UntranslatableError for an unknown name.
        """
        if isinstance(node, ast.Name) and not self._is_variable(node.id):
            for names in (self.imported, self.enclosed, self.globals, vars(builtins)):
                if node.id in names:
                    return names[node.id]
            raise UntranslatableError(f"the unknown name {node.id}")
        if isinstance(node, ast.Attribute):
            owner = self._resolve_static(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr)
        raise LookupError

    def _of_Name(self, node: ast.Name) -> str:
        if self._is_variable(node.id):
            return _escape_local(node.id)
        return self.translation.reference(self._resolve_static(node), node.id)

    def _of_Attribute(self, node: ast.Attribute) -> str:
        try:
            return self.translation.reference(self._resolve_static(node), node.attr)
        except LookupError:
            name = _escape_attribute(node.attr)
            return f"{self.value(node.value)}{'' if name[0] == '[' else '.'}{name}"

    def _of_Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> str:
        if any(isinstance(element, ast.Starred) for element in node.elts):
            parts = [
                self.value(e.value) if isinstance(e, ast.Starred) else f"py.list({self.value(e)})" for e in node.elts
            ]
            return f"py.joined({', '.join(parts)})"
        return f"py.list({', '.join(map(self.value, node.elts))})"

    _of_List = _of_Tuple

    def _of_Set(self, node: ast.Set) -> str:
        return f"py.set({self._of_Tuple(node)})"

    def _of_Dict(self, node: ast.Dict) -> str:
        if None in node.keys:
            raise UntranslatableError("a dictionary with **")
        pairs = [f"{{{self.value(k)}, {self.value(v)}}}" for k, v in zip(node.keys, node.values, strict=True) if k]
        return f"py.dict_of({{{', '.join(pairs)}}})"

    def _of_JoinedStr(self, node: ast.JoinedStr) -> str:
        return " .. ".join(map(self.value, node.values)) or '""'

    def _of_FormattedValue(self, node: ast.FormattedValue) -> str:
        spec = self.value(node.format_spec) if node.format_spec else '""'
        value = f"py.repr({self.value(node.value)})" if node.conversion == ord("r") else self.value(node.value)
        return f"py.format({value}, {spec})"

    def _of_BoolOp(self, node: ast.BoolOp) -> str:
        *firsts, last = node.values
        is_and = isinstance(node.op, ast.And)
        tests = "".join(
            f"t = {self.value(v)} if {'not ' if is_and else ''}py.truth(t) then return t end " for v in firsts
        )
        return f"(function() local t {tests}return {self.value(last)} end)()"

    def _of_UnaryOp(self, node: ast.UnaryOp) -> str:
        if isinstance(node.op, ast.Not):
            return f"(not {self.condition(node.operand)})"
        if isinstance(node.op, ast.USub):
            return f"(-{self.value(node.operand)})"
        if isinstance(node.op, ast.Invert):
            return f"(-1 - {self.value(node.operand)})"
        raise UntranslatableError(f"the expression {ast.unparse(node)[:60]}")

    def _of_BinOp(self, node: ast.BinOp) -> str:
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            arguments = self.value(node.right)
            return f"py.percent({self.value(node.left)}, {arguments})"
        return self._translate_operation(node.op, self.value(node.left), self.value(node.right))

    def _translate_operation(self, operator: ast.operator, left: str, right: str) -> str:
        if type(operator) not in _OPERATORS:
            raise UntranslatableError(f"the operator {type(operator).__name__}")
        return f"py.{_OPERATORS[type(operator)]}({left}, {right})"

    def _of_Compare(self, node: ast.Compare) -> str:
        terms, left = [], self.value(node.left)
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            if isinstance(operator, ast.In | ast.NotIn):
                term = f"py.contains({right}, {left})"
            elif isinstance(operator, ast.Is | ast.IsNot):
                term = f"py.is({left}, {right})"
            elif isinstance(operator, ast.Eq | ast.NotEq):
                term = f"py.eq({left}, {right})"
            else:
                term = f"{left} {_COMPARISONS[type(operator)]} {right}"
            terms.append(f"not {term}" if isinstance(operator, ast.NotIn | ast.IsNot | ast.NotEq) else term)
            left = right
        return f"({' and '.join(terms)})"

    def _of_IfExp(self, node: ast.IfExp) -> str:
        return (
            f"(function() if {self.condition(node.test)} then return {self.value(node.body)} "
            f"else return {self.value(node.orelse)} end end)()"
        )

    def _of_Subscript(self, node: ast.Subscript) -> str:
        value = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            if node.slice.step is not None:
                raise UntranslatableError("a slice with a step")
            ends = [self.value(end) if end else "None" for end in (node.slice.lower, node.slice.upper)]
            return f"py.slice({value}, {', '.join(ends)})"
        return f"py.item({value}, {self.value(node.slice)})"

    def _of_Lambda(self, node: ast.Lambda) -> str:
        parameters = self._translate_parameters(node.args)
        self.scopes.append({name for name, _ in parameters})
        code = (
            f"function({', '.join(_escape_local(name) for name, _ in parameters)}) return {self.value(node.body)} end"
        )
        self.scopes.pop()
        return f"({code})"

    def _of_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> str:
        return self._translate_comprehension(node, "py.list()", lambda: f"py.append(out, {self.value(node.elt)})")

    _of_GeneratorExp = _of_ListComp

    def _of_SetComp(self, node: ast.SetComp) -> str:
        items = self._translate_comprehension(node, "py.list()", lambda: f"py.append(out, {self.value(node.elt)})")
        return f"py.set({items})"

    def _of_DictComp(self, node: ast.DictComp) -> str:
        return self._translate_comprehension(
            node, "py.dict_of({})", lambda: f"py.set_item(out, {self.value(node.key)}, {self.value(node.value)})"
        )

    def _translate_comprehension(self, node: Any, empty: str, add: Any) -> str:
        opened, closed, names = [f"(function() local out = {empty}"], [], set[str]()
        first_iter = True
        for generator in node.generators:
            self.count += 1
            item = f"item_{self.count}"
            iterable = self.value(generator.iter)
            targets = {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
            if first_iter:
                self.scopes.append(names)
                first_iter = False
            names |= targets
            opened.append(
                f"for _, {item} in py.each({iterable}) do local {', '.join(sorted(map(_escape_local, targets)))}"
            )
            opened += self.store(generator.target, item)
            closed.append("end")
            for test in generator.ifs:
                opened.append(f"if {self.condition(test)} then")
                closed.append("end")
        body = add()
        self.scopes.pop()
        return "\n".join([*opened, body, *closed, "return out end)()"])

    # Calls

    def _of_Call(self, node: ast.Call) -> str:
        static = None
        with suppress(LookupError):
            static = self._resolve_static(node.func)
        if static is not None:
            return self._translate_static_call(static, node)
        if isinstance(node.func, ast.Attribute):
            owner, method = node.func.value, node.func.attr
            if isinstance(owner, ast.Name) and owner.id == "int" and method == "from_bytes":
                return f"py.int_from_bytes({', '.join(map(self.value, node.args))})"
            arguments = self._translate_arguments(node, self._method_parameters(method) if node.keywords else [])
            if method == "_replace":
                changes = [f"[{_quote_text(k.arg or '')}] = {self.value(k.value)}" for k in node.keywords]
                return f"py.replace({self.value(owner)}, {{{', '.join(changes)}}})"
            return f"py.call({', '.join([self.value(owner), _quote_text(method), *arguments])})"
        return f"{self.value(node.func)}({', '.join(self._translate_arguments(node, []))})"

    def _method_parameters(self, method: str) -> list[inspect.Parameter]:
        return [] if method == "_replace" else self.translation.parameters_of(method)

    def _translate_static_call(self, function: Any, node: ast.Call) -> str:
        reference = self.translation.reference(function, getattr(function, "__name__", "function"))
        if function is isinstance:
            kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
            tests = [f"py.isinstance({self.value(node.args[0])}, {self.value(kind)})" for kind in kinds]
            return f"({' or '.join(tests)})"
        if function is zip:  # the lists are known to be of the same length
            node = ast.Call(node.func, node.args, [])
        try:
            parameters = list(inspect.signature(function).parameters.values()) if node.keywords else []
        except ValueError:
            raise UntranslatableError(f"keyword arguments of {function!r}") from None
        return f"{reference}({', '.join(self._translate_arguments(node, parameters))})"

    def _translate_arguments(self, node: ast.Call, parameters: list[inspect.Parameter]) -> list[str]:
        arguments = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                if argument is not node.args[-1] or node.keywords:
                    # Lua expands only the last argument of a call.
                    items = self._of_Tuple(ast.Tuple(node.args, ast.Load()))
                    return [f"py.unpack({items})"]
                arguments.append(f"py.unpack({self.value(argument.value)})")
            else:
                arguments.append(self.value(argument))
        keywords = {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        if keywords and parameters:
            for parameter in parameters[len(arguments) :]:
                arguments.append(keywords.pop(parameter.name, "nil"))
            while arguments and arguments[-1] == "nil":
                arguments.pop()
            if keywords:
                raise UntranslatableError(f"keyword arguments {', '.join(map(str, keywords))}")
        return arguments
