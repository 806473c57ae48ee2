"""A faster compiler of loops: each function becomes LLVM code once, and only the whole loop becomes machine code.

Theory of operation
    numba treats each function as a program of its own. It links the function with all functions that it calls,
    optimizes the result and generates machine code, and does all of it again for each caller. In a loop, Python calls
    only the outermost function. So an inner function is only typed and lowered to LLVM code (`Part`). The loop is
    linked with all its parts at once, optimized once, and becomes machine code once (`Whole`).

    Parts are linked before they get internal linkage. With internal linkage, LLVM drops functions without a caller,
    also those whose callers have not been linked yet. At the end, numba's
    environments of all parts are added to the loop's machine code.

    numba compiles a function once for each combination of its arguments' types. Arguments of parts are widened first
    (`_widen`), so that a 32-bit index from a column and a 64-bit index from a counter have the same type.

Limits
    All of this is numba's private interface, and no other module depends on it. `compiled.py` also works without this
    module.
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

# Passes for closures, array expressions and lists, which parts do not use.
_OMITTED_PASSES = (
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

_ENVIRONMENT = "_ZN08NumbaEnv"  # prefix of the globals that store functions' environments


class Part(JITCodeLibrary):
    """The LLVM code of an inner function of a loop; it is optimized only after it is linked into a `Whole`."""

    def _ensure_finalized(self) -> None:
        """Do nothing: an inner function becomes machine code only as a part of its loop (`Whole`)."""

    def reached_libraries(self) -> tuple[dict[Any, None], dict[Any, None]]:
        """Return (parts, libraries): the inner functions and numba libraries that this code calls, even indirectly.

        Both are dictionaries without values, used as sets in a fixed order.
        """
        parts: dict[Any, None] = {}
        numba_libraries: dict[Any, None] = {}
        libraries: list[Any] = [self]
        while libraries:
            library = libraries.pop()
            if not isinstance(library, Part):
                numba_libraries[library] = None
            elif library not in parts:
                parts[library] = None
                libraries += library._linking_libraries
        return parts, numba_libraries


class Whole(Part):
    """The LLVM code of a loop: the function that Python calls, linked with all functions that the loop calls."""

    def _ensure_finalized(self) -> None:
        if not self._finalized:
            self.finalize()

    def finalize(self) -> None:
        """Link all inner functions, optimize the result, and generate machine code."""
        entry_names = {function.name for function in self._final_module.functions}
        (_, *inner_parts), numba_libraries = self.reached_libraries()
        for part in inner_parts:
            self._final_module.link_in(part._final_module, preserve=True)
        for function in self._final_module.functions:
            # LLVM inlines functions with one caller, and drops those without a caller.
            if not function.is_declaration and function.name not in entry_names:
                function.linkage = "internal"
        self._linking_libraries = list(numba_libraries)
        super().finalize()
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name) if variable.name.startswith(_ENVIRONMENT) else None
            if environment is not None:
                self.codegen.set_env(variable.name, environment)

    def _optimize_final_module(self) -> None:
        # numba optimizes twice, to combine reference counts. This code does not count references.
        passes, builder = self.codegen._module_pass_manager()
        passes.run(self._final_module, builder)


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):
    def run_pass(self, state: Any) -> bool:
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        compile_result = state["cr"]
        function_name = compile_result.fndesc.qualname
        # numba identifies a compiled function by an object that Python could call. This one is never called.
        function = _dynfunc.make_function(
            compile_result.fndesc.lookup_module(), function_name, "", 0, compile_result.env, (state.library,)
        )
        state.targetctx.insert_user_function(function, compile_result.fndesc, [state.library])
        state["cr"] = compile_result._replace(cfunc=function)
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
                (self.lowering if compiler_pass is NativeLowering else compiler_pass, pass_description)
                for compiler_pass, pass_description in pipeline.passes
                if compiler_pass not in _OMITTED_PASSES
            ]
            pipeline._finalized = False
            pipeline.finalize()
        return pipelines


class PartCompiler(_Compiler):
    """A compiler of the inner functions of a loop: other functions of the loop call them, Python does not."""

    lowering = _LowerPart


class WholeCompiler(_Compiler):
    """The compiler of a loop's outermost function, the only function of the loop that Python calls."""

    lowering = _LowerWhole


_NARROW = {types.int8, types.int16, types.int32, types.uint8, types.uint16, types.uint32}
_dispatchers: list[Any] = []  # numba's types refer to them weakly


def add_part(function: Any, options: dict[str, Any]) -> None:
    """Register an inner function of a loop with numba, so that other functions of the loop can call it.

    ``options`` must contain `forceinline`, true or false. Without it, the function would inherit the option from its
    caller, and functions called by an inlined function would be compiled a second time.
    """
    # Neither Python nor C calls a part.
    wrappers: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = njit(**options, **wrappers, pipeline_class=PartCompiler)(function)
    find_template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: find_template(tuple(map(_widen, args)), kws)
    _dispatchers.append(dispatcher)
    infer_global(function, types.Dispatcher(dispatcher))


def _widen(kind: Any) -> Any:
    """Return the numba type to which an argument is converted: int64 for a narrower integer, else its type ``kind``."""
    kind = types.unliteral(kind)
    return types.int64 if kind in _NARROW else kind
