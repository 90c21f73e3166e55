"""`program`: statements in sequence and under loops, on arrays that they change in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taco_py.affine.bounds import check_inside
from taco_py.affine.compile import CompiledProgram, compile_program
from taco_py.affine.lower import OperandType, check_types
from taco_py.affine.nest import Lowered, to_nest
from taco_py.affine.nodes import LARGEST_SIZE
from taco_py.affine.nodes import Program as Text
from taco_py.affine.parser import parse_program
from taco_py.affine.ranges import same_sizes
from taco_py.affine.statements import Placed, place, size_names, tensor_names, written_names
from taco_py.api.arguments import check_threads, integer
from taco_py.api.operands import shown
from taco_py.api.tensor import Tensor
from taco_py.api.tiles import Tiles, Wish, read_tiles
from taco_py.diagnostics.errors import (
    DimensionError,
    OperandError,
    OperandTypeError,
    OutputError,
    ScheduleError,
)
from taco_py.interop.scipy_arrays import is_scipy_sparse
from taco_py.kernels import KERNELS
from taco_py.notation.checks import unique

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Program:
    """Statements to run again and again on arrays of any sizes, which they change in place.

    >>> smooth = program("for t in T: B[i] = 0.5 * (A[i-1] + A[i+1]); A[i] = B[i]")
    >>> smooth(A=a, B=b, T=100)
    """

    text: str
    parsed: Text
    statements: tuple[Placed, ...]
    lowered: Lowered

    @property
    def operands(self) -> tuple[str, ...]:
        """The arrays and numbers it takes, in the order of their first use, then the sizes."""
        return (*tensor_names(self.statements), *size_names(self.parsed))

    @property
    def changed(self) -> frozenset[str]:
        """The arrays that it changes."""
        return written_names(self.statements)

    def __repr__(self) -> str:
        return f"<Program of {', '.join(self.operands)}>"

    def __call__(
        self, *, threads: int | None = None, tiles: Tiles = "auto", **operands: Any
    ) -> None:
        """Run the program.

        Arrays that it changes are NumPy arrays; what it only reads may be anything that becomes
        one, numbers included. Sizes are integers.

        threads  at most so many; by default one
        tiles    "auto": as the model of caches says. None: loops as written. An integer, or one
                 for each loop of a band: tiles of these sizes, for comparison. {"i": 32, "j": 8}:
                 these loops in this order, in such tiles

        Raises:
            OperandError, OperandTypeError, DimensionError, OutputError, CompilerError
            ScheduleError: a dependence forbids the tiles of loops that are named.
        """
        call = self._prepared(operands, threads, tiles)
        arguments = [call.argument(source) for source in call.kernel.arguments]
        if call.kernel.threaded:
            arguments.append(check_threads(threads) or 1)
        call.kernel.call(*arguments)

    def explain(self, *, threads: int | None = None, tiles: Tiles = "auto", **operands: Any) -> str:
        """How a call with these arguments runs, and why that way. Computes nothing."""
        call = self._prepared(operands, threads, tiles)
        kernel = call.kernel
        made = f"kernel: {kernel.hit}, {1e3 * kernel.seconds:.1f} ms"
        return f"{self.lowered.nest}\n\n{call.plan}\n\n{made}"

    def source(self, *, threads: int | None = None, tiles: Tiles = "auto", **operands: Any) -> str:
        """The generated C of a call with these arguments."""
        return self._prepared(operands, threads, tiles).kernel.source

    def _prepared(self, operands: Mapping[str, Any], threads: int | None, tiles: Tiles) -> _Call:
        self._check_operands(operands)
        sizes = {name: _size(name, operands[name]) for name in size_names(self.parsed)}
        names = tensor_names(self.statements)
        arrays = _arrays({name: operands[name] for name in names}, self.changed)
        self._check_shapes(arrays)
        _check_apart(arrays, self.changed)
        modes = {
            name: arrays[tensor].shape[mode] for (tensor, mode), name in self.lowered.sizes.items()
        }
        values = {**modes, **sizes}
        check_inside(self.lowered, values)
        plan, kernel = self._kernel(arrays, values, check_threads(threads) or 1, read_tiles(tiles))
        return _Call(kernel, plan, arrays, values)

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
        """Each array has as many modes as subscripts, and an implied index one size."""
        for each in self.statements:
            for access in each.update.accesses:
                shape = arrays[access.tensor].shape
                if len(shape) != len(access.indices):
                    raise OperandError(
                        f"Expected {access.tensor} with {len(access.indices)} modes, found shape "
                        f"{shape}",
                        access.span,
                    )
        for index, one, mode, other, its in same_sizes(self.statements):
            size, found = arrays[one.tensor].shape[mode], arrays[other.tensor].shape[its]
            if size != found:
                raise DimensionError(
                    f"Expected one size for index {index}, found {size} in {one.tensor} and "
                    f"{found} in {other.tensor}",
                    other.span,
                    f"write the range, as in `for {index} in 0..N: …`, to use parts of them",
                )

    def _kernel(
        self,
        arrays: Mapping[str, Array],
        values: Mapping[str, int],
        threads: int,
        tiles: Wish,
    ) -> tuple[Any, CompiledProgram]:
        """The plan and the kernel for such operands, which are remembered."""
        types = tuple((name, _type_of(array)) for name, array in arrays.items())
        near = tuple((name, _rounded(value)) for name, value in values.items())
        key = ("program", self.text, types, near, threads > 1, tiles)
        found = KERNELS.memo.get(key)
        if found is None:
            found = self._made(dict(types), dict(near), threads > 1, tiles)
            KERNELS.memo.put(key, found)
        plan, kernel = found
        return plan, kernel

    def _made(
        self,
        types: Mapping[str, OperandType],
        values: Mapping[str, int],
        parallel: bool,
        tiles: Wish,
    ) -> tuple[Any, CompiledProgram]:
        from polyhedral import errors as polyhedral_errors
        from polyhedral.asked import plan_asked
        from polyhedral.errors import BudgetExceededError
        from polyhedral.isl.limits import BUDGET
        from polyhedral.program_plan import ProgramQuestion, plan_program, unchanged
        from taco_py.affine.compile import processor_of
        from taco_py.affine.products import products
        from taco_py.driver import native_target

        check_types(self.statements, types)
        target = native_target()
        question = ProgramQuestion(
            self.lowered.nest,
            values,
            processor_of(target),
            {name: np.dtype(each.dtype).itemsize for name, each in types.items()},
            tiles.sizes,
            reorder=tiles.sizes != (),
            parallel=parallel,
            products=products(self.statements, types),
        )
        try:
            asked = tiles.asked
            plan = plan_asked(question, asked) if asked else plan_program(question, BUDGET)
        except polyhedral_errors.ScheduleError as error:
            raise ScheduleError(error.message, hint=error.hint) from error
        given = (self.statements, self.lowered, types)
        while True:
            try:
                return plan, compile_program(*given, plan, target, BUDGET)
            except BudgetExceededError as error:
                if plan.simpler is None:
                    plan = unchanged(self.lowered.nest, error.message)
                    return plan, compile_program(*given, plan, target, 0)
                plan = plan.simpler


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A kernel with what to call it with."""

    kernel: CompiledProgram
    plan: Any
    arrays: Mapping[str, Array]
    values: Mapping[str, int]

    def argument(self, source: tuple[str, str, int]) -> Any:
        what, name, mode = source
        match what:
            case "size":
                return self.values[name]
            case "stride":
                array = self.arrays[name]
                return array.strides[mode] // array.itemsize
            case "number":
                return self.arrays[name][()]
            case _:
                return self.arrays[name]


def program(text: str) -> Program:
    """The program that `text` spells, to be called with its operands by name.

    Statements are index notation with offsets in subscripts, in sequence and under loops, which
    indentation or a line holds together:

        for t in T:
            B[i,j] = 0.2 * (A[i,j] + A[i,j-1] + A[i,j+1] + A[i+1,j] + A[i-1,j])
            A[i,j] = B[i,j]

    They run one after the other and change arrays in place. An index without a `for` takes, in
    ascending order, all values at which every access is inside its array. `for k in a..b` runs from
    a to b - 1, `for k in n` from 0; an end left out is where accesses end. The terms of `+=` and
    `-=` may be added up in any order.

    Raises:
        NotationError, OperandError: with carets under the place.
        OperandTypeError: `text` is not a string.
    """
    parsed = parse_program(text)
    statements = place(parsed)
    found = Program(text, parsed, statements, to_nest(statements, size_names(parsed)))
    for name in found.operands:
        if name in ("threads", "tiles"):
            raise OperandError(
                f"Expected other names for operands than what a call says besides, found {name}",
                hint=f"call it {name}_, for instance",
            )
    return found


# ---------------------------------------------------------------- operands


def _size(name: str, given: Any) -> int:
    found = integer(given)
    if found is None:
        raise OperandTypeError(
            f"Expected an integer for the size {name}, found {given!r}",
            hint=f"the program uses {name} in a range",
        )
    if not 0 <= found <= LARGEST_SIZE:
        raise DimensionError(
            f"Expected a size from 0 to 2^31 for {name}, found {shown(found)}",
            hint=f"subtract it where it is to count backwards, as in i - {name}",
        )
    return found


def _arrays(objects: Mapping[str, Any], changed: frozenset[str]) -> dict[str, Array]:
    numbers = {
        name
        for name, obj in objects.items()
        if isinstance(obj, int | float | complex) and not isinstance(obj, np.generic)
    }
    found = {
        name: _array(name, obj, name in changed)
        for name, obj in objects.items()
        if name not in numbers or name in changed
    }
    common = [array.dtype for array in found.values()]
    for name in sorted(numbers - changed):
        value = objects[name]
        found[name] = np.asarray(value, np.result_type(*common, value) if common else None)
    return {name: found[name] for name in objects}


def _array(name: str, given: Any, changes: bool) -> Array:
    if changes and not isinstance(given, np.ndarray):
        raise OperandTypeError(
            f"Expected a NumPy array for {name}, which the program changes in place, found "
            f"{type(given).__name__}",
            hint=f"pass {name}=np.array(…) and look into it afterwards",
        )
    if is_scipy_sparse(given) or isinstance(given, Tensor):
        raise OperandTypeError(
            f"Expected a NumPy array for {name}, found {type(given).__name__}",
            hint="programs run on dense arrays: pass .toarray() or .to_numpy(), or use evaluate",
        )
    array = np.asarray(given)
    if array.dtype.kind not in "iufc" or array.dtype.name not in _DTYPES:
        raise OperandTypeError(
            f"Expected numbers in {name}, found dtype {array.dtype}",
            hint="convert it to a NumPy dtype of integers, or real or complex numbers",
        )
    if changes and not array.flags.writeable:
        raise OutputError(
            f"Expected an array that can be written for {name}, found a read-only one"
        )
    plain = array.dtype.isnative and array.flags.aligned
    plain = plain and all(stride % array.itemsize == 0 for stride in array.strides)
    if not plain and changes:
        raise OutputError(
            f"Expected aligned elements of native byte order in {name}, found others",
            hint="make a copy: np.array(…, dtype=dtype.newbyteorder('='))",
        )
    return array if plain else np.array(array, array.dtype.newbyteorder("="))


_DTYPES = frozenset(
    ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
     "float64", "complex64", "complex128")
)  # fmt: skip


def _check_apart(arrays: Mapping[str, Array], changed: frozenset[str]) -> None:
    """No array that is changed shares memory with another one, or with itself."""
    for name in unique(each for each in arrays if each in changed):
        array = arrays[name]
        if _meets_itself(array):
            raise OutputError(
                f"Expected different places for the elements of {name}, found a broadcast array or "
                "windows that overlap",
                hint=f"pass {name}={name}.copy()",
            )
        for other, its in arrays.items():
            if other != name and _share(array, its):
                raise OperandError(
                    f"Expected {name}, which the program changes, apart from the other operands, "
                    f"found it overlaps {other}",
                    hint=f"pass {other}={other}.copy(), or use one name for both in the program",
                )


def _meets_itself(array: Array) -> bool:
    """Whether two elements may be at one place: where a mode's step lies within the modes below."""
    pairs = zip(map(abs, array.strides), array.shape, strict=True)
    reach = array.itemsize
    for step, size in sorted(pair for pair in pairs if pair[1] > 1):
        if step < reach:
            return array.size > 0
        reach += step * (size - 1)
    return False


def _share(array: Array, other: Array) -> bool:
    """Whether two arrays have an element in common, as far as that can be found out soon."""
    if not np.may_share_memory(array, other):
        return False
    try:
        return np.shares_memory(array, other, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _type_of(array: Array) -> OperandType:
    unit = array.ndim == 0 or array.shape[-1] < 2 or array.strides[-1] == array.itemsize
    return OperandType(array.dtype.name, array.ndim, unit)


def _rounded(value: int) -> int:
    """The next power of two: plans are made for that, so that few kernels serve many sizes."""
    return 1 << max(0, value - 1).bit_length() if value > 0 else max(value, 0)
