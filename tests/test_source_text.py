"""What becomes code, and what opens it: each place in the packages, with the reason for it."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import codegen
import polyhedral
import taco_py
from codegen.names import is_plain_name
from codegen.passes.local_arrays import evaluated_size
from taco_py.diagnostics.errors import InternalError
from taco_py.kernels import find_routine
from taco_py.replay.helpers import PLACES, Helper
from taco_py.replay.source_text import call_code, checked_name, whole_number

WATCHED = frozenset((
    "eval", "exec", "compile", "__import__", "import_module", "execfile", "runpy", "run_path",
    "load_module", "exec_module", "spec_from_file_location", "literal_eval", "system", "popen",
    "Popen", "run", "check_output", "check_call", "startfile", "dlopen", "CDLL", "set_source",
    "verify", "cdef", "load_extension", "enable_load_extension", "Unpickler", "allow_pickle",
    "read_pickle", "to_pickle", "interact", "FunctionType", "CodeType",
))  # fmt: skip
"""Names that are called, or given as arguments by name, where a text may become code."""

MODULES = frozenset(("pickle", "marshal", "shelve", "joblib", "dill", "cloudpickle", "code", "yaml"))
"""Modules of which every use is listed."""

OURS = "a name of this package's own, from a table in its source"
FIXED = "a module whose name stands in the source"

ALLOWED: dict[tuple[str, str], str] = {}


def _allow(reason: str, *places: str) -> None:
    for place in places:
        file, _, function = place.partition(":")
        ALLOWED[file, function] = reason


# ---- filled below by file and function
REASONS: dict[str, tuple[str, ...]] = {}
