"""Fresh names, one supply for each compilation, so that the same input gives the same bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from keyword import iskeyword

C_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        auto break case char const continue default do double else enum extern float for goto if
        inline int long register restrict return short signed sizeof static struct switch typedef
        union unsigned void volatile while bool complex true false asm typeof main NULL errno
        threads I INFINITY NAN linux unix offsetof CSIGNAL FAPPEND FASYNC FFSYNC FNDELAY FNONBLOCK
        NFDBITS WCONTINUED WEXITED WNOHANG WNOWAIT WSTOPPED WUNTRACED
        """,
    )
)
"""Words of C, gcc and the headers, and `threads`, the parameter that kernels share."""

_MACRO = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]*[A-Z][A-Z0-9]*)+")
"""What the headers define otherwise: INT64_MAX, EXIT_FAILURE, O_RDONLY."""

_C_LIBRARY = frozenset(
    re.findall(
        r"\w+",
        """
        abs acos acosh asin asinh atan atan2 atanh cabs cacos cacosh carg casin casinh catan catanh
        cbrt ccos ccosh ceil cexp cimag clog conj copysign cos cosh cpow creal csin csinh csqrt ctan
        ctanh erf exp exp2 expm1 fabs floor fma fmax fmin fmod
        free gamma hypot ldexp lgamma log log10 log1p log2 malloc memcpy memset nan pow qsort
        fpclassify isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan
        isnormal isunordered remainder rint round signbit sin sinh sqrt stderr stdin stdout tan
        tanh tgamma trunc
        """,
    )
)
"""Also with an f or an l behind them, for float and long double."""

DEVICE_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        alignas alignof and and_eq bitand bitor catch char8_t char16_t char32_t class compl concept
        consteval constexpr constinit const_cast co_await co_return co_yield decltype delete
        dynamic_cast explicit export friend mutable namespace new noexcept not not_eq nullptr
        operator or or_eq private protected public reinterpret_cast requires static_assert
        static_cast template this thread_local throw try typeid typename using virtual wchar_t xor
        xor_eq int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t
        size_t assert printf
        threadIdx blockIdx blockDim gridDim warpSize dim3 half half2 min max abs clock clock64
        rsqrt saturate surfaceReference textureReference cudaStream_t
        as async await def del elif except finally from global import in is lambda nonlocal pass
        raise with yield print range host len
        """,
    )
) | frozenset(
    f"{kind}{lanes}"
    for kind in re.findall(
        r"\w+", "char uchar short ushort int uint long ulong longlong ulonglong float double"
    )
    for lanes in (1, 2, 3, 4)
)
"""Words of C++, of CUDA, and of Python and the functions that launch kernels from it.

Also what begins with `atomic` or `make_`.
"""

_NOT_IN_A_NAME = re.compile(r"\W", re.ASCII)


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def is_plain_name(text: object) -> bool:
    """Tell whether an object is an ASCII identifier and no keyword of Python: safe in any text.

    >>> is_plain_name("v1"), is_plain_name("lambda"), is_plain_name("x=open('f')")
    (True, False, False)
    """
    return type(text) is str and _PLAIN.fullmatch(text) is not None and not iskeyword(text)


class UnwritableNameError(ValueError):
    """A name would be more than a name in a text of C."""


def checked_names(names: Iterable[str]) -> list[str]:
    """Return names that are written into C. Raises UnwritableNameError for no identifiers.

    Names come from a supply or from a parser, which have checked them: this is the last look.
    """
    names_ = [*names]
    for name in names_:
        if type(name) is not str or _PLAIN.fullmatch(name) is None:
            raise UnwritableNameError(f"Expected an identifier to write into C, found {name!r:.80}")
    return names_


def is_reserved(name: str) -> bool:
    """Tell whether `name` means something in C or in the kernel runtime header already."""
    is_keyword = name in C_KEYWORDS or _MACRO.fullmatch(name) is not None
    library = name in _C_LIBRARY or (name[-1:] in ("f", "l") and name[:-1] in _C_LIBRARY)
    return is_keyword or library or name.startswith(("taco_", "_"))


def is_reserved_on_devices(name: str) -> bool:
    """Tell whether `name` means something in kernels of CUDA or in the Python that launches
    them."""
    return name in DEVICE_WORDS or name.startswith(("atomic", "make_"))


def identifier(text: str) -> str:
    """Return `text` with everything C does not allow in a name replaced by `_`.

    >>> identifier("i'2")
    'i_2'
    """
    name = _NOT_IN_A_NAME.sub("_", text).lstrip("_")
    if name.startswith("taco_"):
        return f"v_{name}"  # the prefix of the runtime header
    return name if name and not name[0].isdigit() else f"v{name}"


class Names:
    """A supply of names that differ from each other, from `taken` and from C's own words.

    >>> names = Names(["i"])
    >>> names.fresh("i"), names.fresh("i"), names.fresh("j"), names.fresh("double")
    ('i_1', 'i_2', 'j', 'double_1')
    """

    def __init__(self, used: Iterable[str] | Callable[[], Iterable[str]] = ()) -> None:
        """Take the used names, or a function that collects them for the first new name."""
        self._collect = used if callable(used) else None
        self._taken = set[str]() if callable(used) else set(used)
        self._last: dict[str, int] = {}

    def is_free(self, name: str) -> bool:
        """Tell whether `name` can still be had as it is."""
        if self._collect is not None:
            self._taken.update(self._collect())
            self._collect = None
        return name not in self._taken and not is_reserved(name)

    def fresh(self, wish: str) -> str:
        """Return `wish` made a C identifier, with the first number appended that makes it new."""
        base = name = identifier(wish)
        number = self._last.get(base, 0)
        while not self.is_free(name):
            number += 1
            name = f"{base}_{number}"
        self._last[base] = number
        self._taken.add(name)
        return name
