"""Each reader of what others may have written: files to begin with, changes, and how it is read.

A reader does with what it has read what a user does: it loads and calls, or evaluates.
"""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from codegen.records import dataclass
from codegen.runtime.child_process import receive, send
from taco_py.compiler.cost.calibrated import COEFFICIENTS, seconds_of, with_factors
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.data.kept_calibration import UNREADABLE, checksum_of, parse_calibration
from taco_py.graph.backends.jsonvm_worker import answer
from taco_py.graph.plain_graphs import plain_graph
from taco_py.running.plan_texts.fitted_plan import parsed_plan
from taco_py.tuning.bench.call_space import CallSpace, space_of
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.networks.form_plans import plan_prices
from taco_py.tuning.networks.network import ARCHITECTURES, Network
from tests.prices.test_forest import drawn_model
from tests.readers.graph_samples import saved_graphs
from tests.readers.mutations import Mutator, deep

rng = np.random.default_rng(7)
A = sp.csr_array(sp.random_array((6, 5), density=0.4, format="csr", rng=rng))
x = rng.random(5)
TEXT = "y[i] = A[i,j] * x[j]"
PLAN = """A: ds/float64/int32 of 6 by 5, 12 entries
x: d/float64 of 5, 5 entries
y[i] = sum(j, A[i,j] * x[j])    → d/float64 of 6, 6 entries    by loops(i,j)
    operands A: ds/float64/int32, x: d/float64
    result d/float64
    sizes j=A.1, i=A.0
sizes i=6, j=5
return y"""

Samples = Callable[[Path], Mapping[str, bytes]]
Change = Callable[[Mutator, bytes], bytes]


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader.

    ending   of its files
    samples  files to begin with, by names
    change   a mutation of one
    read     reads a file, and uses what it read
    named    whether errors have the file's name
    slow     how many times as long as others it takes: it is drawn so much less often
    needs    libraries that may be missing
    """

    name: str
    ending: str
    samples: Samples
    change: Change
    read: Callable[[Path], Any]
    named: bool = True
    slow: int = 1
    needs: tuple[str, ...] = ()


# ---------------------------------------------------------------- graphs

GRAPHS = saved_graphs()


def graph_files(folder: Path) -> dict[str, bytes]:
    found = {}
    for name, graph in GRAPHS.items():
        graph.save(folder / "graph.json")
        found[name] = (folder / "graph.json").read_bytes()
    return found


def load_graph(path: Path) -> Any:
    return tp.graph.load(path)


def call_graph(path: Path) -> Any:
    """Load a graph, and call it with what it may have been traced for."""
    graph = tp.graph.load(path)
    names = [(each.name, str(each.fact)) for each in graph.operators.inputs]
    for other in GRAPHS.values():
        own = [(each.name, str(each.fact)) for each in other.operators.inputs]
        if names == own:
            return graph(*other.operands)
    return None


def messages(folder: Path) -> dict[str, bytes]:
    """What the process of `jsonvm` is sent: a region, and arrays to compute it of."""
    found = {}
    graph = GRAPHS["softmax"]
    for name, each in (("operators", graph.operators), ("primitives", graph.primitives)):
        out = io.BytesIO()
        send(out, {"do": "compile", "region": 1, "graph": plain_graph(each)}, ())
        send(out, {"do": "run", "region": 1}, [np.ones((4, 5)), np.float64(2.0)])
        found[name] = out.getvalue()
    return found


def change_message(mutator: Mutator, content: bytes) -> bytes:
    """The JSON of a message, with the length that it has then; or its bytes."""
    if mutator.draw.random() < 0.2:
        return mutator.binary(content)
    parts, place = [], 0
    while place < len(content):
        length = int.from_bytes(content[place : place + 8], "little")
        head = json.loads(content[place + 8 : place + 8 + length])
        sizes = [int(np.prod(s)) * np.dtype(t).itemsize for t, s in head["arrays"]]
        end = place + 8 + length + sum(sizes)
        parts.append((head, content[place + 8 + length : end]))
        place = end
    chosen, out = mutator.draw.randrange(len(parts)), b""
    for number, (head, arrays) in enumerate(parts):
        text = json.dumps(mutator.tree(head) if number == chosen else head)
        text = deep(text)
        out += len(text).to_bytes(8, "little") + text.encode() + arrays
    return out


def answer_messages(path: Path) -> None:
    """What the process does with messages: an answer with an error is what the host is told."""
    pipe = io.BytesIO(path.read_bytes())
    while True:
        try:
            head, arrays = receive(pipe)
        except (EOFError, ValueError):
            return  # its pipe is of no use any more: the process ends, the host is told
        try:
            answer(head, arrays)
        except Exception as error:
            if isinstance(error, tp.InternalError):
                raise
            continue


# ---------------------------------------------------------------- plans and stores


def evaluate_commands(path: Path) -> Any:
    text = path.read_text(encoding="utf-8", errors="replace")
    return tp.evaluate(TEXT, A=A, x=x, schedule=text)


def commands(folder: Path) -> dict[str, bytes]:
    texts = ("reorder(j,i)", "parallelize(i)", "split(i,i0,i1,4), reorder(i0,i1,j)")
    return {each: each.encode() for each in texts}


def parse_plan(path: Path) -> Any:
    return parsed_plan(path.read_text(encoding="utf-8", errors="replace"))


def store_of(folder: Path) -> bytes:
    path = folder / "store.sqlite"
    path.unlink(missing_ok=True)
    with tp.TuningStore(path) as store:
        key = store.key(TEXT, A=A, x=x)
        store.add(tp.TuningRecord(key, PLAN, "x", seconds=1e-9, spread=0.1, trials=5))
        store.journal.add([tp.tuning.task(TEXT, OPERANDS).job("c@pi")])
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return path.read_bytes()


OPERANDS = {
    "A": {"shape": [6, 5], "format": "csr_array", "density": 0.4}, "x": {"shape": [5]},
}  # fmt: skip


def change_store(mutator: Mutator, content: bytes) -> bytes:
    """The rows of a store, or its bytes."""
    if mutator.draw.random() < 0.15:
        return mutator.binary(content)
    connection = sqlite3.connect(":memory:")
    connection.deserialize(content)
    connection.execute("PRAGMA foreign_keys = OFF")
    tables = [row[0] for row in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table'")]  # fmt: skip
    for _ in range(mutator.draw.choice((1, 2))):
        table = mutator.draw.choice(tables)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        if not rows:
            continue
        place = mutator.draw.randrange(len(columns))
        old = rows[0][place]
        new: Any = mutator.leaf(old)
        if isinstance(old, str) and old[:1] in "[{" and mutator.draw.random() < 0.7:
            new = mutator.json(old.encode()).decode("utf-8", "replace")
        elif isinstance(old, str) and "\n" in old and mutator.draw.random() < 0.8:
            new = mutator.written(old.encode()).decode("utf-8", "replace")
        if not isinstance(new, str | int | float | type(None)) or abs(_whole(new)) >= 2**63:
            new = str(new)
        try:
            connection.execute(f"UPDATE {table} SET {columns[place]} = ?", (new,))
        except (sqlite3.Error, UnicodeError):
            continue
    connection.commit()
    changed = connection.serialize()
    connection.close()
    return changed


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def use_store(path: Path) -> None:
    """Read all of a store, and evaluate a call that asks for its plan."""
    with tp.TuningStore(path) as store:
        [*store.records(all=True)]
        store.best(TEXT, A=A, x=x)
        [*store.journal.jobs()]
        tp.tuning.write_batch(store, path.with_suffix(".jobs"), "c@pi")
    path.with_suffix(".jobs").unlink(missing_ok=True)
    with tp.tuning_store(path):
        _use(lambda: tp.evaluate(TEXT, A=A, x=x, schedule="tuned"))


def logs(folder: Path) -> dict[str, bytes]:
    (folder / "s.sqlite").write_bytes(store_of(folder))
    with tp.TuningStore(folder / "s.sqlite") as store:
        store.export(folder / "log.jsonl")
    return {"log": (folder / "log.jsonl").read_bytes()}


def load_log(path: Path) -> None:
    with tp.TuningStore() as store:
        store.load(path)
        store.best(TEXT, A=A, x=x)


def batches(folder: Path) -> dict[str, bytes]:
    job = tp.tuning.task(TEXT, OPERANDS, trials=1).job("c@pi")
    fields = {e: getattr(job, e) for e in ("hash", "attempts", "workload", "options")}
    outcome = {"hash": job.hash, "attempts": 0, "error": "NORMAL: 1 trials", "records": [],
               "seconds": 0.1, "worker": "here:1"}  # fmt: skip
    record = json.loads(logs(folder)["log"])
    lines = {"jobs": fields, "outcome": outcome, "record": {**outcome, "records": [record]}}
    return {name: json.dumps(each).encode() + b"\n" for name, each in lines.items()}


def jobs(folder: Path) -> dict[str, bytes]:
    return {"jobs": batches(folder)["jobs"]}


def outcomes(folder: Path) -> dict[str, bytes]:
    return {name: each for name, each in batches(folder).items() if name != "jobs"}


def read_batch(path: Path) -> None:
    with tp.TuningStore() as store:
        store.journal.add([tp.tuning.task(TEXT, OPERANDS, trials=1).job("c@pi")])
        tp.tuning.read_batch(store, path)


def run_batch(path: Path) -> None:
    """Do jobs of a file, with a tuner that evaluates what it is given."""
    log = path.with_suffix(".out")
    log.unlink(missing_ok=True)

    def tune(task: Any, operands: Any, kind: str, store: Any) -> None:
        tp.evaluate(task.text, operands)

    try:
        tp.tuning.run_batch(path, log, tune)
    finally:
        log.unlink(missing_ok=True)


TASKS = b"""[options]
trials = 5

[[task]]
name = "spmv"
text = "y[i] = A[i,j] * x[j]"
operands.A = { shape = [6, 5], format = "csr_array", density = 0.4, rows = "power" }
operands.x = { shape = [5], dtype = "float64" }
mutate = [ { size = "A.0", multiples = [1, 2] }, { format = "A", values = ["csr_array", "ds"] } ]

[[task]]
text = "B[i,k] = A[i,j] * A[j,k]"
operands.A = { shape = [4, 4], format = "ds", nnz = 6, seed = 3 }
options.threads = 1
"""


def read_tasks(path: Path) -> None:
    for task in tp.tuning.read_tasks(path)[:3]:
        small = all(np.prod(e.shape) < 10_000 for e in task.described.values())
        task.job("c")
        if small:
            _use(lambda task=task: tp.evaluate(task.text, task.make_operands()))


def _use(act: Callable[[], Any]) -> None:
    """Use what was read: it may not fit together, which is no fault of the file's reader."""
    try:
        act()
    except tp.InternalError:
        raise
    except tp.TacoError:
        return


# ---------------------------------------------------------------- tensors


def written(*names: str) -> Samples:
    """Files that `tp.write` makes of tensors."""

    def samples(folder: Path) -> dict[str, bytes]:
        found = {}
        tensors = {
            "matrix": A, "csc": sp.csc_array(A),
            "cube": tp.tensor(rng.random((2, 3, 2))).to_format("sss"),
            "whole": sp.csr_array(np.arange(6, dtype=np.int64).reshape(2, 3)), "dense": np.eye(3),
        }  # fmt: skip
        for name in names:
            for what, tensor in tensors.items():
                try:
                    tp.write(tensor, folder / name)
                except tp.TacoError:
                    continue
                found[f"{name} {what}"] = (folder / name).read_bytes()
        return found

    return samples


def read_tensor(path: Path) -> Any:
    tensor = tp.read(path)
    if tensor.ndim == 2 and max(tensor.shape) < 1000:
        _use(lambda: tp.evaluate("y[i] = A[i,j] * x[j]", A=tensor, x=np.ones(tensor.shape[1])))
    return tensor


class _Pickled:
    """Makes a file where it is unpickled."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return open, (self.mark, "w")


def change_arrays(mutator: Mutator, content: bytes) -> bytes:
    """The arrays of an archive: other types, shapes, numbers and objects; or its bytes."""
    if mutator.draw.random() < 0.3:
        return mutator.binary(content)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        parts: dict[str, Any] = dict(archive)
    for _ in range(mutator.draw.choice((1, 1, 2))):
        name = mutator.draw.choice([*parts])
        parts[name] = change_array(mutator, parts[name])
        if mutator.draw.random() < 0.1:
            del parts[name]
        if not parts:
            break
    out = io.BytesIO()
    np.savez(out, allow_pickle=True, **parts)
    return out.getvalue()


def change_array(mutator: Mutator, array: Any) -> Any:
    """An array of another type, shape, or of other numbers."""
    kind, array = mutator.draw.randrange(7), np.array(array)
    with np.errstate(all="ignore"):
        if kind == 0:
            return np.array([_Pickled(mutator.payloads[17])], object)
        if kind == 1:
            return np.array(mutator.text())
        if kind == 2:
            return np.asarray(array.reshape(-1)[: array.size // 2])
        if kind == 3:
            return array[None]
        if kind == 4:
            return np.array(mutator.number())
        if kind == 5 or not array.size or array.dtype.kind not in "iuf":
            kinds = ("c8", "i1", "f4", "?") if array.dtype.kind in "biufc" else ("S3", "U2")
            return array.astype(mutator.draw.choice(kinds))
        flat = array.reshape(-1).copy()
        value = mutator.draw.choice((-1, 7, 2**31 - 1, 100))
        flat[mutator.draw.randrange(flat.size)] = np.array(value).astype(flat.dtype)
        return flat.reshape(array.shape)


def hdf5_files(folder: Path) -> dict[str, bytes]:
    return written("m.h5", "m.h5ad", "m.bsp.h5")(folder)


def change_hdf5(mutator: Mutator, content: bytes) -> bytes:
    """Attributes and datasets of a file of HDF5; or its bytes."""
    import h5py

    if mutator.draw.random() < 0.3:
        return mutator.binary(content)
    buffer = io.BytesIO(content)
    with h5py.File(buffer, "r+") as file:
        places: list[Any] = [file]
        file.visititems(lambda name, node: places.append(node))
        for _ in range(mutator.draw.choice((1, 2))):
            node = mutator.draw.choice(places)
            if hasattr(node, "attrs") and len(node.attrs) and mutator.draw.random() < 0.6:
                key = mutator.draw.choice([*node.attrs])
                old = node.attrs[key]
                new: Any = mutator.text()
                if isinstance(old, str) and old[:1] == "{":
                    new = mutator.json(old.encode()).decode("utf-8", "replace")
                elif not isinstance(old, str):
                    new = change_array(mutator, old)
                _put(node.attrs, key, new)
            elif isinstance(node, h5py.Dataset) and node.name is not None:
                name, made = node.name, change_array(mutator, node[()])
                if made.dtype.hasobject or made.dtype.kind in "UM":
                    made = np.zeros(2, "S4")
                del file[name]
                _put(file, name, made)
    return buffer.getvalue()


def _put(holder: Any, key: str, value: Any) -> None:
    """Set an item where HDF5 has such."""
    try:
        holder[key] = value
    except (TypeError, ValueError, KeyError, OSError, UnicodeError, RuntimeError):
        return


def change_parquet(mutator: Mutator, content: bytes) -> bytes:
    """Columns, their names and the note of a file of Parquet; or its bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if mutator.draw.random() < 0.3:
        return mutator.binary(content)
    table = pq.read_table(io.BytesIO(content))
    names = [*table.column_names]
    columns = {name: table[name].to_numpy() for name in names}
    note = dict(table.schema.metadata or {})
    kind, name = mutator.draw.randrange(3), mutator.draw.choice(names)
    if kind == 0:
        note[b"tacopy"] = mutator.json(note.get(b"tacopy", b"{}"))
    elif kind == 1:
        columns[mutator.text()] = columns.pop(name)
    else:
        made = change_array(mutator, columns[name])
        count = len(columns[name])
        columns[name] = np.resize(made, count) if not made.dtype.hasobject else np.full(count, "a")
    out = io.BytesIO()
    try:
        pq.write_table(pa.table(columns).replace_schema_metadata(note), out)
    except (pa.ArrowException, ValueError, UnicodeError):
        return mutator.binary(content)
    return out.getvalue()


def rutherford_boeing(folder: Path) -> dict[str, bytes]:
    from scipy.io import hb_write

    path = folder / "m.rua"
    found = {}
    hb_write(path, sp.csc_matrix(A + sp.random_array((6, 5), density=0.2, rng=rng)))
    found["real"] = path.read_bytes()
    found |= written("m.rb")(folder)
    return found


# ---------------------------------------------------------------- notes of the cache


def notes(folder: Path) -> dict[str, bytes]:
    """What a kept short way says."""
    text = (
        "def call(a0, a1):\n    try:\n        a0_0, a0_1, = a0.shape\n"
        "        if a0_0 != 3 or not strided(a1, 0, True):\n            return None\n"
        "        t0 = make0((a0_0, ), dtype0)\n        return finish(t0)\n"
        "    except (TypeError, ValueError):\n        return None\n"
    )
    more = {"finish": ["taco_py.data.tensors.hand_out:handed_out", {"kind": "csr_array"}]}
    kept = [text, [], [], {"a0_dtype": "float64"}, more, None]
    routine = ["routine codegen.runtime.blas:library_product float64 ab,bc->ac"]
    multiplied = text.replace("finish(t0)", "kernel0(t0)")
    whole = [multiplied, routine, [[0, "zero", "float64"]], {}, {}, 1]
    return {"way": json.dumps(kept).encode(), "routine": json.dumps(whole).encode()}


def recall_note(path: Path) -> Any:
    """A note as a later process finds it, and a call of what it says."""
    from taco_py.data.kernels import KERNELS
    from taco_py.running.replay.find import recall

    key = ("fuzzed note",)
    KERNELS.write_note(repr(key), path.read_text(encoding="utf-8", errors="replace"))
    KERNELS.memo.clear()
    call = recall(key)
    if call is not None:
        _put_call(call)
    return None


def _put_call(call: Callable[..., Any]) -> None:
    """A call of a text that nobody wrote may fail in any way: it runs nothing else."""
    try:
        call(np.ones((3, 3)), np.ones(3))
    except Exception:
        return


# ---------------------------------------------------------------- calibrations


def calibrations(folder: Path) -> dict[str, bytes]:
    factors = {"iterations": 0.5, "merges": 1.0, "lines": 2.0}
    probes = [["some kernel", 1, 2e-6, 1e-6, 2e-6, "lines"]]
    words = dict.fromkeys(("machine", "version", "processor", "compiler", "day"), "some")
    fields = {**words, "factors": factors, "probes": probes}
    return {"calibration": json.dumps({**fields, "digest": checksum_of(fields)}).encode()}


def change_calibration(mutator: Mutator, content: bytes) -> bytes:
    """Its fields, with the digest that they have then; or its bytes."""
    if mutator.draw.random() < 0.2:
        return mutator.binary(content)
    fields = mutator.tree({k: v for k, v in json.loads(content).items() if k != "digest"})
    if not isinstance(fields, dict):
        return json.dumps(fields).encode()
    return json.dumps({**fields, "digest": checksum_of(fields)}).encode()


def use_calibration(path: Path) -> None:
    """Read a calibration, and compare two plans by it: what is none leaves prices as shipped."""
    try:
        factors = dict(parse_calibration(path.read_bytes(), "some").factors)
    except UNREADABLE:
        return
    costs = [seconds_of(with_factors(NOMINAL, factors), name) for name in COEFFICIENTS]
    assert all(0 < cost < 1 for cost in costs)


# ---------------------------------------------------------------- prices


def price_files(folder: Path) -> dict[str, bytes]:
    files = {}
    for kind, architecture in ARCHITECTURES.items():
        shapes = architecture.shapes()
        weights = {name: rng.random(shape).astype(np.float32) for name, shape in shapes.items()}
        Network(kind, weights).save(folder / "n.npz")
        files[kind] = (folder / "n.npz").read_bytes()
    drawn_model(1).save(folder / "m.npz")
    return {**files, "trees": (folder / "m.npz").read_bytes()}


@cache
def usual_call() -> CallSpace:
    return space_of(tunable(TEXT, {"A": A, "x": x}, {}))


def use_price(path: Path) -> Any:
    call = usual_call()
    return plan_prices(call.priced, tp.load_price(path)).of((call.prepared.plan,))


READERS: tuple[Reader, ...] = (
    Reader("graphs", ".json", graph_files, Mutator.json, load_graph),
    Reader("graphs called", ".json", graph_files, Mutator.json, call_graph, slow=40),
    Reader("messages of jsonvm", ".bin", messages, change_message, answer_messages),
    Reader("commands", ".txt", commands, Mutator.written, evaluate_commands, False, slow=4),
    Reader("plans", ".plan", lambda f: {"plan": PLAN.encode()}, Mutator.written, parse_plan, False),
    Reader("stores", ".sqlite", lambda f: {"store": store_of(f)}, change_store, use_store, slow=20),
    Reader("logs", ".jsonl", logs, Mutator.lines, load_log, slow=2),
    Reader("jobs", ".jsonl", jobs, Mutator.lines, run_batch, slow=2),
    Reader("outcomes", ".jsonl", outcomes, Mutator.lines, read_batch, slow=2),
    Reader("tasks", ".toml", lambda f: {"tasks": TASKS}, Mutator.written, read_tasks, slow=4),
    Reader("npz", ".npz", written("m.npz"), change_arrays, read_tensor, slow=2),
    Reader("hdf5", ".h5", hdf5_files, change_hdf5, read_tensor, True, 4, ("h5py",)),
    Reader(
        "binsparse", ".bsp.h5", written("m.bsp.h5"), change_hdf5, read_tensor, True, 4, ("h5py",)
    ),
    Reader(
        "parquet", ".parquet", written("m.parquet"), change_parquet, read_tensor, True, 2,
        ("pyarrow",),
    ),
    Reader("matrix market", ".mtx", written("m.mtx"), Mutator.written, read_tensor),
    Reader("frostt", ".tns", written("m.tns"), Mutator.written, read_tensor),
    Reader("taco", ".ttx", written("m.ttx"), Mutator.written, read_tensor),
    Reader("rutherford-boeing", ".rb", rutherford_boeing, Mutator.written, read_tensor),
    Reader("compressed", ".mtx.gz", written("m.mtx.gz"), Mutator.binary, read_tensor),
    Reader("notes", ".json", notes, Mutator.json, recall_note),
    Reader("calibrations", ".json", calibrations, change_calibration, use_calibration, False),
    Reader("prices", ".npz", price_files, change_arrays, use_price, slow=6),
)  # fmt: skip
