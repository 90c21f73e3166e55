"""Scalar functions of the loop IR, as data: which types each takes, gives, and how C spells it.

A front end asks for a function by name and never looks at C:

    has_function("exp", FLOAT32)                    True: it may be applied to a float32
    has_function("exp", INT64)                      False: NumPy would cast to float64 first
    build.apply("exp", x)                           an expression of the type of x
    build.apply("isnan", x)                         one of type bool
    build.apply("floor_divide", x, y)               x // y as NumPy computes it

All arguments have one type (`build.cast` makes it so), which is that of NumPy's loop; signed
integers may differ in width, and the widest one counts. Results are NumPy's for that type:
integers wrap, `x // 0` and `x % 0` of integers are 0, `%` has the sign of the divisor, shifts by
the width or more give 0 or the sign, `minimum` and `maximum` pass a NaN on and `fmin` and `fmax`
do not, complex numbers are ordered by real part, then imaginary part. `power` of integers takes
exponents of 0 or more: below, NumPy raises, and here x**-n is 1 / x**n truncated, 0 for x = 0.

A new function is one entry of `FUNCTIONS`; others are added while a process runs
(`REGISTERED`), under names that tell their C text. What it is in the loop IR depends on the type:

    CFunction   a call, `Apply`, of a function of <math.h>, <complex.h> or runtime/taco_math.h
                (whose names begin with taco_): included in a kernel's source where one is called
    Operator    the operator of `Binary` or `Unary` that it is
    Itself      its argument, such as floor of an integer
    Fixed       a constant, such as isnan of an integer

`CFunction.vectorizes` says that a C compiler makes vector code of a loop that calls it: it is
branch-free, or one instruction. exp expm1 log log1p log2 log10 sin cos tanh sigmoid erf cbrt of
floats are at most 1 ulp from the exact results (benchmarks/ulps.py), others as near as those of
the C library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from codegen.records import dataclass
from codegen.types import BOOL, SCALARS, ScalarType, scalar

SAME, TRUTH, REAL = "same", "truth", "real"
"""Results: the type of the arguments, bool, or the type of a complex number's parts."""

FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*INTEGERS, *FLOATS, *COMPLEX)
EVERYTHING = ("bool", *NUMBERS)

_SUFFIX = {"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"}
_REAL_OF = {"complex64": "float32", "complex128": "float64"}


@dataclass(frozen=True, slots=True)
class CFunction:
    """A function of C, and whether compilers make vector code of loops that call it.

    is_long     whether it takes tens of instructions, beside which it is nothing to gather
                arguments
    part        the macro that makes taco_math.h define it, where it does not always
    definition  C text that defines it in each kernel that calls it, where no header does
    in_pairs    the same without complex numbers, which are pairs in CUDA
    uses        the functions of headers that the definition calls
    """

    name: str
    vectorizes: bool = False
    is_long: bool = False
    part: str = ""
    definition: str = ""
    in_pairs: str = ""
    uses: tuple[CFunction, ...] = ()

    @property
    def is_own(self) -> bool:
        """Tell whether it is one of runtime/taco_math.h."""
        return self.name.startswith("taco_") and not self.definition


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of the loop IR."""

    op: str


@dataclass(frozen=True, slots=True)
class Itself:
    """The argument."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A constant, which is of the type of the result."""

    value: bool | int


Spelling = CFunction | Operator | Itself | Fixed
Spellings = Mapping[str, Spelling]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A pointwise function: for the name of each type that it takes, what it is there.

    result  the type that it gives: SAME, TRUTH, REAL, or by the name of the arguments' type
    """

    name: str
    arity: int
    result: str | Mapping[str, str]
    spellings: Spellings

    def result_type(self, argument: ScalarType) -> ScalarType:
        """Return the type of the result for arguments of one type."""
        if not isinstance(self.result, str):
            return scalar(self.result[argument.name])
        if self.result == TRUTH:
            return BOOL
        return (
            scalar(_REAL_OF.get(argument.name, argument.name)) if self.result == REAL else argument
        )


def has_function(name: str, argument: ScalarType) -> bool:
    """Tell whether there is a function called `name` of arguments of one type."""
    function = find_function(name)
    return function is not None and argument.name in function.spellings


def find_function(name: str) -> ScalarFunction | None:
    """Return the function called `name`, of the table or added to it; None where there is none."""
    return FUNCTIONS.get(name) or REGISTERED.get(name)


def function_of(name: str) -> ScalarFunction:
    """Return the function called `name`. Raises KeyError where there is none."""
    return REGISTERED.get(name) or FUNCTIONS[name]


def c_function(name: str, argument: str) -> CFunction | None:
    """Return the C function for arguments of a type's name; None where no call is made of it."""
    function = find_function(name)
    spelling = None if function is None else function.spellings.get(argument)
    return spelling if isinstance(spelling, CFunction) else None


def spelling_of(name: str, argument: ScalarType) -> Spelling:
    """Return the spelling of the function for arguments of one type.

    Raises KeyError where it takes none such.
    """
    return function_of(name).spellings[argument.name]


def combines(function: ScalarFunction | None, element: ScalarType) -> bool:
    """Tell whether a function makes one value of two in the same type, as updates do."""
    if function is None or function.arity != 2 or element.name not in function.spellings:
        return False
    return function.result_type(element) == element


def common_type(types: Sequence[ScalarType]) -> ScalarType:
    """Return the type of a function's arguments: of signed integers the widest, otherwise the
    first."""
    first = types[0]
    return max(types, key=lambda type: type.bits) if first.kind == "int" else first


# ---------------------------------------------------------------- ways to spell


def _c_library(name: str, vectorizes: bool = False) -> Spellings:
    """Return the C library's function of real numbers: `sqrtf` and `sqrt`."""
    return {
        "float32": CFunction(f"{name}f", vectorizes),
        "float64": CFunction(name, vectorizes),
    }


def _c_library_complex(name: str) -> Spellings:
    """Return the C library's function of complex numbers: `csqrtf` and `csqrt`."""
    return {"complex64": CFunction(f"{name}f"), "complex128": CFunction(name)}


def _suffix(element: ScalarType) -> str:
    return f"{_SUFFIX[element.kind]}{element.bits}"


def _header(name: str, types: Iterable[str], vectorizes: bool = False) -> Spellings:
    """Return our own function for each type: `taco_sign_f32` and `taco_sign_f64`."""
    return {t: CFunction(f"taco_{name}_{_suffix(SCALARS[t])}", vectorizes) for t in types}


def _reciprocals() -> Spellings:
    """Return 1 / x for integers, which is 0 except for 1 and -1."""
    spellings: dict[str, Spelling] = {}
    for name in INTEGERS:
        element = SCALARS[name]
        name_, signed = f"taco_reciprocal_{_suffix(element)}", element.kind == "int"
        of_zero = f"INT{element.bits}_MIN" if signed and element.bits >= 32 else "0"
        value = f"(x == 1){' - (x == -1)' * signed}"
        spellings[name] = CFunction(name_, vectorizes=True, definition=(
            f"static inline {element.c} {name_}({element.c} x)\n{{\n"
            f"    return x == 0 ? {of_zero} : ({element.c})({value});\n}}"
        ))  # fmt: skip
    return spellings


def _half(name: str) -> ScalarFunction:
    """Return the function that rounds a float32 to the nearest number of a 16-bit type."""
    function = f"taco_nearest_{name}"
    definition = (
        f"static inline float {function}(float x)\n{{\n"
        f"    return taco_of_{name}(taco_to_{name}(x));\n}}"
    )
    spelling = CFunction(
        function,
        vectorizes=True,
        definition=definition,
        uses=(CFunction(f"taco_of_{name}"), CFunction(f"taco_to_{name}")),
    )
    return _entry(f"nearest_{name}", 1, SAME, {"float32": spelling})


def _logaddexps() -> Spellings:
    """Return log(exp(x) + exp(y)), with a gap of 0 for equal, possibly infinite numbers."""
    spellings: dict[str, Spelling] = {}
    for name in FLOATS:
        element = SCALARS[name]
        name_, suffix, end = (
            f"taco_logaddexp_{_suffix(element)}",
            _suffix(element),
            "f" * (name == "float32"),
        )
        gap = f"x == y ? 0 : -__builtin_fabs{end}(x - y)"
        spellings[name] = CFunction(
            name_, vectorizes=True, is_long=True,
            definition=(
                f"static inline {element.c} {name_}({element.c} x, {element.c} y)\n{{\n"
                f"    return (x > y ? x : y) + taco_log1p_{suffix}(taco_exp_{suffix}({gap}));\n}}"
            ),
            uses=(CFunction(f"taco_exp_{suffix}"), CFunction(f"taco_log1p_{suffix}")),
        )  # fmt: skip
    return spellings


def _operator(op: str, types: Iterable[str]) -> Spellings:
    return dict.fromkeys(types, Operator(op))


def _itself(types: Iterable[str]) -> Spellings:
    return dict.fromkeys(types, Itself())


def _fixed(value: bool | int, types: Iterable[str]) -> Spellings:
    return dict.fromkeys(types, Fixed(value))


def _entry(name: str, arity: int, result: str, *spellings: Spellings) -> ScalarFunction:
    return ScalarFunction(
        name, arity, result, {t: s for part in spellings for t, s in part.items()}
    )


# ---------------------------------------------------------------- the table


def _polynomial(
    name: str, complex: Callable[[str], Spellings] | None = None, part: str = ""
) -> ScalarFunction:
    """Return a function of real numbers that taco_math.h has as a polynomial."""
    polynomials = {
        t: CFunction(f"taco_{name}_{_suffix(SCALARS[t])}", vectorizes=True, is_long=True, part=part)
        for t in FLOATS
    }
    return _entry(name, 1, SAME, polynomials, {} if complex is None else complex(f"c{name}"))


def _elementary(name: str) -> ScalarFunction:
    """Return a function that the C library has for real and complex numbers."""
    return _entry(name, 1, SAME, _c_library(name), _c_library_complex(f"c{name}"))


def _header_complex(name: str) -> Spellings:
    """Return our own function of complex numbers, in terms of the C library's."""
    return _header(name.removeprefix("c"), COMPLEX)


def _rounding(name: str, function: str, *more: Spellings) -> ScalarFunction:
    exact = _itself(("bool", *INTEGERS))
    return _entry(name, 1, SAME, exact, _c_library(function, vectorizes=True), *more)


def _test(name: str, of_integers: bool) -> ScalarFunction:
    exact = _fixed(of_integers, ("bool", *INTEGERS))
    return _entry(name, 1, TRUTH, exact, _header(name, (*FLOATS, *COMPLEX), vectorizes=True))


def _comparison(name: str, op: str) -> ScalarFunction:
    equality = op in ("==", "!=")
    of_complex = _operator(op, COMPLEX) if equality else _header(name, COMPLEX)
    reals = ("bool", *INTEGERS, *FLOATS)
    return _entry(name, 2, TRUTH, _operator(op, reals), of_complex)


def _extremum(name: str, op: str, ignoring: bool = False) -> ScalarFunction:
    """Return `minimum` and `maximum` are operators of the loop IR; those that ignore a NaN are
    ours."""
    floats = _header(name, FLOATS, vectorizes=True) if ignoring else _operator(op, FLOATS)
    return _entry(name, 2, SAME, _operator(op, ("bool", *INTEGERS)), floats, _header(name, COMPLEX))


def _logical(name: str, arity: int, of_bool: str) -> ScalarFunction:
    numbers = _header(name, NUMBERS, vectorizes=True)
    return _entry(name, arity, TRUTH, _operator(of_bool, ("bool",)), numbers)


def _bitwise(name: str, op: str) -> ScalarFunction:
    return _entry(name, 2, SAME, _operator(op, ("bool", *INTEGERS)))


_TABLE: tuple[ScalarFunction, ...] = (
    # Roots, exponentials and logarithms.
    _entry("sqrt", 1, SAME, _c_library("sqrt", vectorizes=True), _c_library_complex("csqrt")),
    _polynomial("cbrt"),
    _polynomial("exp", _c_library_complex),
    _polynomial("expm1", _header_complex),
    _entry("exp2", 1, SAME, _c_library("exp2"), _header("exp2", COMPLEX)),
    _polynomial("log", _c_library_complex),
    _polynomial("log1p", _header_complex),
    _polynomial("log2", _header_complex),
    _polynomial("log10", _header_complex),
    # Trigonometry.
    _polynomial("sin", _c_library_complex, part="TACO_SINES"),
    _polynomial("cos", _c_library_complex, part="TACO_SINES"),
    *map(_elementary, ("tan", "asin", "acos", "atan", "sinh", "cosh")),
    _polynomial("tanh", _c_library_complex),
    *map(_elementary, ("asinh", "acosh", "atanh")),
    _entry("atan2", 2, SAME, _c_library("atan2")),
    _entry("hypot", 2, SAME, _c_library("hypot")),
    # Of statistics and learning.
    _polynomial("erf"),
    _polynomial("sigmoid"),
    # To whole numbers.
    _rounding("floor", "floor"),
    _rounding("ceil", "ceil"),
    _rounding("trunc", "trunc"),
    _rounding("rint", "rint", _header("rint", COMPLEX, vectorizes=True)),
    # To numbers of 16 bits.
    _half("float16"),
    _half("bfloat16"),
    # Signs and parts.
    _entry(
        "abs", 1, REAL,
        _itself(("bool", *UNSIGNED)),
        _header("abs", SIGNED, vectorizes=True),
        _c_library("fabs", vectorizes=True),
        _c_library_complex("cabs"),
    ),
    _entry(
        "sign", 1, SAME,
        _header("sign", (*INTEGERS, *FLOATS), vectorizes=True),
        _header("sign", COMPLEX),
    ),
    _entry("/", 2, SAME, _header("divide", COMPLEX)),  # of real numbers it is an operator
    _entry("copysign", 2, SAME, _c_library("copysign", vectorizes=True)),
    _entry("conj", 1, SAME, _itself(("bool", *INTEGERS, *FLOATS)), _c_library_complex("conj")),
    _entry("real", 1, REAL, _itself(("bool", *INTEGERS, *FLOATS)), _c_library_complex("creal")),
    _entry("imag", 1, REAL, _fixed(0, ("bool", *INTEGERS, *FLOATS)), _c_library_complex("cimag")),
    _entry("angle", 1, REAL, _header("angle", FLOATS, vectorizes=True), _c_library_complex("carg")),
    # Arithmetic of two numbers.
    _entry("power", 2, SAME, _header("power", (*INTEGERS, *COMPLEX)), _c_library("pow")),
    _entry("floor_divide", 2, SAME, _header("floor_divide", (*INTEGERS, *FLOATS))),
    _entry("remainder", 2, SAME, _header("remainder", (*INTEGERS, *FLOATS))),
    _extremum("minimum", "min"),
    _extremum("maximum", "max"),
    _extremum("fmin", "min", ignoring=True),
    _extremum("fmax", "max", ignoring=True),
    _entry("logaddexp", 2, SAME, _logaddexps()),
    _entry("reciprocal", 1, SAME, _reciprocals()),
    # Truths.
    _test("isnan", of_integers=False),
    _test("isinf", of_integers=False),
    _test("isfinite", of_integers=True),
    _comparison("equal", "=="),
    _comparison("not_equal", "!="),
    _comparison("less", "<"),
    _comparison("less_equal", "<="),
    _comparison("greater", ">"),
    _comparison("greater_equal", ">="),
    _logical("logical_and", 2, "&"),
    _logical("logical_or", 2, "|"),
    _logical("logical_xor", 2, "^"),
    _logical("logical_not", 1, "!"),
    # Bits.
    _bitwise("bitwise_and", "&"),
    _bitwise("bitwise_or", "|"),
    _bitwise("bitwise_xor", "^"),
    _entry(
        "invert", 1, SAME, _operator("!", ("bool",)), _header("invert", INTEGERS, vectorizes=True)
    ),
    _entry("left_shift", 2, SAME, _header("left_shift", INTEGERS, vectorizes=True)),
    _entry("right_shift", 2, SAME, _header("right_shift", INTEGERS, vectorizes=True)),
)  # fmt: skip

FUNCTIONS: Mapping[str, ScalarFunction] = {function.name: function for function in _TABLE}
"""The functions by name."""


class Registry:
    """Functions that are added while a process runs; what a name stands for never changes."""

    __slots__ = ("_functions", "_makers")

    def __init__(self) -> None:
        self._functions: dict[str, ScalarFunction] = {}
        self._makers: dict[str, Callable[[], ScalarFunction]] = {}

    def add(self, name: str, make: Callable[[], ScalarFunction]) -> None:
        """Let kernels call a function, made when one does first; its name tells its text."""
        self._makers.setdefault(name, make)

    def get(self, name: str) -> ScalarFunction | None:
        """Return the function of a name, None where none was added."""
        if name not in self._functions and name in self._makers:
            self._functions[name] = self._makers[name]()
        return self._functions.get(name)


REGISTERED = Registry()
"""The functions that were added in this process."""
