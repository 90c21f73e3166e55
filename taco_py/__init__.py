"""tacopy: a compiler for sparse and dense tensor algebra on scipy.sparse and NumPy operands."""

from taco_py.api.einsum import einsum
from taco_py.api.evaluate import evaluate, explain
from taco_py.api.kernel import Kernel, compile
from taco_py.api.tensor import Tensor, check, read, tensor, write
from taco_py.diagnostics.errors import (
    CompilerError,
    DimensionError,
    FileFormatError,
    FormatError,
    IndexOverflowError,
    InternalError,
    MissingExtraError,
    NotationError,
    OperandError,
    OperandTypeError,
    OutputError,
    ScheduleError,
    StructureError,
    TacoError,
)
from taco_py.evaluate_dense import evaluate_dense
from taco_py.formats import COO, CSC, CSF, CSR, DCSR, Format, dense
from taco_py.schedule.commands import Schedule

__version__ = "0.1.0"

__all__ = [
    "COO", "CSC", "CSF", "CSR", "DCSR",
    "CompilerError", "DimensionError", "FileFormatError", "Format", "FormatError",
    "IndexOverflowError", "InternalError", "Kernel", "MissingExtraError", "NotationError",
    "OperandError", "OperandTypeError", "OutputError", "Schedule", "ScheduleError",
    "StructureError", "TacoError", "Tensor",
    "check", "compile", "dense", "einsum", "evaluate", "evaluate_dense", "explain", "read",
    "tensor", "write",
]  # fmt: skip
