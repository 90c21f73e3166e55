"""Products of arrays by the BLAS that comes with SciPy, called where it is, without compiling.

product = library_product("float64 ab,bc->ac")
product(C, A, B, threads)                        # NumPy arrays of any strides

The shared library is opened by itself: importing `scipy.linalg` would take a hundred times as long.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from codegen.libraries.blas_routines import GEMM, OPENBLAS, VECTOR_BYTES, Library
from codegen.libraries.gemm import Loop, Matrix, Products, as_products
from codegen.libraries.gemm_shares import ALONE, Share, shares_of
from codegen.records import dataclass
from codegen.runtime.memo import Memo

Array = np.ndarray[Any, Any]
_LAYOUTS = 64  # of operands that one product remembers


class Crew:
    """Threads that compute parts, while the library uses one thread in each.

    change, tell  set and tell the number of threads that the library uses
    """

    __slots__ = ("_change", "_lock", "_pool", "_running", "_tell", "_usual")

    def __init__(self, change: Callable[[int], Any], tell: Callable[[], int]) -> None:
        self._change = change
        self._tell = tell
        self._lock = threading.Lock()
        self._running = 0
        self._usual = 1
        self._pool: tuple[int, ThreadPoolExecutor | None] = (0, None)

    def run(self, compute: Callable[[Any], None], parts: Sequence[Any]) -> None:
        """Compute all parts, the first in this thread."""
        with self._one_thread_each():
            waiting = [self._begin(compute, part) for part in parts[1:]]
            try:
                compute(parts[0])
            finally:
                for finish in waiting:
                    finish()

    def _begin(self, compute: Callable[[Any], None], part: Any) -> Callable[[], None]:
        """Let a thread compute a part; return the function that waits for it."""
        try:
            return self._threads().submit(compute, part).result
        except RuntimeError:  # as many threads as the system allows, or the process is going down
            return lambda: compute(part)

    def _threads(self) -> ThreadPoolExecutor:
        """Return the threads of this process: one that was forked begins with new ones."""
        process, pool = self._pool
        if pool is None or process != os.getpid():
            pool = ThreadPoolExecutor(os.cpu_count() or 1, "taco_blas")
            self._pool = (os.getpid(), pool)
        return pool

    @contextmanager
    def _one_thread_each(self) -> Iterator[None]:
        """Let the library use one thread for each call meanwhile."""
        with self._lock:
            if not self._running:
                self._usual = self._tell()
                if self._usual != 1:
                    self._change(1)
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if not self._running and self._usual != 1:
                    self._change(self._usual)


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A library in this process; without a `crew` it uses as many threads as it likes.

    crew  threads that share its products
    core  the processor whose kernels it runs, where it can be asked
    """

    routine: Callable[[str], int]
    crew: Crew | None
    core: str | None = None


@lru_cache(maxsize=1)
def load(library: Library = OPENBLAS) -> Loaded | None:
    """Return the library, None where the package has none."""
    spec = importlib.util.find_spec(library.package)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent.parent
    for place in library.places:
        for file in sorted(folder.glob(place)):
            loaded = _opened(file, library)
            if loaded is not None:
                return loaded
    return _from_capsules(library)


def _opened(file: Path, library: Library) -> Loaded | None:
    try:
        opened = ctypes.CDLL(str(file))
        change, tell = (getattr(opened, name) for name in library.threads)
        getattr(opened, f"{library.prefix}dgemm{library.suffix}")
    except (OSError, AttributeError):
        return None

    def address(name: str) -> int:
        function = getattr(opened, f"{library.prefix}{name}{library.suffix}")
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    return Loaded(address, Crew(change, tell), _core(opened, library))


def _core(opened: ctypes.CDLL, library: Library) -> str | None:
    function = getattr(opened, library.core, None)
    if function is None:
        return None
    function.restype = ctypes.c_char_p
    name = function()
    return None if name is None else name.decode(errors="replace")


def _from_capsules(library: Library) -> Loaded | None:
    """Return the routines as SciPy offers them to Cython, through whatever BLAS it was built
    with."""
    try:
        capsules = importlib.import_module(library.capsules).__pyx_capi__
    except (ImportError, AttributeError):
        return None
    api = ctypes.pythonapi
    get_name, get_pointer = api.PyCapsule_GetName, api.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

    def address(name: str) -> int:
        capsule = capsules[name]
        return int(get_pointer(capsule, get_name(capsule)))

    return Loaded(address, None)


def available(dtype: str, threads: int | None) -> bool:
    """Tell whether there is a library that multiplies matrices of `dtype` with at most
    `threads`."""
    if dtype not in GEMM:
        return False
    loaded = load()
    return loaded is not None and (threads is None or loaded.crew is not None)


def vector_bytes() -> int | None:
    """Return how wide the vectors are that the library multiplies with, where that is known."""
    loaded = load()
    return None if loaded is None or loaded.core is None else VECTOR_BYTES.get(loaded.core)


# ---------------------------------------------------------------- calls


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A share of a call.

    before   transa, transb, m, n, k, alpha
    offsets  for each product how far its matrices are from the first one's, and beta
    """

    before: tuple[ctypes.c_void_p, ...]
    offsets: Sequence[tuple[int, int, int, ctypes.c_void_p]]


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """One layout of the operands made ready: the addresses of arguments that do not change. They
    are kept as ctypes wants them: to make them of integers takes as long as the rest of a call.

    references     what the addresses are of
    leading  the leading dimensions of a, b and c
    parts    what threads compute, one each
    small    whether the library uses one thread by itself
    """

    references: tuple[Any, ...]
    leading: tuple[ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    swapped: bool
    parts: tuple[_Part, ...]
    small: bool


@dataclass(frozen=True, slots=True, eq=False)
class LibraryProduct:
    """A contraction by a routine for products of matrices.

    loops    those of result, left and right, a letter each
    factors  where 0 and 1 are stored
    layouts  what was made ready, by the operands' shapes and strides
    """

    library: Loaded
    routine: Callable[..., None]
    dtype: np.dtype[Any]
    loops: tuple[str, str, str]
    factors: Array
    layouts: Memo

    def __call__(self, c: Array, a: Array, b: Array, threads: int = 1) -> None:
        """Compute `c = a * b`.

        Raises TypeError for arrays of another type, ValueError for a result that is read-only.
        """
        if not c.dtype == a.dtype == b.dtype == self.dtype:
            raise TypeError(
                f"Expected arrays of {self.dtype}, found {c.dtype}, {a.dtype}, {b.dtype}"
            )
        if not c.flags.writeable:
            raise ValueError("Expected a result that can be written, found one that is read-only")
        if not (c.size and a.size):
            c[...] = 0
            return
        crew = self.library.crew
        call = self._call_of(c, a, b, 1 if crew is None else threads)
        if call is None:
            _on_copies(self, (c, a, b), threads)
        elif crew is None or call.small:
            _run(self.routine, call, c, a, b)(call.parts[0])
        else:
            crew.run(_run(self.routine, call, c, a, b), call.parts)

    def _call_of(self, c: Array, a: Array, b: Array, threads: int) -> _Call | None:
        key = (c.shape, c.strides, a.shape, a.strides, b.shape, b.strides, threads)
        call: _Call | None = self.layouts.get(key)
        if call is None:
            products = as_products(_loops(self.loops, (c, a, b)))
            if products is not None:
                zero = self.factors.ctypes.data
                call = _ready(
                    products, self.dtype.itemsize, (zero, zero + self.dtype.itemsize), threads
                )
                self.layouts.put(key, call)
        return call


def library_product(text: str) -> LibraryProduct:
    """Return the product that `text` names: element type, then the loops of left, right and result.

    Raises ValueError where there is no library.
    """
    dtype, subscripts = text.split(" ")
    operands, result = subscripts.split("->")
    left, right = operands.split(",")
    loaded = load()
    if loaded is None:
        raise ValueError(f"Expected a library for {text}, found none")
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)
    return LibraryProduct(
        loaded,
        prototype(loaded.routine(GEMM[dtype])),
        np.dtype(dtype),
        (result, left, right),
        np.array([0, 1], dtype),
        Memo(_LAYOUTS),
    )


def _run(
    routine: Callable[..., None], call: _Call, c: Array, a: Array, b: Array
) -> Callable[[_Part], None]:
    """Return the function that computes a part of a call on arrays."""
    starts = (_address(c), _address(a), _address(b))
    one, other = (2, 1) if call.swapped else (1, 2)
    first, second, third = starts[one], starts[other], starts[0]
    la, lb, lc = call.leading

    def compute(part: _Part) -> None:
        before = part.before
        for oc, oa, ob, beta in part.offsets:
            routine(*before, first + oa, la, second + ob, lb, beta, third + oc, lc)

    return compute


class _Interface(ctypes.Structure):
    """The beginning of what `__array_struct__` holds, as NumPy's documentation has it."""

    _fields_ = [
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
    ]


_in_capsule = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _address(array: Array) -> int:
    """Return the address of the data of a nonempty array."""
    capsule = array.__array_struct__
    address: int = _Interface.from_address(_in_capsule(capsule, None)).data
    return address


def _on_copies(product: LibraryProduct, arrays: Sequence[Array], threads: int) -> None:
    """Compute the product on copies in a loop order that the routine accepts."""
    subscripts = result, left, right = product.loops
    batch = [name for name in result if name in left and name in right]
    rows = [name for name in result if name not in right]
    columns = [name for name in result if name not in left]
    depth = [name for name in left if name not in result]
    orders = ((*batch, *rows, *columns), (*batch, *rows, *depth), (*batch, *depth, *columns))
    c, a, b = (
        array.transpose([text.index(name) for name in order])
        for array, text, order in zip(arrays, subscripts, orders, strict=True)
    )
    temporary = np.empty(c.shape, c.dtype)
    back = [
        np.transpose(array, [order.index(name) for name in text])
        for array, text, order in zip(
            (temporary, np.ascontiguousarray(a), np.ascontiguousarray(b)),
            subscripts,
            orders,
            strict=True,
        )
    ]
    product(back[0], back[1], back[2], threads)
    c[...] = temporary


def _loops(subscripts: Sequence[str], arrays: Sequence[Array]) -> list[Loop]:
    names = dict.fromkeys("".join(subscripts))
    itemsize = arrays[0].itemsize
    loops = []
    for name in names:
        users = tuple(name in text for text in subscripts)
        steps = tuple(
            array.strides[text.index(name)] // itemsize if used else 0
            for text, array, used in zip(subscripts, arrays, users, strict=True)
        )
        sizes = [
            array.shape[text.index(name)]
            for text, array, used in zip(subscripts, arrays, users, strict=True)
            if used
        ]
        loops.append(Loop(sizes[0], (steps[0], steps[1], steps[2]), (users[0], users[1], users[2])))
    return loops


def _ready(products: Products, itemsize: int, factors: tuple[int, int], threads: int) -> _Call:
    """Return the call; `factors` are the addresses of 0 and 1, what the result is multiplied with
    in the first round and in later ones."""
    flags = [ctypes.c_char(b"T" if matrix.transposed else b"N") for matrix in _matrices(products)]
    sizes = (*(m.leading for m in _matrices(products)), products.leading)
    leading = [ctypes.c_int(n) for n in sizes]
    la, lb, lc = map(_pointer, leading)
    zero_and_one = tuple(map(ctypes.c_void_p, factors))
    offsets = [
        (c, *((b, a) if products.swapped else (a, b)), adds)
        for c, a, b, adds in _offsets(products.outer, itemsize)
    ]
    shares = shares_of(products, any(adds for *_, adds in offsets), threads)
    numbers, parts = [], []
    for share in shares:
        sizes_ = [ctypes.c_int(n) for n in (share.rows, share.columns, products.depth)]
        numbers.append(sizes_)
        before = (*map(_pointer, flags), *map(_pointer, sizes_), zero_and_one[1])
        dc, da, db = (itemsize * n for n in _begin(products, share))
        round_offsets = offsets[share.begin : share.end]
        parts.append(
            _Part(
                before, [(c + dc, a + da, b + db, zero_and_one[k]) for c, a, b, k in round_offsets]
            )
        )
    small = products.rows * products.columns * products.depth <= ALONE
    references = (flags, numbers, leading)
    return _Call(
        references, (la, lb, lc), products.swapped, tuple(parts), small and len(parts) == 1
    )


def _begin(products: Products, share: Share) -> tuple[int, int, int]:
    """Return elements from the start of result, left and right to the first of a share."""
    left, right = _matrices(products)
    return (
        share.row + share.column * products.leading,
        share.row * (left.leading if left.transposed else 1),
        share.column * (1 if right.transposed else right.leading),
    )


def _pointer(value: ctypes.c_char | ctypes.c_int) -> ctypes.c_void_p:
    return ctypes.c_void_p(ctypes.addressof(value))


def _matrices(products: Products) -> tuple[Matrix, Matrix]:
    return products.left, products.right


def _offsets(outer: Sequence[Loop], itemsize: int) -> Iterator[tuple[int, int, int, bool]]:
    """Yield bytes from the start of result, left and right, and whether it is not the first
    round."""
    if not outer:
        yield 0, 0, 0, False
        return
    *loops, last = outer
    for c, a, b, adds in _offsets(loops, itemsize):
        for step in range(last.size):
            dc, da, db = (step * s * itemsize for s in last.steps)
            yield c + dc, a + da, b + db, adds or (step > 0 and not last.users[0])
