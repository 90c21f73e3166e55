"""Which compiler is found, what it is told, and what that does to the code."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from codegen.toolchain import compiler as module
from codegen.toolchain.compiler import Compiler, find_compiler, probe
from codegen.toolchain.errors import NoCompilerError, ToolchainError
from codegen.toolchain.processor import (
    cache_sizes,
    core_count,
    cpu_flags,
    cpu_identity,
    digest,
    source_fingerprint,
)


@pytest.fixture(scope="module")
def found() -> Compiler:
    return find_compiler()


def script(folder: Path, name: str, text: str) -> Path:
    """A program in `folder`, which is put on no PATH."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def real_compiler() -> str:
    path = shutil.which("cc") or shutil.which("gcc")
    if path is None:
        pytest.skip("no compiler to stand behind the pretended one")
    return path


# ---------------------------------------------------------------- finding


def test_cc_is_asked_first(tmp_path: Path) -> None:
    mine = script(tmp_path, "my-gcc", "exit 0")
    script(tmp_path, "cc", "exit 0")
    compiler = find_compiler({"CC": f"{mine} -m64", "PATH": str(tmp_path)})
    assert compiler.command == (str(mine), "-m64")
    assert compiler.kind == "gcc"


def test_then_the_path(tmp_path: Path) -> None:
    script(tmp_path, "clang", "exit 0")
    assert find_compiler({"PATH": str(tmp_path)}).command == (str(tmp_path / "clang"),)
    script(tmp_path, "gcc", "exit 0")
    assert find_compiler({"PATH": str(tmp_path)}).command == (str(tmp_path / "gcc"),)
    script(tmp_path, "cc", "echo some clang version 17")
    compiler = find_compiler({"PATH": str(tmp_path), "CC": ""})
    assert (compiler.command, compiler.kind) == ((str(tmp_path / "cc"),), "clang")


def test_then_zig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zig = script(tmp_path, "zig", "exit 0")
    monkeypatch.setattr(module, "_zig", lambda: (str(zig), "cc"))
    compiler = find_compiler({"PATH": str(tmp_path)})
    assert (compiler.command, compiler.kind) == ((str(zig), "cc"), "zig")


def test_cc_that_is_no_program() -> None:
    with pytest.raises(NoCompilerError, match="CC to name a C compiler, found 'nonsense'"):
        find_compiler({"CC": "nonsense", "PATH": os.environ["PATH"]})


def test_no_compiler_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_zig", lambda: None)
    with pytest.raises(NoCompilerError) as caught:
        find_compiler({"PATH": str(tmp_path)})
    for part in ("$CC", "cc, gcc and clang", str(tmp_path), "ziglang", "tacopy[zig]"):
        assert part in str(caught.value)


def test_another_compiler_has_another_identity(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path)}
    script(tmp_path, "gcc", "exit 0")
    first = find_compiler(environ)
    assert find_compiler(environ).identity == first.identity
    script(tmp_path, "gcc", "exit 0 # newer")
    assert find_compiler(environ).identity != first.identity


# ---------------------------------------------------------------- flags


def test_flags_keep_the_meaning_of_arithmetic(found: Compiler) -> None:
    forbidden = {"-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-ffinite-math-only"}
    assert not forbidden & {*found.flags, *probe(found).flags}


def test_likely_flags_are_right_here(found: Compiler) -> None:
    if found.kind != "gcc":
        pytest.skip("the flags of other compilers are always tried out")
    assert probe(found) == replace(found, probed=True)


def test_what_is_written_in_vectors_is_compiled_sooner(found: Compiler) -> None:
    assert "-O2" not in found.flags_for("")
    assert found.flags_for("#pragma omp simd\n", vectors=True)[-2:] == ("-O2", "-fopenmp-simd")


def test_openmp_is_linked_only_for_threads(found: Compiler) -> None:
    assert "-fopenmp" not in found.flags_for("#pragma omp simd\n")
    assert found.flags_for("#pragma omp parallel for\n")[-1] == found.openmp


@pytest.mark.parametrize("version", [9, 12, 13, 14])
def test_gather_tuning_by_version(tmp_path: Path, version: int) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("a tuning for x86 only")
    flags = find_compiler({"CC": str(script(tmp_path, f"gcc-{version}", "exit 0"))}).flags
    assert ("-mno-gather" in flags) == (version == 14)
    assert ("use_gather_8parts" in flags[-1]) == (version == 13)
    assert flags[-1].endswith(",^use_gather") == (version == 12)
    assert flags[-1].endswith("=^use_gather") == (version == 9)


def test_probe_drops_what_is_refused(tmp_path: Path) -> None:
    refused = "*gather*|-ffp-contract*|-fopenmp"
    text = f'for a; do case "$a" in {refused}) exit 1;; esac; done\nexec {real_compiler()} "$@"'
    compiler = find_compiler({"CC": str(script(tmp_path, "gcc-12", text))})
    probed = probe(compiler)
    assert probed.probed
    assert probed.openmp == "-fopenmp-simd"
    assert not probed.has_openmp
    assert "-O3" in probed.flags
    assert not any("gather" in f or "fp-contract" in f for f in probed.flags)


def test_probe_of_what_is_no_compiler(tmp_path: Path) -> None:
    broken = find_compiler({"CC": str(script(tmp_path, "gcc", "echo 'out of order' >&2; exit 1"))})
    with pytest.raises(ToolchainError, match="plain C function, found: out of order"):
        probe(broken)


# ---------------------------------------------------------------- code

SPMV = """
#include <complex.h>
#include <stdint.h>
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict vals,
          const double *restrict x, double *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t p = pos[i]; p < pos[i + 1]; p++)
            sum += vals[p] * x[crd[p]];
        y[i] = sum;
    }
}
void multiply(const double complex *a, const double complex *b, double complex *c, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        c[i] = a[i] * b[i];
}
"""


def assembly(compiler: Compiler, folder: Path, *more: str) -> str:
    (folder / "a.c").write_text(SPMV)
    command = [*compiler.command, *compiler.flags_for(SPMV), *more, "-S", "a.c", "-o", "a.s"]
    subprocess.run(command, cwd=folder, check=True)
    lines = (folder / "a.s").read_text().splitlines()
    return "\n".join(line for line in lines if ".file" not in line)


def test_no_gathers_and_plain_complex_products(found: Compiler, tmp_path: Path) -> None:
    if found.kind != "gcc" or platform.machine() != "x86_64":
        pytest.skip("what gcc does on x86")
    wide = ("-march=skylake-avx512",)
    assert "gather" not in assembly(found, tmp_path)
    assert "gather" not in assembly(found, tmp_path, *wide)
    plain = replace(found, flags=("-O3",))
    assert "gather" in assembly(plain, tmp_path, *wide), "else the tuning is not needed any more"
    assert "muldc3" not in assembly(found, tmp_path)
    assert "muldc3" in assembly(plain, tmp_path)


# ---------------------------------------------------------------- machine


MASKED_PAIRS = """
__attribute__((noipa)) void sums(const {type} *v, {type} *s)
{{
    {type} a = 0, b = 0;
    for (long k = 0; k < 8; k++)
        if (k < 3) {{
            a += v[2 * k];
            b += v[2 * k + 1];
        }}
    s[0] = a;
    s[1] = b;
}}

int main(void)
{{
    const {type} v[16] = {{1, 8, 4, 10, 7, 3, 2, 2, 5, 5, 9, 6, 1, 1, 1, 1}};
    {type} s[2];
    sums(v, s);
    return !(s[0] == 12 && s[1] == 21);
}}
"""


@pytest.mark.parametrize("type", ["double", "float", "long"])
def test_pairs_under_a_condition_are_what_they_are(
    found: Compiler, tmp_path: Path, type: str
) -> None:
    """gcc 12 reads v[2*k + 2] for v[2*k] where such loads become vectors."""
    source = MASKED_PAIRS.format(type=type)
    (tmp_path / "a.c").write_text(source)
    command = [*found.command, *found.flags_for(source), "a.c", "-o", "a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "a"], check=False).returncode == 0


def test_fingerprint_follows_the_sources(tmp_path: Path) -> None:
    (tmp_path / "package" / "inner").mkdir(parents=True)
    source = tmp_path / "package" / "inner" / "a.py"
    seen = [source_fingerprint((tmp_path / "package",))]
    for text in ("one", "two", "three and more"):
        source.write_text(text)
        os.utime(source, ns=(len(seen), len(seen)))
        seen.append(source_fingerprint((tmp_path / "package",)))
    (tmp_path / "package" / "b.h").write_text("")
    seen.append(source_fingerprint((tmp_path / "package",)))
    assert len(set(seen)) == len(seen)
    (tmp_path / "package" / "notes.txt").write_text("")
    (tmp_path / "package" / "__pycache__").mkdir()
    (tmp_path / "package" / "__pycache__" / "c.py").write_text("")
    assert source_fingerprint((tmp_path / "package",)) == seen[-1]
    assert source_fingerprint((tmp_path / "absent",)) != source_fingerprint(())


def test_fingerprint_of_a_wheel_is_that_of_its_record(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    source = tmp_path / "package" / "a.py"
    source.write_text("one")
    of_sources = source_fingerprint((tmp_path / "package",))
    record = tmp_path / "tacopy-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("package/a.py,sha256=1,3\n")
    installed = source_fingerprint((tmp_path / "package",))
    source.write_text("an edit")
    assert source_fingerprint((tmp_path / "package",)) == installed != of_sources
    record.write_text("package/a.py,sha256=2,30\n")
    assert source_fingerprint((tmp_path / "package",)) != installed


def test_facts_of_the_machine() -> None:
    assert core_count() >= 1
    assert platform.machine() in cpu_identity()
    assert list(cache_sizes()) == sorted(cache_sizes())
    if platform.machine() == "x86_64" and Path("/proc/cpuinfo").exists():
        assert "sse2" in cpu_flags()


def test_digest_keeps_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert len(digest()) == 32
