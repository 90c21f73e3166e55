"""Scheduling commands as values. Each prints in full, as TACO's command line wants it written.

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

The schedule of a planned kernel begins with others, which nobody writes:

    loops(i,k,j)                        the loops of one term nest in this order
    make(tiles,8)                       the way that the kernel is made, unless it is loops
    threads(2)                          how many threads run it, where that was found by timing

Those that derive variables are relations of the provenance graph themselves (Senanayake et al.
2020, section 4; the spelling is TACO's).
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
        return f"distribute({_written(self.expression)})"


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
    """Let iterations of the loop over `index` take the lanes of a vector.

    Lanes add up what they have in common, whatever the strategy is. The one that is written is
    TACO's for any loop; its `NoRaces` is not for sums.
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
    """Meet the coordinates that operands have in common over `index` by this strategy."""

    index: str
    merge: Merge

    def __str__(self) -> str:
        return f"mergeby({self.index},{self.merge.value})"


@dataclass(frozen=True, slots=True)
class Precompute:
    """Compute `expression` first, for all values of `indices`, into `workspace`.

    The loops that fill it are over the same indices; later commands call them by the names in
    `copies`. Without a name, a new one is found for the workspace.
    """

    expression: Expr
    indices: tuple[str, ...]
    copies: tuple[str, ...]
    workspace: str = ""

    def __str__(self) -> str:
        parts = (
            _written(self.expression),
            _listed(self.indices),
            _listed(self.copies),
            self.workspace,
        )
        return f"precompute({','.join(part for part in parts if part)})"


@dataclass(frozen=True, slots=True)
class _Rearranging:
    """A command on the statements in loops over one index, which makes no loops of new names."""

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
    """Let statements with a loop over `index` each share one."""

    def __str__(self) -> str:
        return f"loopfuse({self.index})"


def _written(expression: Expr) -> str:
    return to_text(expression).replace("[", "(").replace("]", ")")


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{{{','.join(names)}}}"


@dataclass(frozen=True, slots=True)
class Assemble:
    """Assemble the result, called `tensor`, in this way."""

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

    `reorder` is about every term with its loops, and cannot tell terms with the same loops apart.
    """

    indices: tuple[str, ...]

    def __str__(self) -> str:
        return f"loops({','.join(self.indices)})"


@dataclass(frozen=True, slots=True)
class Make:
    """Make the kernel in this way (`ways.ways`) with these parameters; loops as they nest, unless
    another way is named."""

    way: str = "loops"
    parameters: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"make({','.join((self.way, *map(str, self.parameters)))})"


@dataclass(frozen=True, slots=True)
class Threads:
    """Run a kernel on so many threads, however little it has to do; fewer where fewer may be used.

    Without it there is one thread where the work is less than waking others takes.
    """

    count: int

    def __str__(self) -> str:
        return f"threads({self.count})"


Derivation = Split | Divide | Fuse | Pos | Coord | Bound
Structural = Precompute | Fission | LoopFuse
Marking = Parallelize | Vectorize | Unroll | MergeBy | Assemble | Serial
CompilerCommand = Nest | Make | Threads
"""What planning says of a kernel and nobody writes."""
Command = Distribute | Reorder | Derivation | Structural | Marking | CompilerCommand
