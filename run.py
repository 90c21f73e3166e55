#!/usr/bin/env python3
"""Run the demo or the tests, or build the documentation, setting up what they need first.

    python3 run.py demo [file.mtx|file.tns]     the main job, checked and timed beside scipy
    python3 run.py test [pytest arguments]      the tests, a process a core
    python3 run.py docs [mkdocs arguments]      the documentation, as a site in `site/`
    python3 run.py python [arguments]           the environment's interpreter, with the linters

Where this interpreter already has every package that is needed, it is used as it is. Otherwise a
virtual environment is made in `.venv` beside this file and the packages are installed there;
nothing is installed anywhere else. The second time the environment is there already and costs
nothing.

Standard library only, and no syntax newer than Python 3.7, so that an old Python gets a clear
message.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
STAMP = ENVIRONMENT / "installed.txt"
OLDEST = (3, 11)
EXTRA = {"demo": "", "test": "test", "docs": "docs", "python": "dev"}
MODULE = {
    "demo": ["-m", "taco_py", "demo"],
    "test": ["-m", "pytest", "--numprocesses=auto", "--dist=worksteal"],
    "docs": ["-m", "mkdocs", "build", "--strict", "--quiet"],
    "python": [],
}
COMPILERS = ("cc", "gcc", "clang")


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in EXTRA:
        print(__doc__)
        return 2
    command, rest = arguments[0], arguments[1:]
    if sys.version_info < OLDEST:
        return with_newer_python(arguments)
    rest = [str(Path(word).resolve()) if Path(word).is_file() else word for word in rest]
    interpreter = sys.executable if is_complete(EXTRA[command]) else environment(EXTRA[command])
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    words = [interpreter, *MODULE[command], *rest]
    return subprocess.call(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": path})


def with_newer_python(arguments: list[str]) -> int:
    """Hand over to a newer interpreter if the machine has one."""
    for minor in range(19, OLDEST[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer:
            return subprocess.call([newer, str(ROOT / "run.py"), *arguments])
    sys.exit(
        "Expected Python {}.{} or newer, found {}".format(*OLDEST, sys.version.split()[0])
        + "\nhint: install one and start this file with it"
    )


def requirements(extra: str) -> list[str]:
    """The packages that pyproject.toml asks for, with those of one extra."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    more = project["optional-dependencies"][extra] if extra else []
    return [*project["dependencies"], *more]


def is_complete(extra: str) -> bool:
    """Whether this interpreter has every package, new enough, and so needs no network."""
    return all(map(is_installed, requirements(extra)))


def is_installed(requirement: str) -> bool:
    """`name>=1.2`, as all of our requirements are written, against what is installed."""
    from importlib.metadata import PackageNotFoundError, version

    match = re.match(r"([\w.-]+)(?:>=([\d.]+))?", requirement)
    if match is None:
        return False
    try:
        found = version(match[1])
    except PackageNotFoundError:
        return False
    return release(found) >= release(match[2] or "0")


def release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def environment(extra: str) -> str:
    """The interpreter of `.venv`, made and filled if it is not there or is out of date."""
    folder = "Scripts" if os.name == "nt" else "bin"
    interpreter = str(ENVIRONMENT / folder / "python")
    extras = ",".join(filter(None, [extra, "" if has_compiler() else "zig"]))
    content = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    stamps = STAMP.read_text().splitlines() if STAMP.exists() else []
    if f"{content} {extras}" in stamps:
        return interpreter
    if content not in {stamp.split(" ")[0] for stamp in stamps}:
        stamps = []
    print(f"Setting up {ENVIRONMENT.relative_to(ROOT)} (once) ...", file=sys.stderr, flush=True)
    install(interpreter, f"{ROOT}[{extras}]" if extras else str(ROOT))
    STAMP.write_text("\n".join([*stamps, f"{content} {extras}"]) + "\n")
    return interpreter


def has_compiler() -> bool:
    return bool(os.environ.get("CC")) or any(map(shutil.which, COMPILERS))


def install(interpreter: str, package: str) -> None:
    """Make the environment and install into it.

    Debian leaves out `ensurepip` unless python3-venv is installed; pip can then install from
    outside.
    """
    pip = [interpreter, "-m", "pip"]
    venv = [sys.executable, "-m", "venv"]
    if not works([*pip, "--version"]) and not works([*venv, "--clear", str(ENVIRONMENT)]):
        outside = [sys.executable, "-m", "pip"]
        if not works([*outside, "--version"]):
            sys.exit(
                "Expected the venv module of Python with ensurepip, or pip; found neither"
                "\nhint: on Debian and Ubuntu, apt-get install python3-venv"
            )
        check([*venv, "--clear", "--without-pip", str(ENVIRONMENT)])
        pip = [*outside, "--python", interpreter]
    check([*pip, "install", "--quiet", "--disable-pip-version-check", "--editable", package])


def works(words: list[str]) -> bool:
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def check(words: list[str]) -> None:
    """Run a step of the set-up; its own output says what went wrong."""
    status = subprocess.call(words)
    if status:
        sys.exit(f"The set-up stopped: {' '.join(words)} exited with status {status}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
