"""Inputs that others may have written, drawn: `python -m tests.readers.fuzz_readers N --seed S`.

Of each it has to hold that nothing of it is run, and that what is wrong is told as an error of
this package, with the file's name. The mark that payloads would make must not be there, and no
text that Python compiles may have their word in it.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import taco_py as tp
from tests.readers.mutations import WORD, Mutator
from tests.readers.readers import READERS, Reader

SECONDS = 30
"""After which an input has taken too long."""

EVENTS = (
    "compile", "os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "pickle.find_class",
)  # fmt: skip


UNUSED = ("<unknown>", "<a call's short way>")
"""What is parsed alone, and what is compiled to be looked at: only what passes is run."""


class Watch:
    """What this process is about to run."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.on = False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on or event not in EVENTS:
            return
        if event == "compile" and args[1] in UNUSED:
            return
        if event == "pickle.find_class" or WORD in repr(args):
            self.seen.append(f"{event} {args!r:.300}")


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError for what takes longer."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Fuzzer:
    """Draws inputs, reads them, and keeps those that a reader took in a wrong way."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.mark = folder / WORD
        self.mutator = Mutator(seed, str(self.mark))
        self.watch = Watch()
        self.samples: dict[str, dict[str, bytes]] = {}
        self.checked: set[tuple[str, str]] = set()
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.told = ""

    def begin(self, reader: Reader) -> None:
        """Make the files that a reader begins with, which it reads as they are."""
        if reader.name not in self.samples:
            self.samples[reader.name] = dict(reader.samples(self.folder))

    def check_sample(self, reader: Reader, name: str) -> None:
        """See that a reader reads the file that is changed next as it is."""
        if (reader.name, name) in self.checked:
            return
        self.checked.add((reader.name, name))
        before = self.counts["read"]
        failure = self.failure(reader, self.samples[reader.name][name])
        assert self.counts["read"] > before, f"{reader.name}: {name}: {failure or self.told}"

    def one(self, reader: Reader) -> None:
        """Read one changed file."""
        self.begin(reader)
        name = self.mutator.draw.choice([*self.samples[reader.name]])
        self.check_sample(reader, name)
        content = reader.change(self.mutator, self.samples[reader.name][name])
        failure = self.failure(reader, content)
        self.counts[reader.name] += 1
        if failure:
            self.failures.append(f"{reader.name} ({name}): {failure}")
            (self.folder / f"failure {len(self.failures)}{reader.ending}").write_bytes(content)

    def failure(self, reader: Reader, content: bytes) -> str:
        """What was wrong with how a reader took a file, "" where nothing was."""
        path = self.folder / f"input{reader.ending}"
        path.write_bytes(content)
        self.watch.on = True
        try:
            with warnings.catch_warnings(), at_most(SECONDS):
                warnings.simplefilter("ignore")
                reader.read(path)
            self.counts["read"] += 1
            found = ""
        except tp.InternalError as error:
            found = f"InternalError: {error}"
        except tp.TacoError as error:
            told = "\n".join((str(error), *getattr(error, "__notes__", ())))
            self.told = told
            found = "" if path.name in told or not reader.named else f"no name of the file: {told}"
        except Exception:
            found = "".join(traceback.format_exc().splitlines(keepends=True)[-7:])
        finally:
            self.watch.on = False
        if self.mark.exists():
            self.mark.unlink()
            found = f"THE MARK IS THERE {found}"
        if self.watch.seen:
            found = f"RUN: {self.watch.seen.pop()} {found}"
            self.watch.seen.clear()
        return found


def rounds(count: int) -> Iterator[Reader]:
    """The readers in turn, slow ones less often."""
    done = turn = 0
    while done < count:
        turn += 1
        for reader in READERS:
            if turn % reader.slow == 0 and done < count:
                done += 1
                yield reader


def main() -> int:
    """Read inputs, tell what failed, and how many there were of each reader."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", default="")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--keep", default="")
    options = parser.parse_args()
    most = 6 << 30
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    folder = Path(options.keep or tempfile.mkdtemp(prefix="taco-readers-"))
    folder.mkdir(exist_ok=True)
    fuzzer, begin = Fuzzer(folder, options.seed), time.perf_counter()
    names = [each for each in READERS if options.reader in ("", each.name)]
    drawn = rounds(options.count) if len(names) > 1 else (names[0] for _ in range(options.count))
    for number, reader in enumerate(drawn, 1):
        fuzzer.one(reader)
        seconds = time.perf_counter() - begin
        if number % 5000 == 0:
            print(f"{number} in {seconds:.0f} s, {len(fuzzer.failures)} failures", flush=True)
        if seconds > options.seconds:
            break
    for each, times in Counter(fuzzer.failures).most_common(40):
        print(f"--- {times} times\n{each}")
    print(dict(fuzzer.counts), f"{len(fuzzer.failures)} failures in {folder}")
    return bool(fuzzer.failures)


if __name__ == "__main__":
    sys.exit(main())
