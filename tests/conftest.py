"""Options and settings of the whole test suite.

pytest --thorough             the longer searches of the options below
pytest --combinations some    few, some, pairs or all of the formats of each corpus expression
pytest --examples 500         how many random programs each property test compiles
pytest --user-flags 3         the kernels of each third test with the flags that users get; 1: all
pytest --rotation 7           which part of large grids is tried; all: all of it
pytest --machine sse2         as if on another processor: `MACHINES` of tests/machines.py
pytest --update-golden        write golden files instead of comparing with them

Kernels are compiled with -Og, in less than half of the time: what most tests ask is what the
generated C means. Modules and tests with the marker `user_flags` ask what the C compiler makes of
it, with the flags that users get; between them they have every kind of kernel.

Of a grid with the marker `rotating(n)` each n-th case is tried, of others of 24 cases and more each
third: others with each commit, whose id says which, so that a run can be repeated, and n commits
have tried all. Where folders are asked for and not files, half as many are tried of grids with the
marker, and a third of all others of 4 cases and more, but for tests of golden files and those of
this folder itself: a change to the project shows in them at once. Of `rotating(1)` all are tried.

With `--thorough`, all tests run as if on one of several machines (`IN_TURN`), another one with each
commit; else on the one here. `python -m tests.pretended_machines` runs them on all.

CI runs `--thorough`. By hand, `--combinations all` takes hours, `--combinations pairs
--examples 500 --user-flags 1 --rotation all` about one.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from zlib import crc32

import hypothesis
import pytest

from codegen.runtime import blas
from taco_py.data.kernels import KERNELS
from tests.machines import MACHINES, machine_in_turn, machine_named, missing_feature, pretend

ROOT = Path(__file__).parent.parent

# Kernels that tests compile are kept beside pytest's own cache, never in the user's.
os.environ.setdefault("TACO_PY_CACHE_DIR", str(ROOT / ".pytest_cache" / "kernels"))

# Plans are those of the prices as shipped, whatever was measured on the machine here.
os.environ["TACO_PY_CALIBRATION"] = "off"

hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


QUICK = ("-Og", *(("-fuse-ld=gold",) if shutil.which("ld.gold") else ()))
"""Compiler flags of tests without the marker `user_flags`; gold links in half of the time."""

LARGE, SHARE = 24, 3
"""Of each grid of so many cases without the marker `rotating`, each third one is tried."""

SMALL = 4
"""Of grids of as many cases and more, less is tried where folders are."""

FEW = {"combinations": "few", "examples": 10, "user_flags": 0}
THOROUGH = {"combinations": "few", "examples": 10, "user_flags": 24}
"""What the options are where they are not given, without --thorough and with it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tacopy")
    group.addoption(
        "--combinations",
        choices=("few", "some", "pairs", "all"),
        help="format combinations of each corpus expression: each format once … every combination",
    )
    group.addoption("--examples", type=int, help="random programs compiled by each property test")
    group.addoption(
        "--thorough",
        action="store_true",
        help="longer searches, each 24th test with the flags that users get: what CI runs",
    )
    group.addoption(
        "--user-flags", type=int, help="each so-many-th test with the flags that users get; 0: none"
    )
    group.addoption("--rotation", help="a number: the part of large grids to try; all: all of it")
    group.addoption("--machine", help=f"{', '.join(MACHINES)}, or some with + between")
    group.addoption(
        "--update-golden", action="store_true", help="write golden files instead of comparing"
    )


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # nothing of what is imported and collected is garbage
    config.addinivalue_line("markers", "user_flags: compiled with the flags that users get")
    config.addinivalue_line("markers", "rotating(n, grid): of its grid, each n-th case is tried")
    config.addinivalue_line(
        "markers", "needs_blas(threads): of a library; threads: that can be limited"
    )
    if config.option.rotation is None:
        config.option.rotation = _commit()
    for name, value in (THOROUGH if config.option.thorough else FEW).items():
        if config.getoption(name) is None:
            setattr(config.option, name, value)
    _pretend(config)


def _pretend(config: pytest.Config) -> None:
    """Be the machine that is asked for, or whose turn it is, before any test is imported."""
    name = config.option.machine
    if name is None:
        in_turn = config.option.thorough and config.option.rotation != "all"
        name = machine_in_turn(config.option.rotation) if in_turn else "real"
    try:
        missing = missing_feature(name)
    except KeyError:
        raise pytest.UsageError(
            f"Expected --machine to be of {', '.join(MACHINES)}, found {name}"
        ) from None
    if missing:
        raise pytest.UsageError(f"The processor here has no {missing}, which {name} needs")
    config.option.machine = name
    pretend(name)


def _commit() -> str:
    """A number that the commit at hand has, 0 where there is none."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "0"
    return str(int(told.strip()[:8], 16))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say which of what takes turns was tried."""
    options = config.option
    terminalreporter.write_line(f"--rotation {options.rotation} --machine {options.machine}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of rotating grids whose turn it is not."""
    if config.option.rotation == "all" or any("[" in each for each in config.args):
        return
    grids: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("rotating")
        share = 0 if mark is None else mark.args[0]
        name = item.nodeid.partition("[")[0] if mark is None or len(mark.args) < 2 else mark.args[1]
        grids.setdefault((name, share), []).append(item)
    left = set()
    for (_, asked), grid in grids.items():
        share = _share(grid, asked, config)
        grid.sort(key=lambda item: crc32(item.nodeid.encode()))
        turn = int(config.option.rotation) % share
        left.update(id(item) for place, item in enumerate(grid) if place % share != turn)
    gone = [item for item in items if id(item) in left]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if id(item) not in left]


def _share(grid: list[pytest.Item], asked: int, config: pytest.Config) -> int:
    """Return of how many cases of a grid one is tried.

    asked  what the marker `rotating` says; 0 without it
    """
    is_golden = "update_golden" in getattr(grid[0], "fixturenames", ())
    if asked == 1 or (not asked and is_golden):
        return 1
    usual = asked or (SHARE if len(grid) >= LARGE else 1)
    is_of_project = grid[0].path.parent == Path(__file__).parent
    if config.option.update_golden or is_golden or is_of_project or len(grid) < SMALL:
        return usual
    if any(".py" in argument for argument in config.args):
        return usual
    return 2 * usual if asked else SHARE * usual


def pytest_runtest_setup(item: pytest.Item) -> None:
    _skip_without_blas(item)
    flags = machine_named(item.config.option.machine).flags or ()
    KERNELS.compile_with(flags if _with_user_flags(item) else (*QUICK, *flags))


def _skip_without_blas(item: pytest.Item) -> None:
    mark = item.get_closest_marker("needs_blas")
    if mark is not None and not blas.available("float64", 1 if mark.args else None):
        pytest.skip("there is no library with the BLAS, or not for so many threads")


def _with_user_flags(item: pytest.Item) -> bool:
    """Whether a test asks for the flags that users get, or is one of those that have them with
    --user-flags: the same ones each time."""
    each = item.config.getoption("--user-flags")
    chosen = each and crc32(item.nodeid.encode()) % each == 0
    return bool(chosen or item.get_closest_marker("user_flags"))


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what lives as long as the run, and look less often."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let tests that collect garbage leave alone what those of other files have left in caches."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect(1)
        gc.freeze()


@pytest.fixture
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether longer searches are asked for."""
    return bool(request.config.getoption("--thorough"))


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written instead of compared."""
    return bool(request.config.getoption("--update-golden"))
