"""tacopy: a compiler for sparse and dense tensor algebra on scipy.sparse and NumPy operands."""

from taco_py.api.einsum import einsum
from taco_py.api.evaluate import evaluate

__all__ = ["einsum", "evaluate"]
