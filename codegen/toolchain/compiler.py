"""Find a C compiler and decide the flags that every kernel is built with.

What the flags promise about arithmetic: infinities, NaN and signed zeros keep their meaning, so
never -ffast-math, -Ofast or -funsafe-math-optimizations (linking with them would also turn on
flush-to-zero for the whole Python process). Sums are reordered only where the source says
`omp simd reduction`.

- `-fno-math-errno -fno-trapping-math`: nobody reads errno or the exception flags; results are the
  same.
- `-ffp-contract=fast`: a*b + c becomes one fused multiply-add, as in every BLAS: faster and, with
  one rounding less, closer to the exact result. It is gcc's default; clang's stops at statements.
- `-fcx-fortran-rules`: a complex product is (ac - bd) + (ad + bc)i, which is NumPy's, instead of
  C's Annex G, whose test for NaN is a call that prevents vectorisation; quotients are scaled
  (Smith 1962) as NumPy's are. `-fcomplex-arithmetic=improved` is clang's newer name.
- `-fwrapv`: signed integers wrap, as NumPy's do.
- `-fno-tree-loop-if-convert`, for sources with complex numbers or loops over a fixed few: where
  neighbours are read under one condition, as in `if (k < m) { a += v[2*k]; b += v[2*k + 1]; }`, gcc
  12 may read v[2*k + 2] for the first (`tests/toolchain/test_compiler.py`). Elsewhere, and in
  loops that the source marks, nothing is read in such pairs, and loops with conditions profit from
  becoming vectors.
- `-fvect-cost-model=very-cheap`: gcc makes vectors of the loops that the source marks, and of
  others where that costs nothing. It would add four products at a time to a sum and finish it in a
  second loop, which costs a sum of few terms more than it takes: three times as long for one term.
- no gathers: gcc's vector gather makes `s += v[q] * x[c[q]]` 2 to 5 times slower than scalar loads.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from codegen.records import dataclass
from codegen.toolchain.errors import NoCompilerError, ToolchainError

Alternatives = tuple[str, ...]
"""Spellings of one wish; the first that a compiler accepts is used, none if it accepts none."""

_ANYWHERE: tuple[Alternatives, ...] = (
    ("-O3",),
    ("-march=native", "-mcpu=native"),
    ("-fwrapv",),
    ("-fno-math-errno",),
    ("-fno-trapping-math",),
    ("-ffp-contract=fast",),
    ("-falign-functions=64",),  # as loops of few iterations take twice the time at some places
    ("-falign-loops=32",),
    ("-fcx-fortran-rules", "-fcomplex-arithmetic=improved"),
)
_NO_GATHER: Alternatives = (
    "-mno-gather",
    "-mtune-ctrl=^use_gather_2parts,^use_gather_4parts,^use_gather_8parts",
    "-mtune-ctrl=^use_gather_2parts,^use_gather_4parts,^use_gather",
    "-mtune-ctrl=^use_gather",
)
_MARKED_LOOPS: Alternatives = ("-fvect-cost-model=very-cheap", "-fvect-cost-model=dynamic")
_NO_MASKED_PAIRS = "-fno-tree-loop-if-convert"
WITHOUT_MASKED_PAIRS = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-if-convert") /* gcc 12 may read pairs from the wrong place */
#endif"""
"""The same in a source that others compile."""

_PAIRS = re.compile(r"#include <complex\.h>|; \w+ < 1?\d; ")
"""What a source has where neighbouring elements may be read under one condition."""
_MARKED = re.compile(r"#pragma omp simd\n *for \(.*")
"""Loops that are made vectors as they are: each iteration reads elements of its own."""

_OPENMP: Alternatives = ("-fopenmp", "-fopenmp-simd")

_PROBE = """
double dot(const double *x, const double *y, long n)
{
    double s = 0;
#pragma omp parallel for simd reduction(+ : s)
    for (long i = 0; i < n; i++)
        s += x[i] * y[i];
    return s;
}

int main(int count, char **words)
{
    double numbers[1] = {count};
    return words == 0 && dot(numbers, numbers, 1) == 0;
}
"""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler and the flags it is used with.

    command   how to start it: ("gcc",) or ("/…/zig", "cc")
    kind      "gcc", "clang" or "zig"
    identity  changes when another compiler is installed in its place
    flags     for every kernel
    openmp    the flag for kernels with parallel loops: "-fopenmp", or "-fopenmp-simd" without
              threads, or "" when it knows neither
    probed    whether the flags were tried out; otherwise they are the likely ones for its kind
    """

    command: tuple[str, ...]
    kind: str
    identity: str
    flags: tuple[str, ...]
    openmp: str = "-fopenmp"
    probed: bool = False

    @property
    def has_openmp(self) -> bool:
        return self.openmp == "-fopenmp"

    def flags_for(self, source: str, vectors: bool = False) -> tuple[str, ...]:
        """Return the flags for `source`: libgomp is linked, and started, only where threads are
        used.

        vectors  whether its work is written in vectors: it is compiled in two thirds of the time
                 without what makes more of them, and is as fast
        """
        needs_pairs = self.kind == "gcc" and reads_pairs(source)
        flags = (
            *self.flags,
            *((_NO_MASKED_PAIRS,) if needs_pairs else ()),
            *(("-O2",) if vectors else ()),
        )
        if "omp parallel" in source and self.openmp:
            return (*flags, self.openmp)
        return (*flags, "-fopenmp-simd") if self.openmp else flags

    def __str__(self) -> str:
        return " ".join([*self.command, *self.flags, self.openmp]).rstrip()


def reads_pairs(source: str) -> bool:
    """Tell whether neighbours may be read under one condition, which gcc 12 may do wrongly."""
    return _PAIRS.search(_MARKED.sub("", source)) is not None


def _command(text: str) -> list[str]:
    """Return the words of $CC. Raises NoCompilerError where they cannot be told apart."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise NoCompilerError(
            f"Expected the environment variable CC to hold a command, found {text!r} ({error})",
            hint="close the quote, or put a backslash before it",
        ) from error


def find_compiler(environ: Mapping[str, str] = os.environ) -> Compiler:
    """Find $CC, else cc, gcc or clang on the PATH, else the ziglang wheel.

    Starts no process as a rule.

    Raises NoCompilerError, with what was tried; also when $CC is set and is not a program, since a
    compiler that was asked for must not be replaced silently.
    """
    command = _command(environ.get("CC", ""))
    path = environ.get("PATH")
    if command:
        program = shutil.which(command[0], path=path)
        if program is None:
            raise NoCompilerError(
                f"Expected the environment variable CC to name a C compiler, found {command[0]!r}, "
                "which is not a program",
                hint="unset CC, or set it to the path of gcc or clang",
            )
        return _describe((program, *command[1:]))
    for name in ("cc", "gcc", "clang"):
        program = shutil.which(name, path=path)
        if program is not None:
            return _describe((program,))
    zig = _zig()
    if zig is not None:
        return _describe(zig)
    raise NoCompilerError(
        "Expected a C compiler, found none: tried $CC, then cc, gcc and clang on PATH "
        f"({path or ''}), then the ziglang wheel",
        hint="install gcc or clang (Debian: apt install gcc), or pip install 'tacopy[zig]'",
    )


def _zig() -> tuple[str, ...] | None:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).parent / ("zig.exe" if os.name == "nt" else "zig")
    if program.exists():
        return (str(program), "cc")
    return (sys.executable, "-m", "ziglang", "cc")


def _describe(command: tuple[str, ...]) -> Compiler:
    program = Path(command[0]).resolve()
    facts = program.stat()
    identity = f"{shlex.join(command)} {program} {facts.st_size} {facts.st_mtime_ns}"
    kind = _kind(command, program.name)
    flags = tuple(_likely(wish, kind, program) for wish in _flag_alternatives(kind))
    # zig brings no OpenMP library.
    return Compiler(command, kind, identity, flags, _OPENMP[1] if kind == "zig" else _OPENMP[0])


def _kind(command: tuple[str, ...], name: str) -> str:
    if "zig" in name or "ziglang" in command:
        return "zig"
    if "clang" in name:
        return "clang"
    if "gcc" in name and sys.platform != "darwin":  # there, gcc is a clang
        return "gcc"
    try:
        said = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCompilerError(
            f"Expected {shlex.join(command)} to be a C compiler, but it does not run: {error}",
            hint="set the environment variable CC to the path of gcc or clang",
        ) from error
    return "clang" if "clang" in said else "gcc"


def _flag_alternatives(kind: str) -> tuple[Alternatives, ...]:
    alternatives = (*_ANYWHERE, _MARKED_LOOPS) if kind == "gcc" else _ANYWHERE
    if platform.machine().lower() in ("x86_64", "amd64") and kind != "zig":
        return (*alternatives, _NO_GATHER)
    return alternatives


def may_have_left(compiler: Compiler, flags: Iterable[str], openmp: str) -> bool:
    """Tell whether a probe of a compiler can have left such flags: it tries no others."""
    probed = {
        *compiler.flags,
        *(flag for wish in _flag_alternatives(compiler.kind) for flag in wish),
    }
    return {*flags} <= probed and openmp in ("", compiler.openmp, *_OPENMP)


def _likely(wish: Alternatives, kind: str, program: Path) -> str:
    """Return the alternative this compiler most likely accepts, found without starting it."""
    if kind != "gcc" or wish not in (_MARKED_LOOPS, _NO_GATHER):
        return wish[0]
    version = _gcc_version(program)
    if wish is _MARKED_LOOPS:
        return wish[0] if version is None or version >= 11 else wish[1]
    if version is None or version >= 14:
        return wish[0]
    return wish[1] if version == 13 else wish[2] if version >= 11 else wish[3]


def _gcc_version(program: Path) -> int | None:
    """Return the major version, from a name like `gcc-12` or the library folder."""
    match = re.search(r"gcc-(\d+)", program.name)
    if match:
        return int(match[1])
    folders = (program.parent.parent / "lib" / "gcc").glob("*/*")
    versions = [int(f.name.split(".")[0]) for f in folders if f.name[:1].isdigit()]
    return max(versions, default=None)


def probe(compiler: Compiler) -> Compiler:
    """Try the flags, and keep the accepted ones.

    Costs one run when all of them are right, else about two dozen. Raises ToolchainError when it
    cannot even compile a plain function.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text(_PROBE)
        if _accepts(compiler, source, (*compiler.flags, "-Werror", compiler.openmp)):
            return replace(compiler, probed=True)
        failure = _failure(compiler, source, ())
        if failure is not None:
            program = shlex.join(compiler.command)
            raise ToolchainError(
                f"Expected {program} to compile a plain C function, found: {failure}",
                hint="set the environment variable CC to a compiler that works",
            )
        alternatives = _flag_alternatives(compiler.kind)
        accepted = [_first(compiler, source, wish) for wish in alternatives]
        openmp = _first(compiler, source, _OPENMP)
    return replace(compiler, flags=tuple(f for f in accepted if f), openmp=openmp, probed=True)


def _first(compiler: Compiler, source: Path, wish: Alternatives) -> str:
    # clang only warns about flags it does not use, hence -Werror.
    return next((f for f in wish if _accepts(compiler, source, ("-Werror", f))), "")


def _accepts(compiler: Compiler, source: Path, flags: tuple[str, ...]) -> bool:
    return _failure(compiler, source, flags) is None


def _failure(compiler: Compiler, source: Path, flags: tuple[str, ...]) -> str | None:
    # A whole program, since a shared object may be linked without the library that OpenMP needs.
    output = source.with_suffix(".out")
    command = [*compiler.command, *(f for f in flags if f)]
    try:
        process = subprocess.run(
            [*command, str(source), "-o", str(output)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if process.returncode == 0 else process.stderr.strip() or "it printed nothing"
