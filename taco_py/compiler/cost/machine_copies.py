"""What copies of sparse operands and temporaries cost, and where they pay."""

from __future__ import annotations

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class CopyCosts:
    """What copies of sparse operands and temporaries cost, and where they pay.

    The last words of a field are its unit (`cost.machine`).
    """

    # ------------------------------------------------------------ copies and temporaries

    transposed_entry_steps: float = 10.0
    """An entry of a sparse matrix that is transposed. Measured: 5 for 40 000 entries, 9 for a
    million, 22 for 5 million."""
    transposed_row_steps: float = 1.0
    """A row of the transposed matrix. Measured: 0.7 for 100 000 rows, 1.3 for 16 million."""
    sorted_entry_steps: float = 35.0
    """An entry of a coordinate list, or of a tensor of three or more modes, in a copy with another
    order of modes: its coordinates are sorted. Measured: 16 in the caches, 25 to 37 beyond."""
    folded_entry_steps: float = 5.0
    """An entry of a coordinate list that is copied in its own order. Measured: 4 to 7."""
    temporary_entry_steps: float = 4.0
    """Writing and reading an entry of a sparse temporary, beside the loops. Measured: 2 to write
    it."""
    dense_temporary_element_steps: float = 0.5
    """Writing and reading an element of a dense temporary, beside the loops."""
    own_element_steps: float = 3.0
    """The same of an element of a thread's own copy of a result: most of it is for pages of memory
    that are met first. Measured under load: 5 to 10 ns."""
    near_element_steps: float = 0.12
    near_row_steps: float = 0.3
    """The same of an element that is read again before it leaves the near caches, and of the loop
    over a row of such elements."""
    dense_root_row_steps: float = 2.0
    """A row, empty or not, of a CSR copy of a matrix that stores no empty rows. Measured: 9 with
    the ten entries of the row."""
    full_share: float = 0.7
    """The stored share of its elements from which a temporary is dense. Measured, as a share of the
    time in CSR: 0.6 to 0.7 between two products where 0.9 are stored, 0.1 to 0.4 beside a dense
    factor; 1.3 and 0.4 to 0.5 where 0.4 are stored."""
    few_rows_share: float = 0.25
    """The share of its rows up to which a temporary stores no empty ones."""
    dense_elements: int = 1 << 24
    """The most elements of a temporary that is dense though its operands are sparse."""
    gathered_share: float = 0.1
    """The stored share from which a result with dense inner levels is made as an array and its
    blocks are gathered, where loops meet it out of order."""
    gathered_elements: int = 1 << 22
    """The most elements of such an array."""
    cleared_element_steps: float = 0.2
    marked_entry_steps: float = 3.5
    placed_block_steps: float = 3.0
    gathered_element_steps: float = 0.5
    """Of such an array: clearing an element, an entry that marks its block as stored, a stored
    block, gathering an element of it. Measured: 0.2, 3.5, 3 and 0.4 to 0.6 for an array of 20 MB,
    half of whose blocks of ten are stored."""
    sparse_row_entries: float = 0.1
    """Entries a row up to which the copy of a coordinate list stores no empty rows."""
    vast_size_bits: int = 24
    """Bits of a size above which an array over that index is too long for few entries."""
    vast_margin_bits: int = 6
    """By how many bits the number of entries is smaller then."""
    detour_gain: float = 1.5
    """How many times cheaper a temporary, or a copy that is not necessary, makes the whole."""
    dense_detour_gain: float = 1.25
    """The same for a dense temporary or a dense copy, whose sizes are certain."""
