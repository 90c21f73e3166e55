"""How many threads a process uses that was not told: variables, affinity, quotas of containers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.toolchain import thread_limits
from codegen.toolchain.thread_limits import cpu_quota, thread_limit
from tests.machines import on_machine

ROOT = Path(__file__).parent.parent.parent
VARIABLES = ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT")


@pytest.fixture
def many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_limits, "core_count", lambda: 64)


def files(root: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("environ", "count"),
    [
        ({}, 64),
        ({"OMP_NUM_THREADS": "4"}, 4),
        ({"OMP_NUM_THREADS": " 4 "}, 4),
        ({"OMP_NUM_THREADS": "+04"}, 4),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"OMP_NUM_THREADS": "4 , 2, 1"}, 4),
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"OMP_NUM_THREADS": "100"}, 64),
        ({"OMP_NUM_THREADS": ""}, 64),
        ({"OMP_NUM_THREADS": "9" * 18}, 64),
        ({"OMP_THREAD_LIMIT": "6"}, 6),
        ({"OMP_NUM_THREADS": "8", "OMP_THREAD_LIMIT": "6"}, 6),
        ({"OMP_NUM_THREADS": "3", "OMP_THREAD_LIMIT": "6"}, 3),
    ],
)
def test_variables(many_cores: None, tmp_path: Path, environ: dict[str, str], count: int) -> None:
    assert thread_limit(environ, tmp_path) == count


@pytest.mark.parametrize(
    "value", ["0", "-2", "four", "4,", ",4", "4;2", "4.0", "1e3", "4,0", "1_0"]
)
@pytest.mark.parametrize("name", VARIABLES)
def test_variables_that_are_no_counts(
    many_cores: None, tmp_path: Path, name: str, value: str
) -> None:
    with pytest.warns(
        RuntimeWarning, match=f"{name} is ignored: expected a positive integer"
    ) as told:
        assert thread_limit({name: value}, tmp_path) == 64
    assert repr(value) in str(told[0].message)
    assert told[0].filename == __file__


def test_a_limit_is_no_list(many_cores: None, tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="OMP_THREAD_LIMIT is ignored"):
        assert thread_limit({"OMP_THREAD_LIMIT": "4,2"}, tmp_path) == 64


V1 = "sys/fs/cgroup/cpu"
QUOTAS = [
    ({}, None),
    ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
    ({"sys/fs/cgroup/cpu.max": "250000 100000\n"}, 2.5),
    ({"sys/fs/cgroup/cpu.max": "nonsense"}, None),
    ({"sys/fs/cgroup/cpu.max": "100000 0"}, None),
    ({"sys/fs/cgroup/unified/cpu.max": "50000 100000\n"}, 0.5),
    ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "300000 100000"}, 3.0),
    (
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/cpu.max": "max 100000",
            "sys/fs/cgroup/a/cpu.max": "400000 100000",
        },
        4.0,
    ),
    ({"proc/self/cgroup": "0::/host/only\n", "sys/fs/cgroup/cpu.max": "200000 100000"}, 2.0),
    ({"proc/self/cgroup": "0::/../..\n", "sys/fs/cgroup/cpu.max": "200000 100000"}, 2.0),
    ({f"{V1}/cpu.cfs_quota_us": "-1\n", f"{V1}/cpu.cfs_period_us": "100000\n"}, None),
    ({f"{V1}/cpu.cfs_quota_us": "150000\n", f"{V1}/cpu.cfs_period_us": "100000\n"}, 1.5),
    ({f"{V1}/cpu.cfs_quota_us": "150000\n"}, None),
    (
        {
            "proc/self/cgroup": "5:memory:/m\n4:cpu,cpuacct:/docker/1a\n0::/x\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        },
        2.0,
    ),
    (
        {
            "proc/self/cgroup": "4:cpuacct,cpu:/a/b\n",
            f"{V1}/a/cpu.cfs_quota_us": "70000\n",
            f"{V1}/a/cpu.cfs_period_us": "100000\n",
            f"{V1}/a/b/cpu.cfs_quota_us": "200000\n",
            f"{V1}/a/b/cpu.cfs_period_us": "100000\n",
        },
        0.7,
    ),
]


@pytest.mark.parametrize(("texts", "quota"), QUOTAS)
def test_quotas(
    many_cores: None, tmp_path: Path, texts: dict[str, str], quota: float | None
) -> None:
    root = files(tmp_path, texts)
    assert cpu_quota(root) == quota
    expected = 64 if quota is None else max(1, int(quota) + (quota % 1 > 0))
    assert thread_limit({}, root) == expected
    assert thread_limit({"OMP_NUM_THREADS": "2"}, root) == min(2, expected)


# ---------------------------------------------------------------- in a process


def process(code: str, **environ: str) -> str:
    """What a new process prints."""
    others = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", f"import os, taco_py as tp\n{code}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env={**others, **environ},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def usual_count() -> int:
    """The threads of a process here without such variables."""
    with on_machine("real"):
        return thread_limit({})


def test_a_process_follows_its_environment() -> None:
    assert process("print(tp.get_threads())", OMP_NUM_THREADS="1").split() == ["1"]
    told = process("print(tp.get_threads(), tp.get_threads())", OMP_NUM_THREADS="none")
    assert told.startswith(f"{usual_count()} {usual_count()}\n")
    assert told.count("OMP_NUM_THREADS is ignored") == 1


def test_what_was_said_wins() -> None:
    code = (
        "tp.set_threads(3); print(tp.get_threads()); tp.set_threads(None); print(tp.get_threads())"
    )
    assert process(code, OMP_NUM_THREADS="1").split() == ["3", "1"]


def test_it_is_read_at_the_first_use_and_by_set_threads() -> None:
    code = """
os.environ["OMP_NUM_THREADS"] = "1"
print(tp.get_threads())
del os.environ["OMP_NUM_THREADS"]
print(tp.get_threads())
tp.set_threads(None)
print(tp.get_threads())
"""
    assert process(code).split() == ["1", "1", str(usual_count())]


def test_threads_of_one_call_win() -> None:
    code = """
import numpy as np, scipy.sparse as sp
A, x = sp.eye_array(40_000, format="csr"), np.ones(40_000)
print(*[line for threads in (None, 2) for line in tp.explain("y[i] = A[i,j] * x[j]", A=A, x=x,
      threads=threads, schedule_budget=0).splitlines() if line.startswith("  threads ")], sep="\\n")
"""
    one, two = process(code, OMP_NUM_THREADS="1").splitlines()
    assert one.split()[1].startswith("1") and two.split()[1].startswith("2")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="has no affinity")
def test_affinity() -> None:
    code = """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(tp.get_threads())
"""
    assert process(code).split() == ["1"]
