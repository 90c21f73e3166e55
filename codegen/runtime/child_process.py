"""A Python process that answers questions over its pipes: text and arrays go over as bytes.

    child = ChildProcess("package.module:answer")
    told, arrays = child.ask({"do": "run"}, [np.ones(3)])

It is started when it is first asked, ends with this process or when it is closed, and is started
anew after that. A process that was forked off this one starts its own. Messages:

    8 bytes: length of a head; the head in JSON, with the types and shapes of arrays; their elements
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import IO, Any

import numpy as np

Array = np.ndarray[Any, Any]
Answer = Callable[[Mapping[str, Any], Sequence[Array]], tuple[Mapping[str, Any], Sequence[Any]]]
ENDING = 0.2
"""Seconds that a process that closed its pipes may take to end."""
KINDS = "biufcSUV"
"""Kinds of types that are sent: none of them holds objects."""
PART = 1 << 24
"""Bytes of a head that are read at once."""
SECONDS = 2.0
"""After which a process looks whether the one that started it is there."""
START = "import sys; sys.path[:0] = {path!r}; from {own} import serve; serve({target!r}, {parent})"


class ChildEndedError(RuntimeError):
    """The process has ended before it answered."""


class ChildLateError(ChildEndedError):
    """The process did not answer in time, and was ended."""


class ChildRestartedError(ChildEndedError):
    """Another process was started than the one that is asked."""


class ChildProcess:
    """A process that answers by a function, `module:name`, of a head and arrays.

    started  how often it was started: what it remembers is lost each time
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.started = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """Return the number of the process, None while there is none."""
        ours = self._process is not None and self._owner == os.getpid()
        return self._process.pid if ours and self._process is not None else None

    def ask(
        self,
        head: Mapping[str, Any],
        arrays: Sequence[Any] = (),
        started: int | None = None,
        seconds: float | None = None,
    ) -> tuple[dict[str, Any], list[Array]]:
        """Send a message and wait for the answer.

        started  of the process that the message is for
        seconds  after which it is ended if it has not answered, None for never

        Raises ChildEndedError where the process is not there any more, ChildLateError where it did
        not answer in time, ChildRestartedError where it is not the one that is asked.
        """
        self._leave_to_parent()
        with self._lock:
            process = self._running()
            if started is not None and started != self.started:
                raise ChildRestartedError("the process was started anew")
            assert process.stdin is not None and process.stdout is not None
            late = threading.Event()
            alarm = None if seconds is None else _alarm(process, late, seconds)
            try:
                send(process.stdin, head, arrays)
                return receive(process.stdout)
            except (OSError, EOFError, ValueError) as error:
                status = self._end(ENDING)
                if late.is_set():
                    raise ChildLateError(f"no answer within {seconds:.3g} s") from error
                raise ChildEndedError(f"the process has ended {status}: {error}") from error
            except BaseException:  # an interrupt: what is in the pipes belongs to no later question
                self._end()
                raise
            finally:
                if alarm is not None:
                    alarm.cancel()

    def start(self) -> int:
        """Start the process if needed; return how often it was started."""
        self._leave_to_parent()
        with self._lock:
            self._running()
            return self.started

    def close(self) -> None:
        """End the process."""
        self._leave_to_parent()
        with self._lock:
            self._end()

    def _leave_to_parent(self) -> None:
        """Release the parent's handles in a forked process."""
        if self._process is not None and self._owner != os.getpid():
            self._process.returncode = 0  # it is no child of this process
            self._process, self._lock = None, threading.Lock()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            module = __name__
            text = START.format(path=sys.path, own=module, target=self.target, parent=os.getpid())
            self._process = subprocess.Popen(
                [sys.executable, "-c", text],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,  # nothing is left in a buffer that a forked process would write again
            )
            self._owner = os.getpid()
            self.started += 1
            atexit.register(_close, weakref.ref(self))
        return self._process

    def _end(self, seconds: float = 0.0) -> str:
        """End the process; how it ended, if it had before, or does within so many seconds."""
        process, self._process = self._process, None
        status = ""
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=seconds)
                status = f"by signal {-code}" if code < 0 else f"with status {code}"
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            process.wait()
        return status


def _alarm(
    process: subprocess.Popen[bytes], late: threading.Event, seconds: float
) -> threading.Timer:
    """Return a timer that is running, and ends the process after so many seconds."""

    def end() -> None:
        late.set()
        process.kill()

    alarm = threading.Timer(seconds, end)
    alarm.daemon = True
    alarm.start()
    return alarm


def _close(child: weakref.ref[ChildProcess]) -> None:
    process = child()
    if process is not None:
        process.close()


# ---------------------------------------------------------------- messages


def send(pipe: IO[bytes], head: Mapping[str, Any], arrays: Sequence[Any]) -> None:
    """Write a message."""
    arrays_ = [np.asarray(array, order="C") for array in arrays]
    message = {**head, "arrays": [[array.dtype.str, array.shape] for array in arrays_]}
    text = json.dumps(message).encode()
    _write(pipe, memoryview(len(text).to_bytes(8, "little") + text))
    for array in arrays_:
        if array.size:
            _write(pipe, _bytes_of(array))
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[dict[str, Any], list[Array]]:
    """Read a message.

    Raises EOFError where the other side has closed the pipe, ValueError for what is no message: the
    pipe is of no use then.
    """
    length = int.from_bytes(_read(pipe, 8), "little")
    try:
        head = json.loads(_read(pipe, length))
        descriptions = head.pop("arrays")
    except (RecursionError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no head of a message: {error}") from error
    if not isinstance(descriptions, list):
        raise ValueError("no list of arrays in a message")
    return head, [_read_array(pipe, description) for description in descriptions]


def _read_array(pipe: IO[bytes], description: Any) -> Array:
    """Read an array of a type and a shape. Raises ValueError for what is none of numbers."""
    try:
        name, shape = description
        dtype = np.dtype(name) if isinstance(name, str) else None
        if dtype is None or dtype.kind not in KINDS or dtype.subdtype or dtype.names:
            raise ValueError(f"no type of numbers in a message: {name!r:.40}")
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError(f"no shape in a message: {shape!r:.40}")
        array = np.empty(tuple(shape), dtype)
    except (TypeError, SyntaxError, OverflowError, MemoryError) as error:
        raise ValueError(f"no array in a message: {error}") from error
    if array.size:
        _read_into(pipe, _bytes_of(array))
    return array


def _bytes_of(array: Any) -> memoryview:
    """Return the elements of an array that lies together, in its memory."""
    return memoryview(array.reshape(-1).view(np.uint8))


def _write(pipe: IO[bytes], content: memoryview) -> None:
    count = 0
    while count < len(content):
        count += pipe.write(content[count:])


def _read(pipe: IO[bytes], length: int) -> bytes:
    """Read `length` bytes, in memory that grows as they arrive: a length may be wrong."""
    content = bytearray()
    while len(content) < length:
        part = bytearray(min(length - len(content), PART))
        _read_into(pipe, memoryview(part))
        content += part
    return bytes(content)


def _read_into(pipe: Any, space: memoryview) -> None:
    filled = 0
    while filled < len(space):
        count = pipe.readinto(space[filled:])
        if not count:
            raise EOFError("its pipe is closed")
        filled += count


# ---------------------------------------------------------------- the other side


def serve(target: str, parent: int) -> None:
    """Answer messages of the standard input until it is closed, or the process that asks is gone.

    What is printed meanwhile goes to the standard error; interrupts are for the one that asks.
    """
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    module, _, name = target.partition(":")
    answer: Answer = getattr(import_module(module), name)
    while True:
        try:
            head, arrays = receive(sys.stdin.buffer)
        except (EOFError, ValueError):
            return
        try:
            reply, results = answer(head, arrays)
        except Exception as error:
            reply, results = {"error": f"{type(error).__name__}: {error}"}, ()
        try:
            send(out, reply, results)
        except OSError:
            return


def _watch(parent: int) -> None:
    """End this process when the one that started it is gone: others may hold its pipe open."""
    import time

    while os.getppid() == parent:
        time.sleep(SECONDS)
    os._exit(0)
