"""What becomes code, and what opens it: each place in the packages, with the reason for it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import codegen
import polyhedral
import taco_py
from codegen.names import is_plain_name
from codegen.passes.local_arrays import evaluated_size
from taco_py.data.kernels import find_routine
from taco_py.language.diagnostics.errors import InternalError
from taco_py.running.replay.call_text import HELPERS
from taco_py.running.replay.helpers import PLACES, Helper
from taco_py.running.replay.source_text import call_code, checked_name, integer_text

BUILT_IN = frozenset(("eval", "exec", "compile", "__import__"))
"""Python's own: any mention of them is listed, called or not."""

CALLED = frozenset((
    "import_module", "literal_eval", "run_path", "run_module", "exec_module", "load_module",
    "spec_from_file_location", "system", "popen", "Popen", "check_output", "check_call",
    "startfile", "dlopen", "CDLL", "cdef", "set_source", "load_extension",
    "enable_load_extension", "read_pickle", "to_pickle", "FunctionType", "CodeType", "allow_pickle",
))  # fmt: skip
"""Functions, and arguments by name, through which a text or a file may become code."""

MODULES = frozenset(("pickle", "marshal", "shelve", "joblib", "dill", "cloudpickle", "subprocess"))
"""Modules of which every use is listed."""

SEARCHED = frozenset(("np", "sp", "special", "builtins", "os", "operator", "numpy", "scipy"))
"""Modules in which nothing is looked up by a name that is data, but where a table has the name."""

REASONS: dict[str, tuple[str, ...]] = {
    "the name stands in a table of the source": (
        "taco_py/__init__.py:__getattr__ import_module",
        "taco_py/graph/__init__.py:__getattr__ import_module",
        "taco_py/tuning/__init__.py:__getattr__ import_module",
        "taco_py/graph/backends/registered.py:Registered.find import_module",
        "taco_py/data/tensors/behaviour.py:Behaviour.function_named import_module",
        "taco_py/calls/call/plan_choice.py:PlanChoice.options import_module",
        "taco_py/language/former_names.py:_attribute_of import_module",
        "taco_py/language/former_names.py:install exec_module",
        "taco_py/language/diagnostics/extras.py:library import_module",
        "taco_py/data/storage/sources.py:_of import_module",
        "codegen/runtime/blas.py:_from_capsules import_module",
        "taco_py/data/kernels.py:find_routine import_module",
        "taco_py/running/replay/helpers.py:Helper.function import_module",
        "codegen/runtime/child_process.py:serve import_module",
    ),
    "text of names that are made here and of operators of a table": (
        "taco_py/graph/extents.py:compiled exec",
        "taco_py/graph/short_route.py:_Text.function exec",
        "codegen/records.py:_function exec",
    ),
    "text that `call_code` has found to be a short way, of the user's own cache or made here": (
        "taco_py/running/replay/find.py:define exec",
        "taco_py/running/replay/source_text.py:call_code compile",
    ),
    "Python that the emitter wrote; in the cache it lies beside the libraries that it launches": (
        "codegen/devices/host_function.py:HostFunction.__init__ exec",
        "codegen/devices/host_function.py:HostFunction.__init__ compile",
    ),
    "literals alone, which are looked at before they are used": (
        "taco_py/graph/rules/algebra.py:_matches literal_eval",
        "taco_py/graph/rules/algebra.py:_number literal_eval",
        "taco_py/planner/ir/parser.py:_move literal_eval",
        "taco_py/data/storage/containers/npy.py:_header literal_eval",
    ),
    "refuses pickles": (
        "taco_py/graph/plain_graphs.py:_bytes allow_pickle",
        "taco_py/data/storage/containers/npz.py:read allow_pickle",
        "taco_py/tuning/prices/price_data.py:read_arrays allow_pickle",
        "taco_py/tuning/prices/model_file.py:read_model_file allow_pickle",
    ),
    "operands for a process that this one starts, in a private folder that it makes and removes": (
        "taco_py/tuning/measure/operand_file.py:operand_file pickle.HIGHEST_PROTOCOL",
        "taco_py/tuning/measure/operand_file.py:operand_file pickle.PicklingError",
        "taco_py/tuning/measure/operand_file.py:read_operands pickle.load",
        "taco_py/tuning/measure/operand_file.py:_Pickler pickle.Pickler",
    ),
    "a file of this package declares the functions": (
        "codegen/devices/cuda/driver_library.py:Driver._load cdef",
        "codegen/devices/emulation_library.py:_declared cdef",
        "codegen/runtime/mkl_library.py:load_mkl cdef",
        "codegen/toolchain/cuda/nvrtc.py:_open cdef",
    ),
    "a library that is installed, or of the cache, which nobody else may write (`trust`)": (
        "codegen/devices/emulation_library.py:_open dlopen",
        "codegen/runtime/host.py:_load dlopen",
        "codegen/runtime/mkl_library.py:load_mkl dlopen",
        "codegen/runtime/blas.py:_opened CDLL",
        "codegen/runtime/traced/kernel_tracer.py:KernelTracer.kernel CDLL",
        "codegen/toolchain/shared_library.py:open_library CDLL",
        "codegen/toolchain/shared_library.py:open_library dlopen",
    ),
    "the compiler, or this Python, as a list of arguments": (
        "codegen/runtime/child_process.py:",
        "codegen/toolchain/compile_unit.py:",
        "codegen/toolchain/compiler.py:",
        "codegen/toolchain/compiler_version.py:",
        "codegen/toolchain/cuda/nvcc.py:",
        "codegen/toolchain/trial.py:",
    ),
    "the name is one of a table, or of a function that the user called": (
        "taco_py/graph/backends/interpret_region.py:_reduce getattr(np)",
        "taco_py/graph/capture/symbolic_size.py: getattr(operator)",
        "taco_py/graph/capture/traced_ufuncs.py:reduction.reduce getattr(np)",
        "taco_py/graph/capture/traced_ufuncs.py:function_along_axis.compute getattr(np)",
        "taco_py/graph/capture/traced_ufuncs.py:simple getattr(np)",
        "taco_py/graph/lazy.py:Lazy._noted getattr(np)",
        "taco_py/graph/lazy.py:Lazy._elementwise getattr(np)",
        "taco_py/graph/run/left_to_numpy.py:_reduction getattr(np)",
        "taco_py/graph/run/left_to_numpy.py:_call_along_axis getattr(np)",
        "taco_py/data/interop/scipy_arrays.py: getattr(sp)",
        "taco_py/language/notation/functions/function_table.py:_special.evaluate getattr(special)",
        "taco_py/tuning/tasks/operands_like.py: getattr(sp)",
        "taco_py/data/tensors/keys.py: getattr(sp)",
    ),
    "what is found is used where it is a function of elements alone": (
        "taco_py/graph/number_functions.py:element_function getattr(np)",
        "taco_py/graph/number_functions.py:element_function getattr(special)",
    ),
}
"""By reasons: file, function and what it names; of files whose every use is for one reason, these.

A new place is a decision: it goes here with the reason why no text of a file, a store, a pipe, a
plan or a notebook reaches it.
"""


def mentions(tree: ast.AST, where: str = "") -> Iterator[tuple[str, str]]:
    """The function, and what of the above it names."""
    for node in ast.iter_child_nodes(tree):
        inner = where
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{where}.{node.name}".strip(".")
        if isinstance(node, ast.Name) and node.id in BUILT_IN:
            yield inner, node.id
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in MODULES:
                yield inner, f"{node.value.id}.{node.attr}"
            if node.value.id == "builtins":
                yield inner, f"builtins.{node.attr}"
        if isinstance(node, ast.ImportFrom) and (node.module or "") in (*MODULES, "builtins"):
            yield inner, f"from {node.module}"
        if isinstance(node, ast.Call):
            yield from ((inner, each) for each in _called(node))
        yield from mentions(node, inner)


def _called(node: ast.Call) -> Iterator[str]:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in CALLED and not (isinstance(function, ast.Attribute) and _is_module(function)):
        yield name
    yield from (each.arg for each in node.keywords if each.arg in CALLED)
    if name == "getattr" and not isinstance(node.args[1], ast.Constant):
        module = getattr(node.args[0], "id", "")
        yield from (f"getattr({module})",) if module in SEARCHED else ()


def _is_module(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Name) and function.value.id in MODULES


def all_mentions() -> dict[str, list[str]]:
    """Each place, and how often it stands there."""
    found: dict[str, list[str]] = defaultdict(list)
    for package in (taco_py, codegen, polyhedral):
        root = Path(str(package.__file__)).parent
        for path in sorted(root.rglob("*.py")):
            file = f"{root.name}/{path.relative_to(root).as_posix()}"
            for where, what in mentions(ast.parse(path.read_text(encoding="utf-8"))):
                found[f"{file}:{where} {what}"].append(what)
    return found


def test_each_place_where_a_text_may_become_code_has_a_reason() -> None:
    known = [place for places in REASONS.values() for place in places]
    files = tuple(place for place in known if place.endswith(":"))
    found = all_mentions()
    new = [each for each in found if each not in known and not each.startswith(files)]
    assert not new, "these may run a text: give the reason why none of a file reaches them"
    gone = [e for e in known if e not in found and not any(o.startswith(e) for o in found)]
    assert not gone, "these are not there any more"


def test_the_test_sees_what_is_new() -> None:
    text = "def f(x):\n    g = eval\n    import pickle\n    pickle.loads(x)\n    getattr(np, x)()\n"
    text += "    importlib.import_module(x); ast.literal_eval(x); re.compile(x)\n"
    text += "    np.load(x, allow_pickle=1)\n"
    found = [what for _, what in mentions(ast.parse(text))]
    assert found == [
        "eval", "pickle.loads", "getattr(np)", "import_module", "literal_eval", "allow_pickle"
    ]  # fmt: skip


NO_NAMES = (
    "", "1x", "x y", "x=1", "x\n", "lambda", "None", "x.y", "é", "ª", "x\x00", "*/", "x'", 1, None,
    b"x", "x,y", "f(x)", "x;y", " x", "a" * 3 + "-",
)  # fmt: skip


@pytest.mark.parametrize("name", NO_NAMES)
def test_names_are_identifiers(name: object) -> None:
    assert not is_plain_name(name)
    with pytest.raises(InternalError):
        checked_name(name)


def test_names_and_numbers_are_written_as_they_are() -> None:
    assert checked_name("x_1") == "x_1"
    assert integer_text(-3) == "-3"
    for wrong in (True, 1.0, "1", None, 2**63, [1]):
        with pytest.raises(InternalError):
            integer_text(wrong)


FOREIGN = (
    "import os", "open('m', 'w')", "def call(a):\n    return open('m', 'w')",
    "def call(a):\n    import os", "def call(a, b=open('m', 'w')):\n    return a",
    "def call(a):\n    return a.tofile('m')", "def call(a):\n    return a.__class__",
    "def call(a):\n    return (lambda: 1)()", "def call(a):\n    return [x for x in a]",
    "def call(a):\n    def b(): return 1\n    return b", "@open\ndef call(a):\n    return a",
    "def call(a):\n    return a\nopen('m', 'w')", "def other(a):\n    return a",
    "def call(a):\n    return __builtins__", "class call:\n    x = 1", "def call(a):\n    global b",
    "def call(a) -> open('m', 'w'):\n    return a", "((((" * 100, "\x00",
)  # fmt: skip


@pytest.mark.parametrize("text", FOREIGN)
def test_a_kept_text_is_a_short_way_or_nothing(text: str) -> None:
    text = f"{text}\n" if "global" not in text else f"{text}\n    b = eval(a)\n"
    with pytest.raises(InternalError, match="short way"):
        call_code(text, ("kernel0",))
    space = {"kernel0": lambda x: x + 1}
    exec(call_code("def call(a):\n    return kernel0(a) if a.size else len(a)\n", space), space)


def test_helpers_and_routines_are_those_of_the_tables() -> None:
    for place in ("os:system", "taco_py.data.tensors.hand_out:np", "builtins:eval", "", "x"):
        with pytest.raises(InternalError):
            Helper(place).function()
    for helper in (*HELPERS.values(), *map(Helper, PLACES)):
        assert callable(helper.function())
    for name in ("routine os:system x", "routine builtins:exec x", "routine "):
        with pytest.raises(ValueError, match="no routine"):
            find_routine(name)


def test_sizes_are_evaluated_as_trees() -> None:
    values = {"n": 5, "threads": 2}
    assert evaluated_size("8 * max((n - 1), (threads * 3))", values) == 48
    assert evaluated_size("(-n // 2) % 4", values) == 1
    for text in ("open('m', 'w')", "n ** 9", "n.real", "[n]", "max(n)", "n if n else 1", "n(",
                 "1.5", "n // 0", "(" * 500):  # fmt: skip
        with pytest.raises(ValueError, match="no size"):
            evaluated_size(text, values)
    with pytest.raises(KeyError):
        evaluated_size("m", values)
