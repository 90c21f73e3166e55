"""A backend that does other things than it says gives an error, a warning or right numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.backends.read_only import detach_results, read_only

x = np.linspace(0.1, 1.0, 12).reshape(3, 4)


def registered(name: str, runtime: Callable[..., Any], **more: Any) -> tuple[str, ...]:
    """A backend that has every exponential."""
    options: dict[str, Any] = {"launch": 1e-9, "always": "seconds" not in more, **more}
    supports = options.pop("supports", lambda node, facts: node.get("function") == "exp")
    codegen = options.pop("codegen", lambda region, constants: region)
    tp.register_backend(
        tp.Backend(name, (), supports=supports, codegen=codegen, runtime=runtime, **options)
    )
    return (name,)


def told(fused: Any, *operands: Any) -> tuple[Any, list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fused(*operands)
    return found, [each for each in caught if issubclass(each.category, tp.BackendWarning)]


def exp_of(arrays: Sequence[Any]) -> Any:
    return np.exp(arrays[0])


def wipes(region: Any, arrays: Sequence[Any]) -> Any:
    found = exp_of(arrays)
    arrays[0][...] = 0
    return found


WRONG: dict[str, Callable[..., Any]] = {
    "wipes": wipes,
    "nothing": lambda region, arrays: None,
    "no_array": lambda region, arrays: [],
    "two_arrays": lambda region, arrays: [exp_of(arrays)] * 2,
    "shape": lambda region, arrays: [exp_of(arrays)[:, :1]],
    "turned": lambda region, arrays: [exp_of(arrays).T],
    "dtype": lambda region, arrays: [exp_of(arrays).astype(np.float32)],
    "objects": lambda region, arrays: [exp_of(arrays).astype(object)],
    "text": lambda region, arrays: "done",
    "numbers": lambda region, arrays: exp_of(arrays).tolist(),
    "generator": lambda region, arrays: (each for each in [exp_of(arrays)]),
    "masked": lambda region, arrays: [np.ma.masked_array(exp_of(arrays))],
    "raises": lambda region, arrays: [].pop(),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_result_is_noticed(name: str) -> None:
    operand = x.copy()
    fused = tp.fuse(lambda x: np.exp(x) @ x.T, backends=registered(f"lies_{name}", WRONG[name]))
    found, caught = told(fused, operand)
    np.testing.assert_allclose(found, np.exp(x) @ x.T)
    np.testing.assert_array_equal(operand, x)
    assert len(caught) == 1 and f"lies_{name}" in str(caught[0].message)
    assert not told(fused, operand)[1], "it is told once"


SECONDS: dict[str, Any] = {
    "text": "soon", "nan": float("nan"), "none": None, "negative": -1.0, "array": np.ones(2),
    "complex": 1j, "list": [1.0],
}  # fmt: skip


@pytest.mark.parametrize("name", SECONDS)
def test_seconds_that_are_no_number_are_noticed(name: str) -> None:
    backends = registered(
        f"seconds_{name}", lambda r, a: [exp_of(a)], seconds=lambda r, f: SECONDS[name]
    )
    found, caught = told(tp.fuse(lambda x: np.cumsum(np.exp(x)), backends=backends), x)
    np.testing.assert_allclose(found, np.cumsum(np.exp(x)))
    assert len(caught) == 1 and "to say its costs" in str(caught[0].message)


def test_a_rule_that_is_no_truth_is_noticed() -> None:
    backends = registered("unsure", exp_of, supports=lambda node, facts: np.ones(2))
    found, caught = told(tp.fuse(lambda x: np.exp(x) + 1, backends=backends), x)
    np.testing.assert_allclose(found, np.exp(x) + 1)
    assert len(caught) == 1


@pytest.mark.parametrize("more", [{"launch": "soon"}, {"bytes_per_second": "many"},
                                  {"launch": float("nan")}, {"most_primitives": "few"},
                                  {"most_primitives": 0}])  # fmt: skip
def test_costs_are_numbers(more: dict[str, Any]) -> None:
    with pytest.raises(tp.ScheduleError, match="Expected"):
        registered("costs", exp_of, **more)


def test_what_a_backend_keeps_is_not_handed_out() -> None:
    buffer = np.empty_like(x)

    def reuses(region: Any, arrays: Sequence[Any]) -> Any:
        np.exp(arrays[0], out=buffer)
        return buffer

    fused = tp.fuse(lambda x: np.exp(x), backends=registered("reuses", reuses))
    first, caught = told(fused, x)
    fused(2 * x)
    assert not caught
    np.testing.assert_allclose(first, np.exp(x))

    kept: list[Any] = []

    def remembers(region: Any, arrays: Sequence[Any]) -> Any:
        kept[:] = [np.exp(arrays[0])]
        return kept

    fused = tp.fuse(lambda x: np.exp(x), backends=registered("remembers", remembers))
    first = fused(x)
    kept[0][...] = 0
    np.testing.assert_allclose(first, np.exp(x))


def test_results_that_share_memory_are_told_apart() -> None:
    def shares(region: Any, arrays: Sequence[Any]) -> Any:
        one = np.exp(arrays[0])
        return [one, one]

    backends = registered("shares", shares, supports=lambda n, f: n.operator == "map")
    fused = tp.fuse(lambda x: (np.exp(x), np.exp(x) * 1.0), backends=backends)
    one, other = fused(x)
    assert not np.shares_memory(one, other)


def test_constants_cannot_be_written_to() -> None:
    weights = np.ones((3, 4))

    def wipes_constants(region: Any, constants: Any) -> Any:
        for each in (*constants.values(), *(c.value for c in region.constants)):
            each[...] = 0
        return region

    backends = registered(
        "wipes_constants", lambda r, a: [exp_of(a)], codegen=wipes_constants,
        supports=lambda n, f: n.get("function") in ("exp", "multiply"),
    )  # fmt: skip
    found, caught = told(tp.fuse(lambda x: np.exp(x * weights), backends=backends), x)
    np.testing.assert_allclose(found, np.exp(x))
    assert weights.all() and len(caught) == 1


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_sparse_operands_cannot_be_written_to(form: str) -> None:
    matrix = sp.csr_array(np.diag([1.0, 2.0, 3.0])).asformat(form)
    shown = read_only(matrix)
    np.testing.assert_array_equal(shown.toarray(), matrix.toarray())
    assert type(shown) is type(matrix)
    for name in ("data", "indices", "indptr", "offsets"):
        part = getattr(shown, name, None)
        if isinstance(part, np.ndarray) and form not in ("lil", "dok"):
            assert not part.flags.writeable
            assert np.shares_memory(part, getattr(matrix, name))
    held = read_only(tp.tensor(sp.csr_array(matrix)))
    assert not held.data.values.flags.writeable
    assert not any(
        a.flags.writeable for e in held.data.levels for a in (e.pos, e.crd) if a is not None
    )


def test_results_of_their_own_are_not_copied() -> None:
    def made() -> list[Any]:
        return [np.ones(3), np.ones((2, 3)).T, np.float64(1.0)]

    found = made()
    places = [np.asarray(each).__array_interface__["data"] for each in found[:2]]
    own = detach_results(found, ())
    assert [each.__array_interface__["data"] for each in own[:2]] == places
