"""tacopy: a compiler for sparse and dense tensor algebra on scipy.sparse and NumPy operands.

    import taco_py as tp
    y = tp.einsum("ij,j->i", A, x)

What calls that were made before do not need is imported when it is first asked for.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any


def _require_own(package: str) -> None:
    """Raise ImportError unless `package` is the one beside this: others have these names too."""
    home = Path(__file__).resolve().parent.parent
    spec = find_spec(package)
    place = None if spec is None else spec.origin
    if place is None or Path(place).resolve().parent.parent != home:
        raise ImportError(
            f"Expected the package {package} in {home}, beside taco_py, found it "
            f"{'nowhere' if place is None else f'in {place}'}.\n"
            "hint: another distribution has a package of that name, which comes first in sys.path, "
            "or tacopy is not installed as a whole; remove the other one, or install tacopy into "
            "an environment of its own"
        )


_require_own("codegen")
_require_own("polyhedral")

from taco_py.api.einsum import einsum  # noqa: E402
from taco_py.api.evaluate import evaluate, explain  # noqa: E402
from taco_py.api.schedule import schedule  # noqa: E402
from taco_py.calls.call.plan_choice import PLAN_CHOICE  # noqa: E402
from taco_py.data.tensors.behaviour import BEHAVIOUR  # noqa: E402
from taco_py.language.diagnostics.cautions import (  # noqa: E402
    BackendWarning,
    LearnedPriceWarning,
    NarrowSumWarning,
    NotationWarning,
)
from taco_py.language.diagnostics.errors import (  # noqa: E402
    BoundError,
    CompilerError,
    DerivativeError,
    DeviceError,
    DimensionError,
    FarmError,
    FileFormatError,
    FormatError,
    IndexOverflowError,
    InternalError,
    MissingExtraError,
    NotationError,
    NumberOverflowError,
    OperandError,
    OperandTypeError,
    OutOfMemoryError,
    OutputDtypeError,
    OutputError,
    PositionError,
    ScheduleError,
    StructureError,
    TacoError,
    TuningStoreError,
)
from taco_py.language.former_names import install  # noqa: E402
from taco_py.language.release import VERSION  # noqa: E402

install()
del globals()["install"]

BEHAVIOUR.home = "taco_py.arrays.operations"
PLAN_CHOICE.home = "taco_py.tuning.bench.chosen_settings"

if TYPE_CHECKING:
    from taco_py import graph, nn, torch, tuning
    from taco_py.api.check import check
    from taco_py.api.choose_format import choose_format
    from taco_py.api.compile import compile
    from taco_py.api.device import device
    from taco_py.api.evaluate_dense import evaluate_dense
    from taco_py.api.files import read, write
    from taco_py.api.from_dlpack import from_dlpack
    from taco_py.api.frontier import frontier
    from taco_py.api.function import function
    from taco_py.api.hybrid import hybrid
    from taco_py.api.level_kind import add_level_kind
    from taco_py.api.memory import (
        clear_memory,
        get_memory_limit,
        set_index_checks,
        set_kept_memory,
        set_memory_limit,
    )
    from taco_py.api.program import program
    from taco_py.api.symmetric import symmetric
    from taco_py.api.tensor import tensor
    from taco_py.api.threads import get_threads, set_threads
    from taco_py.api.tuning.calibrate import calibrate
    from taco_py.api.tuning.learn import learn
    from taco_py.api.tuning.rank import rank
    from taco_py.api.tuning.tune import tune, tuning_store
    from taco_py.arguments.device_tensor import DeviceTensor
    from taco_py.calls.call.derivatives.pullback import Pullback
    from taco_py.calls.call.derivatives.pushforward import Pushforward
    from taco_py.calls.call.derivatives.text_derivatives import jvp, vjp
    from taco_py.calls.kernels.kernel import Kernel
    from taco_py.calls.programs.program_call import Program
    from taco_py.compiler.asymptotic.frontier_search import Frontier
    from taco_py.compiler.schedule.schedule import Schedule
    from taco_py.data.tensors.tensor import Tensor
    from taco_py.graph.backends.backend import Backend, Pattern
    from taco_py.graph.backends.registered import register_backend
    from taco_py.graph.fuse import FusedFunction, fuse
    from taco_py.graph.gradients.gradient_function import GradientFunction, grad, value_and_grad
    from taco_py.graph.gradients.train_step import TrainState, TrainStep, train_step
    from taco_py.graph.lazy import Lazy, lazy
    from taco_py.language.formats import (
        BCSR,
        BSR,
        COO,
        CSC,
        CSF,
        CSR,
        DCSC,
        DCSR,
        DIA,
        DOK,
        ELL,
        HASH,
        NM,
        RLE,
        SDIA,
        SELL,
        SYM,
        Blocked,
        Format,
        LevelKind,
        RemappedFormat,
        dense,
    )
    from taco_py.language.notation.rewrites.masks import by_value, complement
    from taco_py.language.notation.rewrites.semirings import Semiring
    from taco_py.tuning.bench.ranked_plans import RankedPlan
    from taco_py.tuning.bench.tuned_plans import TunedCall
    from taco_py.tuning.bench.tuning_store import TuningStore
    from taco_py.tuning.networks.load_price import load_price
    from taco_py.tuning.prices.price_model import PriceModel
    from taco_py.tuning.store.tuning_record import TuningRecord

__version__ = VERSION

_LATER = {
    "taco_py.api.check": ("check",),
    "taco_py.api.choose_format": ("choose_format",),
    "taco_py.api.compile": ("compile",),
    "taco_py.calls.call.derivatives.text_derivatives": ("jvp", "vjp"),
    "taco_py.api.device": ("device",),
    "taco_py.api.evaluate_dense": ("evaluate_dense",),
    "taco_py.api.files": ("read", "write"),
    "taco_py.api.from_dlpack": ("from_dlpack",),
    "taco_py.api.frontier": ("frontier",),
    "taco_py.api.function": ("function",),
    "taco_py.api.hybrid": ("hybrid",),
    "taco_py.api.level_kind": ("add_level_kind",),
    "taco_py.api.memory": (
        "clear_memory",
        "get_memory_limit",
        "set_index_checks",
        "set_kept_memory",
        "set_memory_limit",
    ),
    "taco_py.api.program": ("program",),
    "taco_py.api.symmetric": ("symmetric",),
    "taco_py.api.tensor": ("tensor",),
    "taco_py.api.threads": ("get_threads", "set_threads"),
    "taco_py.calls.call.derivatives.pullback": ("Pullback",),
    "taco_py.calls.call.derivatives.pushforward": ("Pushforward",),
    "taco_py.api.tuning.calibrate": ("calibrate",),
    "taco_py.api.tuning.learn": ("learn",),
    "taco_py.api.tuning.rank": ("rank",),
    "taco_py.api.tuning.tune": ("tune", "tuning_store"),
    "taco_py.calls.kernels.kernel": ("Kernel",),
    "taco_py.calls.programs.program_call": ("Program",),
    "taco_py.tuning.bench.tuned_plans": ("TunedCall",),
    "taco_py.tuning.networks.load_price": ("load_price",),
    "taco_py.tuning.prices.price_model": ("PriceModel",),
    "taco_py.tuning.bench.ranked_plans": ("RankedPlan",),
    "taco_py.tuning.bench.tuning_store": ("TuningStore",),
    "taco_py.language.formats": (
        "BCSR",
        "BSR",
        "COO",
        "CSC",
        "CSF",
        "CSR",
        "DCSC",
        "DCSR",
        "DIA",
        "DOK",
        "ELL",
        "HASH",
        "NM",
        "RLE",
        "SDIA",
        "SELL",
        "SYM",
        "Blocked",
        "Format",
        "LevelKind",
        "Pullback",
        "Pushforward",
        "RemappedFormat",
        "dense",
    ),
    "taco_py.compiler.asymptotic.frontier_search": ("Frontier",),
    "taco_py.graph.backends.backend": ("Backend", "Pattern"),
    "taco_py.graph.backends.registered": ("register_backend",),
    "taco_py.graph.fuse": ("FusedFunction", "fuse"),
    "taco_py.graph.gradients.gradient_function": ("GradientFunction", "grad", "value_and_grad"),
    "taco_py.graph.gradients.train_step": ("TrainState", "TrainStep", "train_step"),
    "taco_py.graph.lazy": ("Lazy", "lazy"),
    "taco_py.language.notation.rewrites.masks": ("by_value", "complement"),
    "taco_py.language.notation.rewrites.semirings": ("Semiring",),
    "taco_py.compiler.schedule.schedule": ("Schedule",),
    "taco_py.tuning.store.tuning_record": ("TuningRecord",),
    "taco_py.arguments.device_tensor": ("DeviceTensor",),
    "taco_py.data.tensors.tensor": ("Tensor",),
}

__all__ = [
    "BCSR",
    "BSR",
    "COO",
    "CSC",
    "CSF",
    "CSR",
    "DCSC",
    "DCSR",
    "DIA",
    "DOK",
    "ELL",
    "HASH",
    "NM",
    "RLE",
    "SDIA",
    "SELL",
    "SYM",
    "Backend",
    "BackendWarning",
    "Blocked",
    "BoundError",
    "CompilerError",
    "DerivativeError",
    "DeviceError",
    "DeviceTensor",
    "DimensionError",
    "FarmError",
    "FileFormatError",
    "Format",
    "FormatError",
    "Frontier",
    "FusedFunction",
    "GradientFunction",
    "IndexOverflowError",
    "InternalError",
    "Kernel",
    "Lazy",
    "LearnedPriceWarning",
    "LevelKind",
    "MissingExtraError",
    "NarrowSumWarning",
    "NotationError",
    "NotationWarning",
    "NumberOverflowError",
    "OperandError",
    "OperandTypeError",
    "OutOfMemoryError",
    "OutputDtypeError",
    "OutputError",
    "Pattern",
    "PositionError",
    "PriceModel",
    "Program",
    "Pullback",
    "Pushforward",
    "RankedPlan",
    "RemappedFormat",
    "Schedule",
    "ScheduleError",
    "Semiring",
    "StructureError",
    "TacoError",
    "Tensor",
    "TrainState",
    "TrainStep",
    "TunedCall",
    "TuningRecord",
    "TuningStore",
    "TuningStoreError",
    "add_level_kind",
    "by_value",
    "calibrate",
    "check",
    "choose_format",
    "clear_memory",
    "compile",
    "complement",
    "dense",
    "device",
    "einsum",
    "evaluate",
    "evaluate_dense",
    "explain",
    "from_dlpack",
    "frontier",
    "function",
    "fuse",
    "get_memory_limit",
    "get_threads",
    "grad",
    "graph",
    "hybrid",
    "jvp",
    "lazy",
    "learn",
    "load_price",
    "nn",
    "program",
    "rank",
    "read",
    "register_backend",
    "schedule",
    "set_index_checks",
    "set_kept_memory",
    "set_memory_limit",
    "set_threads",
    "symmetric",
    "tensor",
    "torch",
    "train_step",
    "tune",
    "tuning",
    "tuning_store",
    "value_and_grad",
    "vjp",
    "write",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return the names of `_LATER`, imported when they are first used."""
    if name in ("graph", "nn", "torch", "tuning"):  # modules of their own
        return import_module(f"taco_py.{name}")
    for module, names in _LATER.items():
        if name in names:
            value = getattr(import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | {*__all__})
