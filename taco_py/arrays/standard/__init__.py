"""The namespace of the array API standard, version 2024.12, over Tensors.

    xp = T.__array_namespace__();  xp.sum(xp.exp(T), axis=0)

Functions of elements are those of index notation under the standard's names. Results of order 0
are Tensors, where methods return NumPy's numbers.
"""

from __future__ import annotations

import numpy as np
from numpy import (
    complex64,
    complex128,
    e,
    float32,
    float64,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
    uint16,
    uint32,
    uint64,
)

from taco_py.api.from_dlpack import from_dlpack
from taco_py.arrays.standard import linalg
from taco_py.arrays.standard.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from taco_py.arrays.standard.data_types import (
    can_cast,
    finfo,
    iinfo,
    isdtype,
    namespace_info,
    result_type,
)
from taco_py.arrays.standard.several_operations import (
    argmax,
    argmin,
    argsort,
    astype,
    broadcast_arrays,
    broadcast_to,
    clip,
    concat,
    conj,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    expand_dims,
    flip,
    imag,
    matmul,
    matrix_transpose,
    mean,
    moveaxis,
    nextafter,
    nonzero,
    permute_dims,
    real,
    repeat,
    reshape,
    roll,
    searchsorted,
    sort,
    squeeze,
    stack,
    std,
    take,
    take_along_axis,
    tensordot,
    tile,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    unstack,
    var,
    vecdot,
    where,
)
from taco_py.arrays.standard.wrapped import of_modes, of_one, of_order, of_two

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "complex64",
    "complex128",
    "concat",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "divide",
    "e",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "finfo",
    "flip",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "prod",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "searchsorted",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]  # fmt: skip

__array_api_version__ = "2024.12"
__array_namespace_info__ = namespace_info

bool = np.bool_

abs = of_one("abs")
acos = of_one("acos")
acosh = of_one("acosh")
asin = of_one("asin")
asinh = of_one("asinh")
atan = of_one("atan")
atanh = of_one("atanh")
bitwise_invert = of_one("invert")
ceil = of_one("ceil")
cos = of_one("cos")
cosh = of_one("cosh")
exp = of_one("exp")
expm1 = of_one("expm1")
floor = of_one("floor")
isfinite = of_one("isfinite")
isinf = of_one("isinf")
isnan = of_one("isnan")
log = of_one("log")
log10 = of_one("log10")
log1p = of_one("log1p")
log2 = of_one("log2")
logical_not = of_one("logical_not")
negative = of_one("negative")
positive = of_one("positive")
reciprocal = of_one("reciprocal")
round = of_one("round")
sign = of_one("sign")
signbit = of_one("signbit")
sin = of_one("sin")
sinh = of_one("sinh")
sqrt = of_one("sqrt")
square = of_one("square")
tan = of_one("tan")
tanh = of_one("tanh")
trunc = of_one("trunc")

add = of_two("add")
atan2 = of_two("atan2")
bitwise_and = of_two("bitwise_and")
bitwise_left_shift = of_two("left_shift")
bitwise_or = of_two("bitwise_or")
bitwise_right_shift = of_two("right_shift")
bitwise_xor = of_two("bitwise_xor")
copysign = of_two("copysign")
divide = of_two("divide")
equal = of_two("equal")
floor_divide = of_two("floor_divide")
greater = of_two("greater")
greater_equal = of_two("greater_equal")
hypot = of_two("hypot")
less = of_two("less")
less_equal = of_two("less_equal")
logaddexp = of_two("logaddexp")
logical_and = of_two("logical_and")
logical_or = of_two("logical_or")
logical_xor = of_two("logical_xor")
maximum = of_two("maximum")
minimum = of_two("minimum")
multiply = of_two("multiply")
not_equal = of_two("not_equal")
pow = of_two("power")
remainder = of_two("remainder")
subtract = of_two("subtract")

all = of_order("all")
any = of_order("any")
max = of_order("max")
min = of_order("min")
prod = of_modes("prod")
sum = of_modes("sum")
