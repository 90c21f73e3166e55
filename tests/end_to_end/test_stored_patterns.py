"""What sparse results store: a function of the text and of what the operands store, by any plan.

The oracle says where: products where all factors are, sums where a term is, reductions where an
element is, masks where they allow, functions by their fill values.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.language.notation.rewrites.semirings import semiring_of
from tests.language.patterns import is_stored_as, stored_of
from tests.machines import always_threads

TEXTS = {
    "y[i] = A[i,k] * u[k]": "s", "y[k] = A[i,k] * v[i]": "s", "y[i] = A[i,k]": "s",
    "y[i] = A[i,k] * u[k] + v[i]": "s", "y[i] = A[i,k] * u[k] / z[i]": "s",
    "y[i] = sqrt(A[i,k] * u[k])": "s", "y[i] = exp(A[i,k] * u[k]) - 1": "s",
    "y[i] = A[i,k] * sum(j, B[k,j] * w[j]) * u[k]": "s", "y[i] = max(k, A[i,k])": "s",
    "y[j] = S[i,j] * sum(k, A[i,k] * u[k])": "s",
    "y[i] = sum(k, A[i,k]) * sum(j, S[i,j])": "s",
    "Y[i,j] = A[i,k] * B[k,j]": "ds", "Y[i,j] = S[i,j] * A[i,k] * B[k,j]": "ds",
    "Y[i,j] = S[i,j] + A[i,k] * B[k,j]": "ss", "Y[i,j] = S[i,j] * sum(k, B[k,j] * x[k])": "ds",
    "Y[i,j] = (A[i,k] + D[i,k]) * B[k,j]": "sd", "Y[i,m] = A[i,k] * A[m,k]": "ds:1,0",
    "Y[i,j] = S[i,j] * U[i,k] * V[j,k]": "ds", "Y[i,k] = T[i,k,l] * t[l]": "ss",
}  # fmt: skip
SEMIRINGS = ("min_plus", "plus_min", "plus_plus", "plus_minus", "or_and", "any_pair", "max_plus")
OVER_SEMIRINGS = tuple(text for text in TEXTS if not {"/", "(", "-"} & {*text.partition("=")[2]})
SIZES = ({"i": 3, "k": 2, "j": 2, "l": 2}, {"i": 6, "k": 20, "j": 5, "l": 3})
MODES = {"A": "ik", "B": "kj", "S": "ij", "D": "ik", "T": "ikl", "u": "k", "v": "i", "w": "j",
         "t": "l"}  # fmt: skip
DENSE = {"x": "k", "z": "i", "U": "ir", "V": "jr"}
FORMATS = {1: ("s", "h"), 2: ("ds", "ds:1,0", "ss", "uq", "hs"), 3: ("sss", "dss", "ddd")}


def drawn(random, shape, form, dtype, fill=0, share=0.3):
    """Draw a tensor; what it stores may be 0."""
    places = np.nonzero(random.random(shape) < share)
    return tp.Tensor.from_coo(
        places, random.integers(0, 4, len(places[0])).astype(dtype), shape, form, fill_value=fill
    )


def operands_of(random, text, sizes, dtype, fill=0):
    """Draw the operands of a text."""
    known, given = {**sizes, "r": 3}, {}
    for name, modes in (MODES | DENSE).items():
        shape = tuple(known[mode] for mode in modes)
        if f"{name}[" in text and name in DENSE:
            given[name] = random.integers(1, 4, shape).astype(dtype)
        elif f"{name}[" in text:
            form = str(random.choice(FORMATS[len(shape)]))
            given[name] = drawn(random, shape, form, dtype, fill)
    return given


def check(text, given, form, semiring=None, mask=None, **options):
    """Compare what a result stores with the oracle, and its values."""
    found = tp.evaluate(text, given, format=form, semiring=semiring, mask=mask, **options)
    np.testing.assert_array_equal(*is_stored_as(found, stored_of(text, given, semiring, mask)))
    values = tp.evaluate_dense(text, given, semiring=semiring, mask=mask)
    np.testing.assert_allclose(found.to_numpy(), values)


@pytest.mark.parametrize("sizes", SIZES, ids=("small", "long"))
@pytest.mark.parametrize("text", TEXTS)
def test_results_store_what_their_text_stores(text, sizes):
    random = np.random.default_rng(len(text))
    check(text, operands_of(random, text, sizes, "float64"), TEXTS[text])


REDUCTIONS_BESIDE = {
    "R[k,j] = max(i, x[j] * D[i,k])": "ss", "R[j] = max(i, x[j] * D[i,j])": "s",
    "R[j,k] = max(i, square(x[j] * D[i,k]) / abs(x[j]))": "ss",
    "R[j] = x[j] + max(i, z[j] * D[i,j])": "s", "R[j] = z[j] * max(i, x[j] * D[i,j])": "s",
    "R[j] = max(i, x[j] * D[i,j]) + max(i, z[j] * D[i,j])": "s",
    "R[i] = max(j, A[i,j] * max(k, x[i] * D[j,k]))": "s",
    "R[j] = max(i, where(D[i,j] > 1, x[j] * D[i,j], z[j]))": "s",
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint32"])
@pytest.mark.parametrize("text", REDUCTIONS_BESIDE)
@pytest.mark.parametrize("name", ["max", "min", "any", "all"])
def test_a_reduction_over_an_index_that_no_sparse_operand_has(text, name, dtype):
    """Of absent elements alone it is absent, as a sum is; a minimum has them at its elements."""
    random = np.random.default_rng(5)
    given = {"x": drawn(random, (5,), "s", dtype), "z": drawn(random, (5,), "s", dtype)}
    given["A"] = drawn(random, (5, 4), "ds", dtype)
    given["D"] = random.integers(0, 4, (4, 5)).astype(dtype)
    given = {each: value for each, value in given.items() if f"{each}[" in text}
    check(text.replace("max", name), given, REDUCTIONS_BESIDE[text])


@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_products_of_semirings_are_stored_alone_under_masks_too(semiring):
    random = np.random.default_rng(len(semiring))
    dtype = "bool" if semiring_of(semiring).computes_truths else "float64"
    fill = semiring_of(semiring).zero_of(np.dtype(dtype)) or 0
    text = OVER_SEMIRINGS[SEMIRINGS.index(semiring) % len(OVER_SEMIRINGS)]
    for each in {text, "Y[i,j] = A[i,k] * B[k,j]"}:
        given = operands_of(random, each, SIZES[1], dtype, fill)
        target = each.partition("]")[0].partition("[")[2].split(",")
        known = {**SIZES[1], "m": SIZES[1]["i"]}
        shape = tuple(known[index] for index in target)
        allowed = drawn(random, shape, "s" if len(shape) == 1 else "ds", "bool", share=0.6)
        for mask in (None, allowed, tp.complement(allowed), tp.by_value(allowed)):
            check(each, given, TEXTS[each], semiring, mask)


@pytest.mark.parametrize("semiring", [None, "min_plus"])
def test_sparse_tensors_that_are_added_to_store_what_either_stores(semiring):
    random, text = np.random.default_rng(1), "y[i] += A[i,k] * u[k]"
    fill = np.inf if semiring else 0
    given = operands_of(random, text, SIZES[1], "float64", fill)
    given["y"] = drawn(random, (6,), "s", "float64", fill)
    check(text, given, "s", semiring)
    found = tp.evaluate(text, given, format="s", semiring=semiring)
    assert found.fill_value == fill


def test_masks_by_value_say_what_is_stored():
    A = tp.tensor(np.eye(4), format="ds")
    mask = np.array([[True, False, True, True]] * 4)
    found = tp.evaluate("Y[i,j] = A[i,k] * A[k,j]", A=A, mask=mask, format="ds")
    assert found.nnz == 3


@pytest.mark.parametrize("form", ["dd", "ds", "ss"])
@pytest.mark.parametrize("value", ["D[i,j]", "exp(D[i,j])", "log10(D[i,j] > 1)"])
@pytest.mark.parametrize("name", ["min", "max", "sum", "prod", "any"])
def test_reductions_store_nothing_where_a_mask_is_false(name, value, form):
    """A mask by value may store zeros."""
    mask = tp.Tensor.from_coo((np.array([0, 1, 3]),), np.array([1, 1, 0]), (4,), format="s")
    D = tp.tensor(np.arange(12.0).reshape(4, 3) + 1, format=form)
    check(f"R[i] = {name}(j, {value})", {"D": D}, "s", None, tp.by_value(mask))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("text", ["Y[i,j] = S[i,j] * A[i,k] * B[k,j]", "y[i] = A[i,k] * u[k]"])
def test_patterns_do_not_depend_on_threads(text, threads):
    random = np.random.default_rng(3)
    given = operands_of(random, text, {"i": 40, "k": 30, "j": 50, "l": 1}, "float64")
    with always_threads():
        check(text, given, TEXTS[text], threads=threads)


@pytest.mark.parametrize("dtype", ["int64", "bool"])
@pytest.mark.parametrize("form", ["s", "h", "m"])
def test_operands_that_are_looked_up_leave_the_pattern_as_it_is(form, dtype):
    random = np.random.default_rng(6)
    A, u = drawn(random, (40, 30), "ds", dtype), drawn(random, (30,), form, dtype, share=0.1)
    for result in ("s", "m"):
        check("y[i] = A[i,k] * u[k]", {"A": A, "u": u}, result)
        check("y[i] = 2 * sum(k, A[i,k] * u[k])", {"A": A, "u": u}, result)


@pytest.mark.parametrize("of", ["stored", "value", "complement"])
def test_a_sum_that_is_asked_is_not_asked_for_what_stands_beside_it(of):
    random, fill = np.random.default_rng(8), -np.inf
    given = {name: drawn(random, (30, 30), "ds", "float64", fill, 0.05) for name in "SAB"}
    mask = drawn(random, (30, 30), "ds", "bool", share=0.5)
    mask = {"stored": mask, "value": tp.by_value(mask), "complement": tp.complement(mask)}[of]
    check("Y[i,j] = S[i,j] + A[i,k] * B[k,j]", given, "ds", "max_plus", mask)


@pytest.mark.parametrize("text", ["Y[i,j] = A[i,k] * B[k,j]", "Y[i,j] = S[i,j] + A[i,k] * B[k,j]"])
def test_blocked_results_store_the_blocks_that_have_an_entry(text):
    given = operands_of(np.random.default_rng(2), text, {"i": 8, "k": 6, "j": 8, "l": 1}, "float64")
    found = tp.evaluate(text, given, format=tp.BSR((2, 2)))
    blocks = stored_of(text, given).reshape(4, 2, 4, 2).any(axis=(1, 3))
    assert found.value_count == 4 * blocks.sum()
    np.testing.assert_array_equal(found.to_numpy(), tp.evaluate_dense(text, given))


@pytest.mark.parametrize("outputs", [("Y",), ("Y", "t")])
def test_statements_of_a_text_store_what_each_stores(outputs):
    random, sizes = np.random.default_rng(4), {"i": 8, "k": 20, "j": 6, "l": 1}
    first, second = "t[i] = A[i,k] * u[k]", "Y[i,j] = S[i,j] * t[i]"
    given = operands_of(random, "y[i] = A[i,k] * u[k] * S[i,j]", sizes, "float64")
    formats = {"Y": "ds", "t": "s"}
    found = tp.evaluate(f"{first}; {second}", given, format=formats, outputs=outputs)
    t = tp.evaluate(first, A=given["A"], u=given["u"], format="s")
    wanted = {"t": stored_of(first, given), "Y": stored_of(second, {"S": given["S"], "t": t})}
    for name, each in zip(outputs, found, strict=True):
        np.testing.assert_array_equal(*is_stored_as(each, wanted[name]))


BETWEEN = {
    "R[k,i,j] = A[k,i] * B[i,j]": ("sds", {"A": "sd", "B": "ss"}),
    "R[j,i,k] = A[i,k] * u[j]": ("sds:2,1,0", {"A": "sd:1,0", "u": "s"}),
    "R[k,i,j] = T[k,i,j] + S[k,i,j]": ("sds", {"T": "sds", "S": "sss"}),
    "R[m,k,i,j] = V[m,k] * T[k,i,j]": ("sdds", {"V": "ss", "T": "dss"}),
}


@pytest.mark.parametrize("share", [0.1, 0.4])
@pytest.mark.parametrize("text", BETWEEN)
def test_dense_levels_between_levels_that_store_coordinates(text, share):
    """An entry above them is there where one below is, assembled at once or before its values."""
    random, sizes = np.random.default_rng(9), {"i": 4, "j": 5, "k": 6, "m": 3}
    form, formats = BETWEEN[text]
    operands = text.partition("=")[2].replace("*", "+").split("+")
    modes = {each.strip()[0]: each.strip()[2:-1].split(",") for each in operands}
    given = {
        name: drawn(random, tuple(sizes[mode] for mode in modes[name]), each, "float64", 0, share)
        for name, each in formats.items()
    }
    with always_threads():
        for threads in (1, 3):
            check(text, given, form, threads=threads)
    kernel = tp.compile(text, {**formats, "R": form})
    found = kernel.compute(kernel.assemble(**given), **given)
    np.testing.assert_allclose(found.to_numpy(), tp.evaluate_dense(text, given))


BESIDE_A_SUM = ("min(j, x[j] + {})", "max(j, x[j] - {})", "argmin(j, max(x[j], {}))",
                "argmax(j, {} - x[j])", "min(j, max(stored(x[j]), {}))", "sum(j, cos(x[j] + {}))",
                "all(j, x[j] + {} > 0)")  # fmt: skip


@pytest.mark.parametrize("of", ["sum(i, b[i])", "max(i, b[i])", "b[2]"])
@pytest.mark.parametrize("kind", [np.asarray, sp.coo_array, lambda b: tp.tensor(b, format="s")])
@pytest.mark.parametrize("text", BESIDE_A_SUM)
def test_reductions_of_elements_that_are_absent_beside_a_sum_that_is_not(text, kind, of):
    """The sum is there for all of them."""
    x = tp.tensor(np.array([2.0, 0, 0, -1, 0]), format="s")
    for b in (np.array([1.0, 1, 1, 2]), np.array([0.0, 0, 0, 0])):
        given = {"x": x, "b": kind(b)}
        written = f"R = {text.format(of)}"
        np.testing.assert_allclose(tp.evaluate(written, given), tp.evaluate_dense(written, given))


@pytest.mark.parametrize("text", ["R[i] = {}(j, D[i,j])", "R[i] = {}(j, tan(D[i,j]))"])
@pytest.mark.parametrize("form", ["ss", "sd", "ds"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_reductions_of_elements_with_a_fill_value_alone_are_absent(text, form, name):
    D = np.ones((4, 3))
    D[0, 1], D[2] = 3, (0, -1, 1)
    given = {"D": tp.tensor(D, format=form, fill_value=1)}
    check(text.format(name), given, "s")
