"""The import rules of the three packages, executable: who may import whom, and what stays out of
where.

Rules are read from the sources with `ast`, so they hold for imports inside functions too, and
nothing needs to be imported to check them (but for the last tests, which ask a fresh interpreter).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("taco_py", "polyhedral", "codegen")

# What the modules whose name starts with the first may not import from our own packages.
FORBIDDEN: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("codegen", ("taco_py", "polyhedral"), "the ground floor knows loops, arrays and C only"),
    ("polyhedral", ("taco_py",), "it knows affine domains, not tensors"),
    (
        "taco_py.language.notebook",
        ("taco_py", "codegen", "polyhedral"),
        "what is shown is text by then",
    ),
    (
        "taco_py.language.diagnostics",
        ("taco_py", "codegen", "polyhedral"),
        "errors know no compiler",
    ),
    (
        "taco_py.language.notation",
        ("taco_py.language.formats", "taco_py.data.storage", "codegen", "polyhedral"),
        "notation knows no formats",
    ),
    ("taco_py.language.formats", ("codegen", "polyhedral"), "formats are data and know no loop IR"),
    (
        "taco_py.language.legal",
        ("taco_py.compiler.concrete", "taco_py.planner", "codegen", "polyhedral"),
        "what types and formats allow depends on no IR below notation",
    ),
    (
        "taco_py.compiler.levels",
        ("taco_py.language.notation", "taco_py.compiler.concrete"),
        "levels know no index variables",
    ),
    ("taco_py.compiler.lower", ("taco_py.compiler.schedule",), "lowering knows no commands"),
    ("taco_py.compiler.cost", ("codegen",), "cost knows no loop IR"),
    (
        "codegen.emit",
        ("codegen.runtime", "codegen.toolchain", "codegen.devices"),
        "emission makes text only",
    ),
    (
        "codegen.devices",
        ("codegen.emit", "codegen.passes", "codegen.ir"),
        "devices run text, and know nothing of what it was made of",
    ),
    (
        "taco_py.data.storage",
        (
            "codegen",
            "polyhedral",
            "taco_py.compiler.lower",
            "taco_py.compiler.driver",
            "taco_py.api",
        ),
        "storage does not compile",
    ),
    (
        "taco_py.language.oracle",
        ("codegen", "taco_py.compiler.lower"),
        "the oracle shares no lowering",
    ),
    (
        "taco_py.graph.orchestrate",
        (
            *(
                "taco_py.language.notation",
                "taco_py.language.formats",
                "taco_py.data.storage",
                "taco_py.planner",
            ),
            *("taco_py.data.tensors", "taco_py.graph.nodes", "taco_py.graph.capture", "polyhedral"),
        ),
        "kernels are chosen for graphs of anything",
    ),
    (
        "taco_py.compiler.driver",
        ("taco_py.compiler.order", "taco_py.compiler.asymptotic", "taco_py.planner", "taco_py.api"),
        "the scheduler is an argument",
    ),
)
# What any room may import: records, as of the standard library, and what machines are.
COMMON = ("codegen.records", "codegen.machine")
# The rooms of each package and the floors inside them, the lowest first: a room imports rooms
# before it alone. Between the children of any other folder no imports run in a circle (`CIRCLES`).
ROOMS: dict[str, tuple[str, ...]] = {
    "taco_py": (
        "language", "data", "compiler", "planner", "arguments", "running", "report", "calls",
        "tuning", "api", "arrays", "graph", "nn", "functions", "torch", "tool", "__main__",
    ),
    "taco_py.language": (
        "release", "phase", "former_names", "diagnostics", "notebook", "notation", "fill",
        "formats", "provenance", "statement_indices", "autodiff", "problem", "legal", "oracle",
    ),
    "taco_py.data": ("kernels", "kept_calibration", "storage", "convert", "interop", "tensors"),
    "taco_py.compiler": (
        "cost", "concrete", "levels", "devices", "residence", "iteration", "schedule", "lower",
        "order", "asymptotic", "epilogue", "dataflow", "ways", "affine", "driver",
    ),
    "taco_py.planner": (
        "ir", "context", "unit_modes", "algebra", "matrix_steps", "price", "tile_windows",
        "plan_price", "temporaries", "copies", "make_kernel", "joined_kernels", "epilogue_group",
        "slabs", "rules", "search", "make_kernels", "lookahead", "make", "statements",
    ),
    "taco_py.arguments": (
        "learned_price", "option_checks", "options", "semiring_mask", "call_arguments",
        "device_tensor", "result_table", "numpy_einsum", "operands", "results",
    ),
    "taco_py.running": ("execute", "export", "plan_texts", "replay"),
    "taco_py.report": ("show", "limits", "explanation"),
    "taco_py.calls": (
        "statements", "remapped", "indexed", "call", "kernels", "programs",
    ),
    "taco_py.tuning": (
        "space", "store", "prices", "networks", "measure", "searches", "session", "tasks", "bench",
        "formats", "calibration", "jobs",
    ),
    "polyhedral": (
        "errors", "affine", "model", "band_schedule", "isl", "nests", "products", "programs",
    ),
}  # fmt: skip
# The rooms that say what each kind of levels is; others ask for properties of a level.
OF_LEVEL_KINDS = (
    "taco_py.language.formats", "taco_py.compiler.levels", "taco_py.data.storage.by_level",
)  # fmt: skip
# Folders between whose children imports run in circles: none may be added.
CIRCLES = {
    "codegen", "polyhedral.products", "taco_py.compiler.lower", "taco_py.compiler.schedule",
    "taco_py.compiler.ways", "taco_py.data.storage", "taco_py.language.notation",
}  # fmt: skip
# The most folders in the package, so that they can be learned by heart.
MOST_ROOMS = 13
# A package below may not import one above.
ABOVE = (
    "taco_py.api", "taco_py.arrays", "taco_py.torch", "taco_py.graph", "taco_py.nn",
    "taco_py.tool",
)  # fmt: skip
# Third-party and standard modules that only some files may import, anywhere in them.
ONLY_IN: dict[str, tuple[str, ...]] = {
    "islpy": ("polyhedral.isl",),
    "cffi": ("codegen.toolchain", "codegen.runtime", "codegen.devices"),
    "opt_einsum": (
        "taco_py.planner.algebra.contraction_trees",
        "taco_py.planner.algebra.pair_orders",
    ),
    "cotengra": ("taco_py.planner.algebra.pair_orders",),
    "subprocess": ("codegen.toolchain", "codegen.runtime"),
    "ctypes": ("codegen.toolchain", "codegen.runtime", "codegen.devices.cuda"),
}
# Libraries that are optional, or too slow to load for every user: never imported at module level.
LAZY = {
    "anndata", "cffi", "cotengra", "cupy", "cupyx", "dask", "distributed", "graphblas", "h5py",
    "islpy", "jax", "joblib", "matplotlib", "ml_dtypes", "opt_einsum", "pandas", "platformdirs",
    "polars", "pyarrow", "pycparser", "setuptools", "sparse", "sparse_dot_mkl", "torch", "ziglang",
    "zstandard",
}  # fmt: skip
# Module-level mutable values that are meant: the one kernel cache.
MUTABLE_ALLOWED: frozenset[str] = frozenset()
# Memos of pure functions: from text to immutable notation (bounded), from a class to its fields,
# from a target to its machine, from a tile to its function; and the library that is open in this
# process.
MEMO_ALLOWED = frozenset(
    {
        "codegen.runtime.blas",
        "codegen.shared_work",
        "codegen.tree",
        "codegen.variables",
        "taco_py.arrays.elementwise",
        "taco_py.arrays.spelling",
        "taco_py.language.autodiff.cotangents",
        "taco_py.calls.statements.read_text",
        "taco_py.calls.call.subscripts",
        "taco_py.compiler.cost.machine",
        "taco_py.compiler.cost.sets",
        "taco_py.compiler.devices",
        "taco_py.calls.indexed.make_operands",
        "taco_py.data.interop.scipy_arrays",
        "taco_py.data.interop.scipy_blocks",
        "taco_py.language.legal.absent",
        "taco_py.data.storage.size_classes",
        "taco_py.data.storage.one_entry_rows",
    }
)


@dataclass(frozen=True, slots=True)
class Import:
    """`module` imports `name` (a module, or something in one) at `line`."""

    module: str
    name: str
    line: int
    top_level: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.name}"


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the three packages, parsed."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_text(), str(path))
    return found


def _files() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@cache
def imports() -> tuple[Import, ...]:
    return tuple(
        Import(module, name, node.lineno, node in top_level)
        for module, tree in modules().items()
        for top_level in [set(_run_on_import(tree))]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and not _only_for_types(tree, node)
        for name in _names(node)
    )


def _run_on_import(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported: not those inside functions."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        statement = waiting.pop()
        yield statement
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [
                node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.stmt)
            ]


@cache
def _type_checking(tree: ast.Module) -> frozenset[ast.AST]:
    blocks = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    )
    return frozenset(inner for block in blocks for part in block.body for inner in ast.walk(part))


def _only_for_types(tree: ast.Module, node: ast.AST) -> bool:
    return node in _type_checking(tree)


def _names(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names]


def inside(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def target(name: str) -> str:
    """The module that an imported name is or lies in."""
    return name if name in modules() else name.rpartition(".")[0]


def test_there_are_modules() -> None:
    assert {name.split(".")[0] for name in modules()} == set(PACKAGES)
    assert len(modules()) > 30


@pytest.mark.parametrize(("package", "others", "why"), FORBIDDEN, ids=lambda value: str(value)[:30])
def test_packages_import_downwards(package: str, others: tuple[str, ...], why: str) -> None:
    wrong = [
        str(found)
        for found in imports()
        if inside(found.module, package)
        and any(inside(found.name, other) for other in others)
        and not inside(found.name, package)
        and not any(inside(target(found.name), common) for common in COMMON)
        and not (package == "taco_py.language.diagnostics" and found.name == "taco_py")
    ]
    assert not wrong, f"{why}: {wrong}"


def test_nothing_below_imports_the_api_or_the_command_line() -> None:
    wrong = [
        str(found)
        for found in imports()
        if found.module not in ("taco_py", "taco_py.__main__")
        and not any(inside(found.module, above) for above in ABOVE)
        and any(inside(found.name, above) for above in ABOVE)
    ]
    assert not wrong


def test_kinds_of_levels_are_named_in_the_rooms_that_own_them() -> None:
    named = {
        module
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "LevelKind"
    }
    assert {room for room in OF_LEVEL_KINDS for m in named if inside(m, room)} == {*OF_LEVEL_KINDS}
    assert not [m for m in named if not any(inside(m, room) for room in OF_LEVEL_KINDS)]


# What draws itself, when it is asked to.
SHOWN = (
    "taco_py.calls.kernels.builder", "taco_py.calls.kernels.kernel", "taco_py.graph.graph_picture",
    "taco_py.report.limits.roofline_picture",
)  # fmt: skip


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_import_rooms_below(package: str) -> None:
    floors = {f"{package}.{room}": floor for floor, room in enumerate(ROOMS[package])}

    def room_of(module: str) -> str | None:
        return next((room for room in floors if inside(module, room)), None)

    wrong = []
    for found in imports():
        room, other = room_of(found.module), room_of(target(found.name))
        if room is not None and other is not None and floors[room] < floors[other]:
            wrong.append(str(found))
    assert not wrong


@pytest.mark.parametrize("package", ROOMS)
def test_every_room_has_its_floor(package: str) -> None:
    assert children(package) == set(ROOMS[package])


def children(package: str) -> set[str]:
    """Return the names of the folders and modules in a package."""
    return {
        name.removeprefix(f"{package}.").split(".")[0]
        for name in modules()
        if name.startswith(f"{package}.")
    }


def test_no_imports_run_in_a_circle_between_the_children_of_a_folder() -> None:
    folders = {name.rpartition(".")[0] for name in modules()} - {""}
    circles = {folder for folder in folders if _has_circle(folder)}
    assert circles == CIRCLES


def _has_circle(folder: str) -> bool:
    """Tell whether a child of a folder leads back to itself through its siblings."""
    arrows: dict[str, set[str]] = {child: set() for child in children(folder)}
    for found in imports():
        if inside(found.module, folder) and inside(target(found.name), folder):
            start, end = (
                name.removeprefix(folder)[1:].split(".")[0]
                for name in (found.module, target(found.name))
            )
            if start and end and start != end:
                arrows[start].add(end)
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError:
        return True
    return False


def test_the_rooms_can_be_learned_by_heart() -> None:
    folders = [path for path in (ROOT / "taco_py").iterdir() if (path / "__init__.py").exists()]
    assert len(folders) <= MOST_ROOMS


MOST_FILES = 20


def test_a_folder_can_be_looked_over() -> None:
    folders = Counter(path.parent for path in _files() if path.name != "__init__.py")
    assert not {str(folder): n for folder, n in folders.items() if n > MOST_FILES}


SAME_IN_EACH_IR = {
    "errors", "expressions", "lexer", "lower", "nodes", "oracle", "parser", "printer",
    "statements", "tree", "types", "verify",
}  # fmt: skip
"""Names of files that each intermediate representation may have."""


def test_no_two_files_have_one_name() -> None:
    """But for those of each representation; a door, in `api/` or a public module, is called as what
    it opens, and a rule as what it does."""
    named = [
        path
        for path in _files()
        if not {"api", "rules"} & set(path.parts) and path.parent != ROOT / "taco_py"
    ]
    twice = {stem for stem, count in Counter(path.stem for path in named).items() if count > 1}
    assert twice <= SAME_IN_EACH_IR | {"__init__"}


MOST_LINES = 50
"""Lines of a function's code, its docstring left out, that can be read at once."""


def test_a_function_can_be_read_at_once() -> None:
    long = [
        f"{name}.{node.name}: {lines}"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and (lines := _lines_of_code(node)) > MOST_LINES
    ]
    assert not long


def _lines_of_code(function: ast.FunctionDef) -> int:
    """The lines of a function without its docstring."""
    first, whole = function.body[0], (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return whole
    return whole - ((first.end_lineno or 0) - first.lineno + 1)


def test_pictures_are_imported_when_they_are_drawn() -> None:
    wrong = [
        str(found)
        for found in imports()
        if inside(found.name, "taco_py.report.show")
        and not inside(found.module, "taco_py.report.show")
        and not inside(found.module, "taco_py.tool")
        and not (found.module in SHOWN and not found.top_level)
    ]
    assert not wrong


def test_no_import_cycles() -> None:
    """Between modules, by the imports that run on import; an `__init__` counts as a module."""
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for found in imports():
        if (
            found.top_level
            and target(found.name) in modules()
            and target(found.name) != found.module
        ):
            graph[found.module].add(target(found.name))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_no_import_is_hidden_in_a_function_to_break_a_cycle() -> None:
    """Imports of our own modules inside functions are allowed where they save time, not where the
    imported module leads back to the importer."""
    reaches: dict[str, set[str]] = {name: set() for name in modules()}
    for found in imports():
        if target(found.name) in modules():
            reaches[found.module].add(target(found.name))

    def leads_to(start: str, goal: str) -> bool:
        seen, waiting = {start}, [start]
        while waiting:
            for after in reaches[waiting.pop()] - seen:
                seen.add(after)
                waiting.append(after)
        return goal in seen

    hidden = [
        str(found)
        for found in imports()
        if not found.top_level
        and target(found.name) in modules()
        and leads_to(target(found.name), found.module)
    ]
    assert not hidden


@pytest.mark.parametrize(("library", "homes"), ONLY_IN.items(), ids=list(ONLY_IN))
def test_libraries_are_imported_in_their_home_only(library: str, homes: tuple[str, ...]) -> None:
    wrong = [
        str(found)
        for found in imports()
        if inside(found.name, library) and not any(inside(found.module, home) for home in homes)
    ]
    assert not wrong


def test_slow_and_optional_libraries_are_imported_inside_functions() -> None:
    wrong = [
        str(found) for found in imports() if found.top_level and found.name.split(".")[0] in LAZY
    ]
    assert not wrong


def test_passes_read_no_environment() -> None:
    wrong = [
        str(found)
        for found in imports()
        if inside(found.module, "codegen.passes") and inside(found.name, "os")
    ]
    assert not wrong


def test_no_star_imports_and_no_relative_imports() -> None:
    wrong = [
        f"{module}:{node.lineno}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.level or any(alias.name == "*" for alias in node.names))
    ]
    assert not wrong


def test_no_module_level_mutable_state() -> None:
    """No `global`, no module-level container that some function changes, no object with state."""
    wrong = [
        place
        for module, tree in modules().items()
        for place in _mutations(module, tree)
        if place.rpartition(":")[0] not in MUTABLE_ALLOWED
    ]
    assert not wrong


def test_no_function_keeps_a_cache_of_its_own() -> None:
    """`functools.cache` is module-level state that nobody can see or clear."""
    caches = ("functools.cache", "functools.lru_cache", "functools")
    wrong = [
        str(found)
        for found in imports()
        if found.name in caches and found.module not in MEMO_ALLOWED
    ]
    assert not wrong


CHANGING = {
    "add", "append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault",
    "update",
}  # fmt: skip


def _mutations(module: str, tree: ast.Module) -> Iterator[str]:
    names = {
        name.id
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for name in ast.walk(statement)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    for function in functions:
        own = _local_names(function)
        for node in ast.walk(function):
            changed = _changed_name(node)
            if isinstance(node, ast.Global):
                yield f"{module}.{node.names[0]}:{node.lineno}"
            elif changed in names - own:
                yield f"{module}.{changed}:{node.lineno}"


def _local_names(function: ast.FunctionDef) -> set[str]:
    stored = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return stored | {
        argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)
    }


def _changed_name(node: ast.AST) -> str | None:
    """The name whose value this changes in place: `x[..] = `, `x.append(..)`, `del x[..]`."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in CHANGING:
            return name
    return None


def test_values_are_frozen() -> None:
    """IR nodes are frozen, slotted dataclasses."""
    homes = (
        "codegen.ir",
        "taco_py.language.notation.nodes",
        "taco_py.compiler.concrete.nodes",
        "taco_py.language.problem",
    )
    loose = [
        f"{module}.{node.name}"
        for module in homes
        for node in ast.walk(modules()[module])
        if isinstance(node, ast.ClassDef)
        for decorator in node.decorator_list
        if "dataclass" in ast.unparse(decorator)
        and not ("frozen=True" in ast.unparse(decorator) and "slots=True" in ast.unparse(decorator))
    ]
    assert not loose


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return done.stdout.strip()


def test_import_loads_no_slow_library() -> None:
    loaded = fresh("import sys, taco_py; print(*sys.modules)").split()
    assert "taco_py" in loaded
    slow = {"islpy", "opt_einsum", "torch", "pycparser", "platformdirs", "cffi", "setuptools",
            "pandas", "polars", "pyarrow", "jax", "sparse", "h5py", "dask"}  # fmt: skip
    assert not slow & set(loaded)


NOT_FOR_USUAL_CALLS = (
    "taco_py.tuning", "taco_py.report", "taco_py.graph", "taco_py.compiler.asymptotic",
    "taco_py.compiler.affine",
)  # fmt: skip


def test_usual_calls_import_no_room_that_they_do_not_pass() -> None:
    code = """
import sys, numpy as np, scipy.sparse as sp, taco_py as tp
A, x = sp.csr_array(np.eye(3)), np.ones(3)
tp.einsum("ij,j->i", A, x), tp.evaluate("C[i,j] = A[i,k] * A[k,j]", A=A)
print(*sys.modules)
"""
    loaded = fresh(code).split()
    assert "taco_py.calls" in loaded
    assert not {name for name in loaded if any(inside(name, room) for room in NOT_FOR_USUAL_CALLS)}


def test_scipy_parts_that_are_not_needed_stay_out() -> None:
    """Only what scipy.sparse itself loads: its solvers and statistics cost more than all of us."""
    base = set(fresh("import sys, numpy, scipy.sparse; print(*sys.modules)").split())
    more = set(fresh("import sys, taco_py; print(*sys.modules)").split()) - base
    assert not {name for name in more if name.startswith(("scipy.", "numpy."))}


@pytest.mark.parametrize("shadowed", ["codegen", "polyhedral"])
def test_a_foreign_package_of_our_name_is_named(shadowed: str, tmp_path: Path) -> None:
    (tmp_path / shadowed).mkdir()
    (tmp_path / shadowed / "__init__.py").write_text("")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; import taco_py"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode != 0
    assert "ImportError" in done.stderr
    assert str(tmp_path) in done.stderr
