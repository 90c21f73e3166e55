"""Programs: statements in sequence and under loops, on arrays that they change in place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.option_checks import check_threads
from taco_py.calls.programs.program_operands import Array, as_arrays, as_size, check_apart
from taco_py.calls.programs.program_tiles import Tiles, TileSizes, read_tiles
from taco_py.compiler.affine.bounds import check_inside
from taco_py.compiler.affine.compile import CompiledProgram, compile_program
from taco_py.compiler.affine.index_ranges import same_sizes
from taco_py.compiler.affine.lower import OperandType, check_types, sums_in_place
from taco_py.compiler.affine.nest import Lowered, in_order
from taco_py.compiler.affine.nodes import Program as Text
from taco_py.compiler.affine.statements import Placed, written_names
from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.byte_counts import limited
from taco_py.data.tensors.traced_operands import taken_over, taker_of
from taco_py.language.diagnostics.errors import (
    DimensionError,
    OperandError,
    OutOfMemoryError,
    ScheduleError,
)
from taco_py.language.diagnostics.source import Span
from taco_py.language.notebook.folded_report import Report
from taco_py.running.replay.programs import call_key, find_call, keep_call

if TYPE_CHECKING:
    from polyhedral.programs.program_plan import ProgramPlan
    from polyhedral.programs.question import ProgramQuestion


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Program:
    """Run statements again and again on arrays of any sizes, which they change in place.

    >>> smooth = tp.program("for t in T: B[i] = 0.5 * (A[i-1] + A[i+1]); A[i] = B[i]")
    >>> a, b = np.array([0.0, 0.0, 4.0, 0.0, 0.0]), np.zeros(5)
    >>> smooth(A=a, B=b, T=1)
    >>> a, sorted(smooth.changed)
    (array([0., 2., 0., 2., 0.]), ['A', 'B'])
    """

    text: str
    parsed: Text
    statements: tuple[Placed, ...]
    lowered: Lowered
    tensors: tuple[str, ...]
    sizes: tuple[str, ...]

    @property
    def operands(self) -> tuple[str, ...]:
        """Return the arrays and numbers it takes, in the order of first use, then the sizes."""
        return (*self.tensors, *self.sizes)

    @property
    def changed(self) -> frozenset[str]:
        """Return the arrays that it changes."""
        return written_names(self.statements)

    def _repr_html_(self) -> str:
        """Show it in a notebook: its text, what it takes and what it changes."""
        from taco_py.language.notebook.markup import block, pre, table

        changes = ", ".join(sorted(self.changed))
        rows = [("operands", ", ".join(self.operands)), ("changes", changes)]
        return block(table(rows), pre(self.text))

    def __repr__(self) -> str:
        return f"<Program of {', '.join(self.operands)}>"

    def __call__(
        self,
        *,
        threads: int | None = None,
        tiles: Tiles = "auto",
        memory_limit: int | str | None = None,
        **operands: Any,
    ) -> None:
        """Run the program.

        Arrays that it changes are NumPy arrays; what it only reads may be anything that becomes
        one, numbers included. Sizes are integers.

        threads  at most so many; by default one
        tiles    "auto": as the model of caches says. None: loops as written. An integer, or one
                 for each loop of a band: tiles of these sizes, for comparison. {"i": 32, "j": 8}:
                 these loops in this order, in such tiles
        memory_limit  bytes that copies of operands and blocks may take, as in `evaluate`

        Raises:
            OperandError, OperandTypeError, DimensionError, OutputError, CompilerError
            OutOfMemoryError: there is no room for copies of blocks; arrays may be half changed.
            ScheduleError: a dependence forbids the tiles of loops that are named.
        """
        if memory_limit is not None:
            limited(Program.__call__, locals())
            return
        try:
            plain = tiles is None or type(tiles) is str
            options = (threads, type(threads), tiles if plain else read_tiles(tiles))
            key = call_key(self.text, self.tensors, self.sizes, operands, options)
            recorded_call = find_call(key)
            if recorded_call is not None and recorded_call.run(operands):
                return
            if key is None and (taker := taker_of(operands.values())) is not None:
                taken_over(taker, "tp.program", (self, operands), {"threads": threads})
                return
            call = self._prepared(operands, threads, tiles)
            arguments = [call.argument(source) for source in call.kernel.arguments]
            if call.kernel.threaded:
                arguments.append(("", check_threads(threads) or 1))
            tensors = {name: operands[name] for name in self.tensors}
            keep_call(key, call.kernel.call, arguments, tensors, call.arrays, self.changed)
            call.kernel.call(*(call.value(*argument) for argument in arguments))
        except OutOfMemoryError:
            raise
        except MemoryError as error:
            from taco_py.running.execute.guard import no_room

            raise no_room("what the program keeps besides its arrays", error) from error

    def explain(self, *, threads: int | None = None, tiles: Tiles = "auto", **operands: Any) -> str:
        """Explain how a call with these arguments runs, and why that way, without computing
        anything.

        threads, tiles, operands  as in a call
        """
        call = self._prepared(operands, threads, tiles)
        kernel = call.kernel
        plan = self._describe_plan(call, threads, tiles)
        compile_line = f"kernel: {kernel.hit}, {1e3 * kernel.seconds:.1f} ms"
        return Report(f"{self.lowered.nest}\n\n{plan}\n\n{compile_line}")

    def source(self, *, threads: int | None = None, tiles: Tiles = "auto", **operands: Any) -> str:
        """Return the generated C of a call with these arguments.

        threads, tiles, operands  as in a call
        """
        return self._prepared(operands, threads, tiles).kernel.source

    def _prepared(self, operands: Mapping[str, Any], threads: int | None, tiles: Tiles) -> _Call:
        self._check_operands(operands)
        sizes = {name: as_size(name, operands[name]) for name in self.sizes}
        arrays = as_arrays({name: operands[name] for name in self.tensors}, self.changed)
        self._check_shapes(arrays)
        check_apart(arrays, self.changed)
        modes = {
            name: arrays[tensor].shape[mode] for (tensor, mode), name in self.lowered.sizes.items()
        }
        values = {**modes, **sizes}
        check_inside(self.lowered, values)
        plan, kernel = self._kernel(arrays, values, check_threads(threads) or 1, read_tiles(tiles))
        return _Call(kernel, plan, arrays, values)

    def _describe_plan(self, call: _Call, threads: int | None, tiles: Tiles) -> str:
        """Return the plan of a call, for its own sizes where they lead to the same loops."""
        near = {name: _rounded(value) for name, value in call.values.items()}
        if near == call.values:
            return str(call.plan)
        types = {name: _type_of(array) for name, array in call.arrays.items()}
        tiling = read_tiles(tiles)
        question = self._question(types, call.values, (check_threads(threads) or 1) > 1, tiling)
        plan = _planned(question, tiling, self.statements)
        if plan.kernel_key == call.plan.kernel_key:
            return str(plan)
        sizes = ", ".join(f"{name} = {near[name]}" for name in self.lowered.nest.parameters)
        return f"for sizes about those of the call, {sizes}:\n{call.plan}"

    def _check_operands(self, operands: Mapping[str, Any]) -> None:
        missing = [name for name in self.operands if name not in operands]
        if missing:
            raise OperandError(
                f"Expected the operands {', '.join(self.operands)}, found no {missing[0]}",
                hint=f"pass it by name: {missing[0]}=…",
            )
        foreign = [name for name in operands if name not in self.operands]
        if foreign:
            raise OperandError(
                f"Expected the operands {', '.join(self.operands)}, found {foreign[0]} too",
                hint="leave it out, or use it in the program",
            )

    def _check_shapes(self, arrays: Mapping[str, Array]) -> None:
        """Raise where modes and subscripts differ in number, or an index has two sizes."""
        for statement in self.statements:
            for access in statement.update.accesses:
                shape = arrays[access.tensor].shape
                if len(shape) != len(access.indices):
                    raise OperandError(
                        f"Expected {access.tensor} with {len(access.indices)} modes, found shape "
                        f"{shape}",
                        access.span,
                    )
        for index, one, mode, other, its in same_sizes(self.statements):
            size, other_size = arrays[one.tensor].shape[mode], arrays[other.tensor].shape[its]
            if size != other_size:
                raise DimensionError(
                    f"Expected one size for index {index}, found {size} in {one.tensor} and "
                    f"{other_size} in {other.tensor}",
                    other.span,
                    f"write the range, as in `for {index} in 0..N: …`, to use parts of them",
                )

    def _kernel(
        self,
        arrays: Mapping[str, Array],
        values: Mapping[str, int],
        threads: int,
        tiles: TileSizes,
    ) -> tuple[ProgramPlan, CompiledProgram]:
        """Return the plan and the kernel for such operands, which are remembered."""
        types = tuple((name, _type_of(array)) for name, array in arrays.items())
        near = tuple((name, _rounded(value)) for name, value in values.items())
        key = ("program", self.text, types, near, threads > 1, tiles)
        entry = KERNELS.memo.get(key)
        if entry is None:
            entry = self._compile_plan(dict(types), dict(near), threads > 1, tiles)
            KERNELS.memo.put(key, entry)
        plan, kernel = entry
        return plan, kernel

    def _compile_plan(
        self,
        types: Mapping[str, OperandType],
        values: Mapping[str, int],
        parallel: bool,
        tiles: TileSizes,
    ) -> tuple[ProgramPlan, CompiledProgram]:
        from polyhedral.errors import BudgetExceededError, LargeCodeError
        from polyhedral.isl.limits import BUDGET
        from polyhedral.programs.program_plan import unchanged
        from taco_py.compiler.driver import native_target

        check_types(self.statements, types)
        target = native_target()
        question = self._question(types, values, parallel, tiles)
        plan = _planned(question, tiles, self.statements)
        problem = (self.statements, self.lowered, types)
        while True:
            try:
                return plan, compile_program(*problem, plan, target, BUDGET)
            except BudgetExceededError as error:
                if plan.simpler is None:
                    plan = unchanged(self.lowered.nest, error.message)
                    return plan, compile_program(*problem, plan, target, 0)
                plan = plan.simpler
            except LargeCodeError as error:
                smaller = plan.smaller(error.message)
                assert smaller is not None, "the error is raised where there is a smaller plan"
                plan = smaller

    def _question(
        self,
        types: Mapping[str, OperandType],
        values: Mapping[str, int],
        parallel: bool,
        tiles: TileSizes,
    ) -> ProgramQuestion:
        from polyhedral.programs.question import ProgramQuestion
        from taco_py.compiler.affine.affine_products import products
        from taco_py.compiler.driver import native_target

        dtypes = {name: np.dtype(operand_type.dtype) for name, operand_type in types.items()}
        sequential = [s.name for s in self.statements if not sums_in_place(s.update, dtypes)]
        return ProgramQuestion(
            in_order(self.lowered.nest, sequential),
            values,
            native_target().processor,
            {name: dtype.itemsize for name, dtype in dtypes.items()},
            tiles.sizes,
            reorder=tiles.sizes != (),
            parallel=parallel,
            products=products(self.statements, types),
        )


def _planned(
    question: ProgramQuestion, tiles: TileSizes, statements: tuple[Placed, ...]
) -> ProgramPlan:
    """Plan loops. Raises ScheduleError, with carets under the first statement that it is about."""
    from polyhedral import errors as polyhedral_errors
    from polyhedral.isl.limits import BUDGET
    from polyhedral.programs.program_plan import plan_program
    from polyhedral.programs.requested_tiles import plan_asked

    try:
        by_loop = tiles.by_loop
        return plan_asked(question, by_loop) if by_loop else plan_program(question, BUDGET)
    except polyhedral_errors.ScheduleError as error:
        mentioned = [s for s in statements if re.search(rf"\b{s.name}\b", error.message)]
        spans = [(s.name, s.update.span) for s in mentioned if s.update.span is not None]
        places = ", ".join(f"{name} is {_line(span)}" for name, span in spans)
        message = f"{error.message}\nwhere {places}" if places else error.message
        raise ScheduleError(message, spans[0][1] if spans else None, error.hint) from error


def _line(span: Span) -> str:
    """Return the text of a span on one line."""
    return " ".join(span.source.text[span.start : span.stop].split())


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A kernel with what to call it with."""

    kernel: CompiledProgram
    plan: ProgramPlan
    arrays: Mapping[str, Array]
    values: Mapping[str, int]

    def argument(self, source: tuple[str, str, int]) -> tuple[str, Any]:
        """Return "values" or "number" with an operand's name, or "" with a size or stride."""
        what, name, mode = source
        match what:
            case "size":
                return "", self.values[name]
            case "stride":
                array = self.arrays[name]
                return "", array.strides[mode] // array.itemsize
            case _:
                return what, name

    def value(self, what: str, of: Any) -> Any:
        """Return the value that is passed for an argument."""
        match what:
            case "number":
                return self.arrays[of][()]
            case "values":
                return self.arrays[of]
            case _:
                return of


def _type_of(array: Array) -> OperandType:
    unit = array.ndim == 0 or array.shape[-1] < 2 or array.strides[-1] == array.itemsize
    return OperandType(array.dtype.name, array.ndim, unit)


def _rounded(value: int) -> int:
    """Return the next power of two: plans are made for that, so that few kernels serve many
    sizes."""
    return 1 << max(0, value - 1).bit_length() if value > 0 else max(value, 0)
