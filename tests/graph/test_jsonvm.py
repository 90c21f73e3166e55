"""The backend that computes in another process: its numbers, and what becomes of the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from codegen.runtime import child_process
from codegen.runtime.child_process import ChildEndedError, ChildProcess
from taco_py.graph.backends.jsonvm_backend import JsonVm, backend_of
from tests.graph.blocks import BLOCKS, operands_of, reference
from tests.graph.test_backends import steps_of, told_of

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def machine() -> Iterator[JsonVm]:
    found = JsonVm()
    yield found
    found.close()


def registered(vm: JsonVm) -> tuple[str]:
    """A backend of its own with a process, which computes all that it can."""
    tp.register_backend(replace(backend_of(vm), name="all_vm", always=True))
    return ("all_vm",)


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_give_numpys_numbers(name: str, machine: JsonVm) -> None:
    fused = tp.fuse(BLOCKS[name], backends=registered(machine))
    operands = operands_of(name, 12)
    np.testing.assert_allclose(fused(*operands), reference(name, operands), rtol=1e-9)
    if name != "attention":
        assert "all_vm" in steps_of(fused, *operands)
        assert machine.child.pid not in (None, os.getpid())


def test_a_killed_process_is_restarted_once_then_left_out(machine: JsonVm) -> None:
    fused = tp.fuse(lambda x: np.exp(x) + x.shape[0], backends=registered(machine))
    x = np.linspace(0, 1, 6)
    for kills, expected in enumerate((0, 0, 1, 0)):
        if 0 < kills < 3:
            assert machine.child.pid is not None
            os.kill(machine.child.pid, signal.SIGKILL)
        found, given = told_of(fused, x)
        np.testing.assert_allclose(found, np.exp(x) + 6)
        assert len(given) == expected
        assert steps_of(fused, x) == (["all_vm"] if kills < 2 else ["KernelRun"])
    told = fused.graph(x).explain()
    assert "all_vm    is left out: its process ended 2 times" in told


def test_it_goes_on_after_it_was_closed_and_after_an_interrupt(
    machine: JsonVm, monkeypatch: pytest.MonkeyPatch
) -> None:
    fused = tp.fuse(lambda x: x * 2 + 1, backends=registered(machine))
    x = np.arange(4.0)
    np.testing.assert_allclose(fused(x), x * 2 + 1)
    machine.close()
    assert machine.child.pid is None
    np.testing.assert_allclose(fused(x), x * 2 + 1)

    def interrupted(pipe: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(child_process, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fused(x)
    found, given = told_of(fused, x)
    np.testing.assert_allclose(found, x * 2 + 1)
    assert not given and steps_of(fused, x) == ["all_vm"]


def test_errors_of_the_interpreter_come_back(machine: JsonVm) -> None:
    with pytest.raises(RuntimeError, match="KeyError: 7"):
        machine._ask({"do": "run", "region": 7}, ())
    child = ChildProcess("os:no_such_function")
    with pytest.raises(ChildEndedError, match="has ended"):
        child.ask({})


FORKS = """
import os, sys
import numpy as np, taco_py as tp
from dataclasses import replace
from taco_py.graph.backends.jsonvm_backend import JsonVm, backend_of
vm = JsonVm()
tp.register_backend(replace(backend_of(vm), name="all_vm", always=True))
fused = tp.fuse(lambda x: x * 2 + 1, backends=("all_vm",))
x = np.arange(3.0)
fused(x)
first = vm.child.pid
child = os.fork()
if not child:
    assert vm.child.pid is None and (fused(x) == x * 2 + 1).all()
    os._exit(0 if vm.child.pid not in (None, first) else 1)
assert os.waitpid(child, 0)[1] == 0
assert (fused(x) == x * 2 + 1).all() and vm.child.pid == first
print(first, flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_forked_processes_start_their_own_and_it_ends_with_the_one_that_started_it() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, cwd=ROOT,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pid, begun = int(done.stdout), time.monotonic()
    while _is_running(pid):
        assert time.monotonic() - begun < 30
        time.sleep(0.05)


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text() if sys.platform == "linux" else ""
        os.kill(pid, 0)
    except (OSError, FileNotFoundError):
        return False
    return ") Z" not in state
