"""What a tuned plan was timed on: the processor, which must agree, and what only makes it a hint.

must agree for a plan to be taken as it is     kind, processor, cores, instructions
another one makes a record a hint              compiler, version of this library
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from typing import Any

from codegen.machine.target import TARGETS, Where
from codegen.records import dataclass
from codegen.toolchain.compiler_version import version_line
from codegen.toolchain.errors import ToolchainError
from codegen.toolchain.processor import core_count, cpu_flags, cpu_name
from taco_py.compiler.devices import remembered
from taco_py.data.kernels import KERNELS
from taco_py.language.release import VERSION

NONE = "none"
"""Stands for a compiler, or a GPU, that is not there."""
SAME_PROCESSOR = ("kind", "processor", "cores", "instructions")


@dataclass(frozen=True, slots=True)
class Target:
    """A processor with its compiler, and the version of this library.

    kind          "c", "cuda" or "cuda-emulated"
    processor     its name; of a GPU its name and architecture
    cores         that this process may run on
    instructions  its instruction sets, in order of their names
    compiler      the line in which it says its version
    """

    kind: str
    processor: str
    cores: int
    instructions: str
    compiler: str
    version: str

    @property
    def digest(self) -> str:
        """Return the digest of a target, the same in every process."""
        return sha256(asdict(self))

    def same_processor(self, other: Target) -> bool:
        """Tell whether all fields that must agree are equal."""
        return all(getattr(self, field) == getattr(other, field) for field in SAME_PROCESSOR)

    def differences(self, current: Target) -> tuple[str, ...]:
        """Return the differences from the target here, each with both values: "compiler gcc 12,
        here gcc 13".

        Instruction sets are listed by what one of the two has alone.
        """
        lines = []
        for field in fields(self):
            mine, its = getattr(self, field.name), getattr(current, field.name)
            if mine == its:
                continue
            if field.name == "instructions":
                mine, its = _alone(mine, its), _alone(its, mine)
            lines.append(f"{field.name} {mine or NONE}, here {its or NONE}")
        return tuple(lines)


def _alone(mine: str, theirs: str) -> str:
    """Return the words that others lack, the first few."""
    words = sorted({*mine.split()} - {*theirs.split()})
    return " ".join(words[:4]) + (" …" if len(words) > 4 else "")


def sha256(value: Any) -> str:
    """Return the digest of a JSON value, the same in each process and version of Python."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def target_here(kind: str = "c") -> Target:
    """Return the target of this kind in this process, looked for once."""
    return remembered(("tuning target", kind), lambda: _detect_target(kind))


def _detect_target(kind: str) -> Target:
    if TARGETS[kind].where is Where.DEVICE:
        name, compiler = _gpu()
        return Target(kind, name, 1, "", compiler, VERSION)
    flags = " ".join(sorted(cpu_flags()))
    return Target(kind, cpu_name(), core_count(), flags, _compiler(), VERSION)


def _compiler() -> str:
    try:
        compiler = KERNELS.compiler
    except ToolchainError:
        return NONE
    return version_line(compiler.command) or compiler.identity


def _gpu() -> tuple[str, str]:
    """Return the name and architecture of the GPU, and its compiler."""
    from codegen.toolchain.cuda.find_compiler import find_cuda_compiler
    from taco_py.compiler.devices import device_of, devices

    name = NONE
    if not devices().why_not("cuda"):
        facts = getattr(device_of("cuda"), "facts", None)
        name = NONE if facts is None else f"{facts.name}, {facts.architecture}"
    try:
        return name, find_cuda_compiler().identity
    except ToolchainError:
        return name, NONE
