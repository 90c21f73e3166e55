"""Places of extrema, value and place carried through one loop.

    a[i] = argmax(j, X[i,j])    X dense, or its rows lists of entries

Contiguous lines are searched by `line_places`, contiguous columns by `row_places`, lines with
interleaved entries by `entry_places`.
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.build import add, block, cast, const, load_index, minimum, mul, sub
from codegen.ir import Array, Block, Declare, Expr, For, Function, Module, Stmt, Storage, Store, Var
from codegen.machine.target import Target
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import scalar
from taco_py.compiler.lower.bindings import Source
from taco_py.compiler.ways.arrays import StridedTensor, size_bindings, tensor_of
from taco_py.compiler.ways.place_match import Walk, walk, walk_of
from taco_py.compiler.ways.places.entry_places import Lines
from taco_py.compiler.ways.places.line_places import place_among_entries, place_in_line
from taco_py.compiler.ways.places.place_elements import Elements, nested, offset, shared
from taco_py.compiler.ways.places.row_places import places_across, width_across
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, dense_facts
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.legal.stored import is_full


def can(question: Question) -> bool:
    """Tell whether a problem is the place of an extremum of one tensor."""
    return question.recall(walk) is not None


def choose(question: Question) -> Offer | None:
    """Return the offer for every such problem: loops would read the elements twice."""
    reason = "value and place in one loop over the elements"
    return Offer(reason=reason) if can(question) else None


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of the place of an extremum."""
    search = walk_of(recipe.problem)
    if search is None:
        raise InternalError(f"Expected the place of an extremum, found {recipe.problem}")
    kernel = _Kernel.of(recipe, search)
    body = kernel.body()
    arrays: tuple[Array, ...] = (kernel.result.array, kernel.elements.array)
    arrays = (*arrays, *kernel.arrays.values())
    scalars = tuple(scalar_ for scalar_ in kernel.scalars if isinstance(scalar_, Var))
    function = Function(recipe.phase, arrays, scalars, body, threaded=True)
    name, index = "largest" if search.is_maximum else "least", search.place.index
    plan = f"the place of the {name} along {index}, {kernel.manner}"
    is_shared = not kernel.arrays or kernel.in_lines
    shared_text = "the outermost loop" if is_shared else "none: entries of a line are apart"
    facts = dense_facts(recipe, shared_text, plan)
    facts["threaded"] = facts["threaded"] and is_shared
    if kernel.arrays:
        facts["requirements"] = [[search.access.tensor, True, True]]
    names = {array.name for array in arrays} | {var.name for var in scalars}
    bindings = tuple((n, source) for n, source in kernel.bindings.items() if n in names)
    return LoweredRecipe(Module((function,), recipe.header(plan)), bindings, facts)


@dataclass(frozen=True, slots=True)
class _Kernel:
    """Writes the kernel.

    arrays   pos and crd arrays of sparse levels
    steps    the strides of a dense operand, by the index of each level
    """

    recipe: Recipe
    walk: Walk
    sizes: Mapping[str, Expr]
    elements: Elements
    result: StridedTensor
    arrays: Mapping[tuple[str, int], Array]
    steps: Mapping[str, Expr]
    bindings: Mapping[str, Source]

    @staticmethod
    def of(recipe: Recipe, walk: Walk) -> _Kernel:
        problem, names = recipe.problem, Names()
        sizes, bindings = size_bindings(problem, names)
        result = tensor_of(problem, problem.assignment.target.tensor, names, bindings)
        tensor = walk.access.tensor
        type = problem.type_of(tensor)
        values = Array(names.fresh(f"{tensor}_vals"), scalar(type.element), Storage.INPUT)
        bindings[values.name] = Source("values", tensor)
        arrays: dict[tuple[str, int], Array] = {}
        steps: dict[str, Expr] = {}
        for place, level in enumerate(type.format.levels):
            for what in level.arrays:
                wish = f"{tensor}{place + 1}_{what}"
                array = Array(names.fresh(wish), scalar(type.index_dtype), Storage.INPUT)
                bindings[array.name] = Source(what, tensor, place)
                arrays[what, place] = array
        if is_full(type.format):
            for place, index in enumerate(walk.levels):
                last = type.unit_stride and place == len(walk.levels) - 1
                step: Expr = const(1)
                if not last:
                    step = Var(names.fresh(f"{tensor}{place + 1}_stride"))
                    bindings[step.name] = Source("stride", tensor, place)
                steps[index] = step
        elements = Elements.of(walk, values, type.dtype, names)
        return _Kernel(recipe, walk, sizes, elements, result, arrays, steps, bindings)

    @property
    def scalars(self) -> tuple[Expr, ...]:
        used = {*self.walk.levels}
        sizes = (size for index, size in self.sizes.items() if index in used)
        return (*sizes, *self.steps.values(), *self.result.strides)

    @property
    def manner(self) -> str:
        """Return how elements are searched, for explain()."""
        if self.arrays:
            per_line = "" if self.in_lines else ", each line with its best so far"
            return f"of entries{per_line}, and the first gap between them where that is as good"
        if self.along_rows:
            return "of blocks of neighbours, then in the block that has it"
        return "of rows of neighbours, each with its place"

    @property
    def along_rows(self) -> bool:
        """Tell whether contiguous elements are compared with each other."""
        return self.walk.levels[-1] == self.walk.place.index

    def stored(self, places: Mapping[str, Expr], value: Expr) -> Stmt:
        """Return the store of a place in the result."""
        problem = self.recipe.problem
        loops = problem.stored(problem.assignment.target)
        strides = dict(zip(loops, self.result.strides, strict=True))
        array = self.result.array
        return Store(array, offset(strides, places), cast(array.element, value))

    def body(self) -> Block:
        """Return all loops."""
        if self.arrays:
            return self.of_entries()
        index, levels = self.walk.place.index, self.walk.levels
        other_levels = [level for level in levels if level != index]
        if self.along_rows:
            loops = {level: self.elements.var(level) for level in other_levels}
            base = offset(self.steps, loops)
            step = self.steps[index]
            inside, _, at = place_in_line(
                self.elements, const(0), self.sizes[index], lambda q: add(base, mul(q, step))
            )
            nest = [(var, self.sizes[level]) for level, var in loops.items()]
            return block(nested(nest, [*inside, self.stored(loops, at)]))
        *outer, near = other_levels
        loops = {level: self.elements.var(level) for level in outer}
        return block(
            nested(
                [(var, self.sizes[level]) for level, var in loops.items()],
                [self.columns(loops, near, is_shared=not outer)],
            )
        )

    def columns(self, loops: Mapping[str, Var], near: str, is_shared: bool) -> Stmt:
        """Return the loop over blocks of contiguous columns."""
        index, first = self.walk.place.index, self.elements.var("first")
        base = offset(self.steps, loops)
        row, column = self.steps[index], self.steps[near]
        width = width_across(self.elements.element)
        count = self.elements.var("count")
        size = minimum(sub(self.sizes[near], first), width)
        inside = places_across(
            self.elements,
            self.sizes[index],
            (first, count),
            lambda i, j: add(base, mul(i, row), mul(j, column)),
            lambda j, place: self.stored({**loops, near: j}, place),
        )
        body = block(Declare(count, size, True), *inside)
        loop = For(first, const(0), self.sizes[near], body, step=width)
        return shared(loop) if is_shared else loop

    def of_entries(self) -> Block:
        """Return loops over the levels of a sparse operand."""
        levels, last = self.walk.levels, self.walk.place.index
        size = mul(*(self.sizes[i] for i in levels if i != last))
        if not self.in_lines:
            lines = Lines.of(self.elements)
            entries = self.level(0, const(0), {}, is_shared=False, lines=lines)
            order = self.recipe.problem.stored(self.recipe.problem.assignment.target)
            loops = {index: self.elements.var(index) for index in order}
            inside, place = lines.end(self.number(loops), self.sizes[last])
            nest = [(var, self.sizes[index]) for index, var in loops.items()]
            store = nested(nest, [*inside, self.stored(loops, place)], is_shared=False)
            return block(*lines.begin(size), entries, store)
        return block(self.level(0, const(0), {}, is_shared=True))

    @property
    def in_lines(self) -> bool:
        """Tell whether the entries of each line are contiguous, below levels that have all
        lines."""
        *above, _ = self.recipe.problem.type_of(self.walk.access.tensor).format.levels
        return self.along_rows and all(level.full for level in above)

    def number(self, loops: Mapping[str, Expr]) -> Expr:
        """Return the number of an element of the result."""
        number: Expr = const(0)
        for index in self.recipe.problem.stored(self.recipe.problem.assignment.target):
            number = add(mul(number, self.sizes[index]), loops[index])
        return number

    def level(
        self,
        depth: int,
        parent: Expr,
        loops: Mapping[str, Expr],
        is_shared: bool,
        lines: Lines | None = None,
    ) -> Stmt | Block:
        """Return the loop over a level below a position of the one above it."""
        if depth == len(self.walk.levels):
            assert lines is not None
            coordinate = loops[self.walk.place.index]
            return block(*lines.visit(self.number(loops), coordinate, parent))
        index, var = self.walk.levels[depth], self.elements.var
        pos, crd = (self.arrays.get((what, depth)) for what in ("pos", "crd"))
        if lines is None and depth == len(self.walk.levels) - 1:
            assert pos is not None and crd is not None
            entries = load_index(pos, parent), load_index(pos, add(parent, 1))
            inside, answer = self.line(entries, crd, index)
            return block(*inside, self.stored(loops, answer))
        if crd is None:
            place = var(index)
            position = add(mul(parent, self.sizes[index]), place)
            body = self.level(depth + 1, position, {**loops, index: place}, False, lines)
            loop = For(place, const(0), self.sizes[index], block(body))
            return shared(loop) if is_shared else loop
        if pos is None:
            coordinates = {**loops, index: load_index(crd, parent)}
            return self.level(depth + 1, parent, coordinates, False, lines)
        place = var(f"p_{index}")
        start, stop = load_index(pos, parent), load_index(pos, add(parent, 1))
        coordinates = {**loops, index: load_index(crd, place)}
        return For(
            place, start, stop, block(self.level(depth + 1, place, coordinates, False, lines))
        )

    def line(self, entries: tuple[Expr, Expr], crd: Array, index: str) -> tuple[list[Stmt], Var]:
        """Return the statements that find the place in one line of entries, and the place."""
        first, stop = self.elements.var("first"), self.elements.var("stop")
        inside, answer = place_among_entries(self.elements, (first, stop), crd, self.sizes[index])
        head: list[Stmt] = [Declare(first, entries[0], True), Declare(stop, entries[1], True)]
        return [*head, *inside], answer


WAY = Way("places", can, choose, lower)
