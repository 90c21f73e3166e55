"""Neural-network functions, of arrays and in traced functions: `tp.nn.softmax(x)`."""

from taco_py.graph.nn.activations import gelu, relu, silu, threshold
from taco_py.graph.nn.losses import cross_entropy, nll_loss
from taco_py.graph.nn.normalizations import batch_norm, layer_norm
from taco_py.graph.nn.probabilities import log_softmax, logsumexp, softmax
from taco_py.graph.nn.random_masks import dropout

__all__ = [
    "batch_norm",
    "cross_entropy",
    "dropout",
    "gelu",
    "layer_norm",
    "log_softmax",
    "logsumexp",
    "nll_loss",
    "relu",
    "silu",
    "softmax",
    "threshold",
]
