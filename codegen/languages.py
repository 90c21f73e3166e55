"""The languages that modules are written in, by the names that targets have for them.

A target in another language has a line here, and a line with its passes in `passes.order`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from codegen.records import dataclass

if TYPE_CHECKING:
    from codegen.ir import Module
    from codegen.machine.target import Target


@dataclass(frozen=True, slots=True)
class Language:
    """What writes a module after all passes as text.

    emit         its functions; of a GPU, its kernels
    emit_host    the functions that launch kernels, in Python; empty where there are none. Both
                 raise UnsupportedError
    emit_shared  the functions that many modules share, for a file of their own, and each as `emit`
                 writes it with what declares it; None where they stay where they are
    """

    emit: Callable[[Module, Target], str]
    emit_host: Callable[[Module], str]
    emit_shared: Callable[[Module, Target], tuple[str, tuple[tuple[str, str], ...]]] | None = None


def _emit_c(module: Module, target: Target) -> str:
    from codegen.emit.c import emit_c

    return emit_c(module, target)


def _emit_shared_c(module: Module, target: Target) -> tuple[str, tuple[tuple[str, str], ...]]:
    from codegen.emit.c import emit_shared

    return emit_shared(module, target)


def _emit_cuda(module: Module, target: Target) -> str:
    from codegen.emit.cuda import emit_cuda

    return emit_cuda(module, target)


def _emit_host(module: Module) -> str:
    from codegen.emit.host_python import emit_host

    return emit_host(module)


def emit_no_host(_: Module) -> str:
    """Return an empty text: functions are called as they are."""
    return ""


LANGUAGES: Mapping[str, Language] = {
    "c": Language(_emit_c, emit_no_host, _emit_shared_c),
    "cuda": Language(_emit_cuda, _emit_host),
}
"""Each imports what writes its text when it is first needed."""
