"""The way that calls a library's routine for products of matrices: nothing is compiled."""

from __future__ import annotations

from codegen.runtime.signature import Kind, Parameter
from codegen.types import INT32, scalar
from taco_py.compiler.lower.bindings import Source
from taco_py.compiler.ways.contraction_match import product_of
from taco_py.compiler.ways.library_choice import library_reason
from taco_py.compiler.ways.library_product import accesses_of, product_text
from taco_py.compiler.ways.recipe import Recipe, Routine, dense_facts
from taco_py.compiler.ways.tiles import product_seconds, tile_width
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.problem import Problem


def can(question: Question) -> bool:
    """Tell whether a routine computes a problem."""
    return question.recall(product_of) is not None and product_text(question.problem) is not None


def choose(question: Question) -> Offer | None:
    """Return a routine for products with reuse, where it is faster than generated code.

    The library must be allowed.
    """
    if question.libraries is None or question.recall(tile_width) is None:
        return None
    reason = library_reason(question.problem, question.stats, question.libraries)
    return None if reason is None else Offer(reason=reason)


def routine(recipe: Recipe) -> Routine:
    """Return the routine for a product of matrices."""
    text = product_text(recipe.problem)
    if text is None:
        raise InternalError(f"Expected a product of matrices, found {recipe.problem}")
    facts = dense_facts(recipe, "as the library does it")
    return Routine(
        "codegen.runtime.blas:library_product",
        text,
        _parameters(recipe.problem, facts["threaded"]),
        facts,
        f"/* {str(recipe.problem).replace('*/', '* /')}\n *\n * {text} by a library\n */\n",
    )


def _parameters(problem: Problem, threaded: bool) -> tuple[tuple[Parameter, Source | None], ...]:
    """Return the parameters of the routine: result, left, right and threads."""
    left, right, result = accesses_of(problem)
    element = scalar(problem.result.dtype)
    arrays = tuple(
        (Parameter(f"{access.tensor}_vals", kind, element), Source("values", access.tensor))
        for access, kind in ((result, Kind.OUTPUT), (left, Kind.INPUT), (right, Kind.INPUT))
    )
    threads = ((Parameter("threads", Kind.THREADS, INT32), None),) if threaded else ()
    return (*arrays, *threads)


WAY = Way("library", can, choose, routine=routine, reuses=True, seconds=product_seconds)
