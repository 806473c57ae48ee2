"""How numba compiles the parts of a loop: each part's LLVM code once, and machine code of the whole alone.

Theory of operation
    numba takes each function for a program of its own. It links the function with all that it calls, optimizes the
    whole, makes machine code of it, and does so again for the caller, and for the caller's. Of a loop only the
    outermost function is called from Python. So a part is typed and lowered to LLVM code, and no more (`Part`). The
    loop is linked with all its parts at once, optimized once, and becomes machine code once (`Whole`).

    Parts are linked before they get the linkage that lets LLVM drop what nobody calls: it would also leave out what
    nobody calls yet. What a function's environment is has to be told to machine code at its end, for all parts.

    numba compiles a function once for each combination of its arguments' types. Arguments of parts are widened first
    (`_widened`): whether an index comes from a column of 32 bits or from a counter makes no difference.

Limits
    All of this is numba's private interface, and this is the only module that relies on it. `compiled.py` does without.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc, njit, types  # type: ignore[attr-defined]
from numba.core import typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering
from numba.core.typing.templates import infer_global

# Passes for closures, array expressions and lists, which parts do not have.
_LEFT_OUT = (
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.InlineInlinables,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    untyped_passes.MakeFunctionToJitFunction,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
)

_ENVIRONMENT = "_ZN08NumbaEnv"  # how the names of globals begin in which numba keeps a function's environment


class Part(JITCodeLibrary):
    """The LLVM code of one function, to be linked into a `Whole`; it is never optimized or called by itself."""

    def _ensure_finalized(self) -> None:
        """Nothing: the whole is finalized."""

    def with_what_it_calls(self) -> tuple[dict[Any, None], dict[Any, None]]:
        """(the parts that are reached from here, numba's own libraries that these call), each in a fixed order."""
        parts: dict[Any, None] = {}
        others: dict[Any, None] = {}
        waiting: list[Any] = [self]
        while waiting:
            library = waiting.pop()
            if not isinstance(library, Part):
                others[library] = None
            elif library not in parts:
                parts[library] = None
                waiting += library._linking_libraries
        return parts, others


class Whole(Part):
    """The LLVM code of a function with all its parts, and the machine code of it."""

    def _ensure_finalized(self) -> None:
        if not self._finalized:
            self.finalize()

    def finalize(self) -> None:
        """Link, optimize and make machine code."""
        entries = {function.name for function in self._final_module.functions}
        (_, *parts), others = self.with_what_it_calls()
        for part in parts:
            self._final_module.link_in(part._final_module, preserve=True)
        for function in self._final_module.functions:
            # LLVM inlines what has one caller, and drops what has none any more.
            if not function.is_declaration and function.name not in entries:
                function.linkage = "internal"
        self._linking_libraries = list(others)
        super().finalize()
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name) if variable.name.startswith(_ENVIRONMENT) else None
            if environment is not None:
                self.codegen.set_env(variable.name, environment)

    def _optimize_final_module(self) -> None:
        # numba optimizes twice, to move counted references next to each other. There are none here.
        passes, builder = self.codegen._module_pass_manager()
        passes.run(self._final_module, builder)


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):
    def run_pass(self, state: Any) -> bool:
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        made = state["cr"]
        name = made.fndesc.qualname
        # numba knows a compiled function by an object that Python could call. This one is never called.
        function = _dynfunc.make_function(made.fndesc.lookup_module(), name, "", 0, made.env, (state.library,))
        state.targetctx.insert_user_function(function, made.fndesc, [state.library])
        state["cr"] = made._replace(cfunc=function)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerWhole(NativeLowering):
    def run_pass(self, state: Any) -> bool:
        state.library = Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)


class _Compiler(Compiler):
    lowering: type

    def define_pipelines(self) -> list[Any]:
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [
                (self.lowering if step is NativeLowering else step, text)
                for step, text in pipeline.passes
                if step not in _LEFT_OUT
            ]
            pipeline._finalized = False
            pipeline.finalize()
        return pipelines


class PartCompiler(_Compiler):
    """For a function that others of a loop call."""

    lowering = _LowerPart


class WholeCompiler(_Compiler):
    """For the loop."""

    lowering = _LowerWhole


_NARROW = {types.int8, types.int16, types.int32, types.uint8, types.uint16, types.uint32}
_dispatchers: list[Any] = []  # numba's types refer to them weakly


def add_part(function: Any, options: dict[str, Any]) -> None:
    """Make a function known to numba: the parts that call it call what it is compiled to.

    A function whose options leave `forceinline` out inherits it from its caller: all that a function calls which is
    inlined would be compiled a second time.
    """
    # Neither Python nor C needs a way into a part.
    wrappers: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = njit(**options, **wrappers, pipeline_class=PartCompiler)(function)
    find_template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: find_template(tuple(map(_widened, args)), kws)
    _dispatchers.append(dispatcher)
    infer_global(function, types.Dispatcher(dispatcher))


def _widened(kind: Any) -> Any:
    """Return the type as which an argument is passed on: int64 for all integers that it can hold."""
    kind = types.unliteral(kind)
    return types.int64 if kind in _NARROW else kind
