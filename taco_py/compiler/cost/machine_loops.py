"""What loops cost, on the CPU or by each thread of a GPU, and the caches that they read from."""

from __future__ import annotations

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class LoopCosts:
    """What loops cost, on the CPU or by each thread of a GPU, and the caches that they read from.

    The last words of a field are its unit (`cost.machine`).
    """

    # ------------------------------------------------------------ loops

    vector_steps: float = 0.07
    """An iteration of an innermost loop that vectorises, inside loops over lists, on arrays in the
    near caches. Measured: 0.02 to 0.08 for rows of 8 to 32 elements."""
    dense_vector_steps: float = 0.12
    """The same where all loops are dense. Measured: 0.1 to 0.13."""
    function_steps: float = 0.7
    """A function such as exp in a loop that vectorises. Measured: 0.7 in long rows, 1.8 in rows of
    ten elements."""
    called_function_steps: float = 8.0
    """One of the C library, called for each element. Not measured."""
    quick_byte_seconds: float = 4e-12
    compared_byte_seconds: float = 3.5e-11
    slow_byte_seconds: float = 3.2e-11
    function_byte_seconds: float = 6.5e-11
    extremum_seconds: float = 1e-8
    """What instructions of vectors take for each byte that they make, in loops over dense arrays:
    loads, sums and products; elements that a minimum or maximum is taken of; quotients and roots;
    an exponential. And what it takes to find the extremum of the lanes. Fitted to 24 texts of
    65 000 to 16 million floats and doubles, 288 times in all: half of these are priced at 0.82 to
    1.1 of their time."""
    far_byte_seconds: float = 1.4e-11
    memory_byte_seconds: float = 2.7e-11
    """A byte that such loops read or write, of arrays beyond the near caches, and beyond the far
    ones."""
    merge_steps: float = 2.0
    """One coordinate in a loop that merges sparse levels: its branches are hard to predict.
    Measured: 2.3."""
    gallop_ratio: float = 16.0
    """The lengths' ratio of two operands from which galloping through the longer one pays.
    Measured: 0.7 times the speed of a merge at ratio 1, 1.3 at 10, 5 at 100, for 20 000 entries."""
    gallop_merge_steps: float = 2.9
    gallop_exponent: float = 0.4
    """An entry that gallops through r others costs gallop_merge_steps · r ** gallop_exponent merged
    steps. Measured: 2.7, 8.5, 20 and 46 for r = 1, 10, 100 and 1000."""
    scatter_steps: float = 1.3
    """An addition to memory instead of a register. Measured: 0.8."""
    held_row_steps: float = 0.0
    """The same to registers that hold a row of the result while the sums around it run
    (`codegen.passes.panels`)."""
    misordered_array_steps: float = 0.01
    """An iteration, for each dense array that the outer loops do not traverse as it is stored."""
    row_workspace_steps: float = 6.0
    """An addition to a row workspace that meets its element first: marking, gathering and clearing
    it too. Measured, by each addition to it: 8.4, 5.7, 4 and 1.2 where 0.99, 0.9, 0.57 and 0.2 of
    them meet an element first; 22 for short rows that are sorted."""
    row_addition_steps: float = 1.0
    """Any other addition to it. Measured: 0 in rows of 250 and 400 entries, 0.5 where each is a row
    of its own."""
    hash_workspace_steps: float = 10.0
    """An addition to a hash workspace. Measured: 5 where the table is near, 30 where it is not."""
    hash_key_steps: float = 40.0
    """An element of a hash workspace: growing and sorting the table, storing in order. Measured: 31
    for 90 000 elements, 43 for 900 000, 100 to 170 for millions."""
    row_lookup_steps: float = 0.7
    """A query whether a row workspace has an entry, where most coordinates have none."""
    row_lookup_entry_steps: float = 3.0
    """Writing an entry into the queried row workspace, and erasing it. Measured: 2 to 4."""
    row_lookup_loop_steps: float = 3.0
    """A loop of such queries, beside the queries themselves."""
    misprediction_steps: float = 12.0
    """A query whether an entry exists, times the share of the rarer answer. Measured: 6, that is
    0.8 in all where 5 % exist and 3.4 to 4.4 where half do. It is compared with transposed copies,
    which in the caches take 2 to 3 steps an entry, less than transposed_entry_steps."""

    window_steps: float = 9.0
    """A search for the first entry of a tile of coordinates, in each operand. Measured: 9 in rows
    of 12 entries, 11 in two operands of 6 and 9."""

    # ------------------------------------------------------------ caches

    nearest_cache_bytes: int = 1 << 14
    """Rows of the result that stay in the nearest cache while others are read."""
    near_cache_bytes: int = 1 << 19
    """The near caches, as much of them as loops can count on."""
    far_cache_bytes: int = 1 << 24
    """The far caches, as much of them as loops can count on."""
    line_bytes: int = 64
    line_steps: float = 1.5
    """A cache line from beyond the near caches. Measured: 1.8 with its step, for one element of
    each of 20 000 rows of 512 bytes."""
    next_line_steps: float = 0.5
    """The line right behind it. Measured: 0.9 with its eight elements for such rows in any order;
    1.6 to 5 for neighbours from memory."""
    far_line_steps: float = 2.5
    """What a line from beyond the far caches costs more. Measured: 1 to 2 for rows of two lines met
    in any order in 20 MB, 3 to 5 for rows of eight lines in 44 MB."""
    row_by_row_bytes: int = 1 << 10
    """A row of the result from which an array is read as fast row by row. Measured, as a share of
    the time with sums outermost, for arrays of 2 to 100 MB: 1.1 to 0.7 for rows of 128 to 512
    bytes, 0.77 to 0.45 from 1024 bytes."""
    summed_row_bytes: int = 1 << 10
    """A row whose sum in registers is as fast as reading it."""
    short_row_bytes: int = 1 << 8
    """A row whose sum takes longer to add up across lanes than to read. Measured: a tenth of the
    time for sums of products over rows of 16 floats, with the row summed by itself before."""
