"""Scheduling commands as values. Each prints in full, in the syntax of TACO's command line.

    distribute((A(i,j)+B(i,j))*x(j))    a product multiplied out: loops for each of its terms
    reorder(i,k,j)                      these loops nest in this order
    split(i,i0,i1,32)                   tiles of 32 of i
    divide(i,i0,i1,4)                   4 tiles of i
    fuse(i,j,f)                         one loop over the pairs of i and j
    pos(j,p,A)                          the stored entries of A instead of coordinates of j
    coord(p,c)                          coordinates again, of a range of entries
    bound(i,b,100,MaxExact)             a promise about the range of i
    parallelize(i,CPUThread,NoRaces)    share the iterations of i among threads
    parallelize(i,GPUBlock,NoRaces)     among a GPU's blocks; GPUWarp, GPUThread: parts of a block
    unroll(i,4)                         four iterations of i one after another in the code
    parallelize(i,CPUVector,IgnoreRaces)  iterations of i in the lanes of a vector; or vectorize(i)
    mergeby(i,Gallop)                   operands leap to each other's coordinates
    precompute(A(i,k)*B(k,j),j,jw,w)    a part of a value first, in a workspace over j
    fission(i)                          a loop over i for each of the statements in it
    loopfuse(i)                         one loop over i for statements that have one each
    assemble(C,Insert)                  entries of C are counted first, then written in place
    serial()                            share no loop

The schedule of a planned kernel begins with further commands, which users do not write:

    loops(i,k,j)                        the loops of one term nest in this order
    make(tiles,8)                       the way that the kernel is computed, unless it is loops
    threads(2)                          the number of threads, where it was chosen by timing

Commands that derive variables are relations of the provenance graph (Senanayake et al. 2020,
section 4; the syntax is TACO's).
"""

from __future__ import annotations

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Assembly, Merge, Race, Unit
from taco_py.language.notation.nodes import Expr
from taco_py.language.notation.printer import to_text
from taco_py.language.provenance.relations import Bound, Coord, Divide, Fuse, Pos, Split


@dataclass(frozen=True, slots=True)
class Distribute:
    """Multiply the term `expression` out, so that each of its products is a term with loops."""

    expression: Expr

    def __str__(self) -> str:
        return f"distribute({_expression_text(self.expression)})"


@dataclass(frozen=True, slots=True)
class Reorder:
    """Nest the loops over `indices` in this order, the first outermost."""

    indices: tuple[str, ...]

    def __str__(self) -> str:
        return f"reorder({','.join(self.indices)})"


@dataclass(frozen=True, slots=True)
class Parallelize:
    """Share the iterations of the loop over `index` among threads, or other units of a GPU."""

    index: str
    race: Race = Race.NONE
    unit: Unit = Unit.CORE

    def __str__(self) -> str:
        return f"parallelize({self.index},{self.unit.value},{self.race.value})"


@dataclass(frozen=True, slots=True)
class Vectorize:
    """Execute iterations of the loop over `index` in the lanes of a vector.

    Lanes reduce common elements for any strategy. The printed strategy is the one that TACO accepts
    for any loop; its `NoRaces` excludes sums.
    """

    index: str

    def __str__(self) -> str:
        return f"parallelize({self.index},CPUVector,IgnoreRaces)"


@dataclass(frozen=True, slots=True)
class Unroll:
    """Write `factor` iterations of the loop over `index` one after another."""

    index: str
    factor: int

    def __str__(self) -> str:
        return f"unroll({self.index},{self.factor})"


@dataclass(frozen=True, slots=True)
class MergeBy:
    """Intersect the coordinates of operands over `index` by this strategy."""

    index: str
    merge: Merge

    def __str__(self) -> str:
        return f"mergeby({self.index},{self.merge.value})"


@dataclass(frozen=True, slots=True)
class Precompute:
    """Compute `expression` first, for all values of `indices`, into `workspace`.

    The loops that fill it are over the same indices; later commands refer to them by the names in
    `copies`. A workspace without a name gets a new one.
    """

    expression: Expr
    indices: tuple[str, ...]
    copies: tuple[str, ...]
    workspace: str = ""

    def __str__(self) -> str:
        parts = (
            _expression_text(self.expression),
            _names_text(self.indices),
            _names_text(self.copies),
            self.workspace,
        )
        return f"precompute({','.join(part for part in parts if part)})"


@dataclass(frozen=True, slots=True)
class _Rearranging:
    """A command on the statements in loops over one index, which introduces no new names."""

    index: str

    @property
    def indices(self) -> tuple[str, ...]:
        return (self.index,)


@dataclass(frozen=True, slots=True)
class Fission(_Rearranging):
    """Give each statement in the loop over `index` a loop of its own."""

    def __str__(self) -> str:
        return f"fission({self.index})"


@dataclass(frozen=True, slots=True)
class LoopFuse(_Rearranging):
    """Fuse the loops over `index` of several statements."""

    def __str__(self) -> str:
        return f"loopfuse({self.index})"


def _expression_text(expression: Expr) -> str:
    return to_text(expression).replace("[", "(").replace("]", ")")


def _names_text(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{{{','.join(names)}}}"


@dataclass(frozen=True, slots=True)
class Assemble:
    """Assemble the result, called `tensor`, by this strategy."""

    tensor: str
    assembly: Assembly

    def __str__(self) -> str:
        return f"assemble({self.tensor},{self.assembly.value})"


@dataclass(frozen=True, slots=True)
class Serial:
    """Use one thread."""

    def __str__(self) -> str:
        return "serial()"


@dataclass(frozen=True, slots=True)
class Nest:
    """Nest the loops of one term in this order, the first outermost: one command for each term.

    `reorder` applies to every term with its loops, and cannot distinguish terms with the same
    loops.
    """

    indices: tuple[str, ...]

    def __str__(self) -> str:
        return f"loops({','.join(self.indices)})"


@dataclass(frozen=True, slots=True)
class Make:
    """Compute the kernel in this way (`ways.ways`) with these parameters; by default, by its
    loops."""

    way: str = "loops"
    parameters: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"make({','.join((self.way, *map(str, self.parameters)))})"


@dataclass(frozen=True, slots=True)
class Threads:
    """Run a kernel on this number of threads, however small its work; fewer where a limit is lower.

    Without it there is one thread where the work is less than the cost of waking others.
    """

    count: int

    def __str__(self) -> str:
        return f"threads({self.count})"


Derivation = Split | Divide | Fuse | Pos | Coord | Bound
Structural = Precompute | Fission | LoopFuse
Marking = Parallelize | Vectorize | Unroll | MergeBy | Assemble | Serial
CompilerCommand = Nest | Make | Threads
"""Commands of the planner, which users do not write."""
Command = Distribute | Reorder | Derivation | Structural | Marking | CompilerCommand
