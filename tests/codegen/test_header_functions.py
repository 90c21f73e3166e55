"""Functions of C headers, one by one."""

from __future__ import annotations

import pytest

from codegen.emit.cuda_functions import HEADERS, definitions
from codegen.libraries.header_functions import Header
from codegen.machine.gpu import NOMINAL_GPU
from codegen.machine.target import UnsupportedError


def test_macros_are_expanded() -> None:
    found = Header("taco_math.h").function("taco_abs_i8")
    assert found is not None
    assert (found.type, found.parameters) == ("int8_t", "int8_t x")
    assert found.body == "return (int8_t)(x < 0 ? (uint8_t)(0u - (uint8_t)x) : (uint8_t)x);"


def test_parts_that_no_machine_asks_for_are_taken() -> None:
    """Not the polynomials of machines that multiply and add in one step."""
    found = Header("taco_math.h").function("taco_exp_f32")
    assert found is not None and found.body == "return __builtin_expf(x);"


def test_types_are_found() -> None:
    found = Header("taco_runtime.h").type("taco_float16")
    assert found == "typedef uint16_t taco_float16;"
    assert Header("taco_runtime.h").function("taco_float16") is None


def test_bodies_of_many_lines_keep_their_shape() -> None:
    assert definitions(["taco_search_int32(a, 0, n, x)"], [], NOMINAL_GPU) == [
        """\
static __device__ inline int64_t taco_search_int32(const int32_t *a, int64_t start, int64_t stop, \
int64_t value)
{
    while (start < stop) {
        int64_t middle = start + (stop - start) / 2;
        if (a[middle] < value)
            start = middle + 1;
        else
            stop = middle;
    }
    return start;
}"""
    ]


def test_what_is_called_comes_first() -> None:
    found = definitions(["taco_gallop_int64(a, 0, n, x)"], [], NOMINAL_GPU)
    names = ("taco_search_int64(", "taco_gallop_int64(")
    assert all(name in text for name, text in zip(names, found, strict=True))


def test_complex_numbers_are_pairs() -> None:
    (*_, text) = definitions(["taco_rint_c64(z)"], [], NOMINAL_GPU)
    assert text == (
        "static __device__ inline float2 taco_rint_c64(float2 z)\n"
        "{\n    return taco_make_c64(rintf(z.x), rintf(z.y));\n}"
    )


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="taco_sort_int7"):
        definitions(["taco_sort_int7(a)"], [], NOMINAL_GPU)


def test_no_word_of_gnu_c_is_left() -> None:
    """In no function of numbers that a text may call."""
    for header in HEADERS[:2]:
        for name in header.names:
            text = "\n".join(definitions([name], [], NOMINAL_GPU))
            assert "__builtin" not in text and "_Complex" not in text, name
            assert "__real__" not in text and "__imag__" not in text, name
