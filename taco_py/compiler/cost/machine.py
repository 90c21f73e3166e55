"""The machine that plans are made for: what its operations cost, and where each choice pays.

    Machine()                                  the nominal machine, `NOMINAL`
    replace(NOMINAL, hash_workspace_steps=100) one whose hash workspaces are ten times dearer

A step is one iteration of an innermost loop that does not vectorise: 1 to 2 ns. The last words of
a field are its unit; a `ratio` or a `share` has none.

`python -m benchmarks.run costs` measures many of these numbers. "Measured" says what it found, in
the unit of the field, with other programs on the same two cores and operands that fit the caches.
The numbers differ a little from what was measured: operands may be larger, and a measured kernel
does more than the one operation. `python -m benchmarks.run chosen` measures whether they choose
good schedules.
"""

from __future__ import annotations

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """The costs of one machine's operations, and the amounts of work from which choices pay."""

    target: str = "c"
    """What kernels run on: the CPU ("c"), a GPU ("cuda"), or one on the CPU ("cuda-emulated")."""
    step_seconds: float = 1.5e-9

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
    """An addition to a row workspace, with its share of gathering the row. Measured: 4 to 10, more
    for longer rows of the result; twice that where rows are sorted."""
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

    # ------------------------------------------------------------ threads

    parallel_iterations: int = 30_000
    """Innermost iterations, of about a nanosecond each, from which waking threads pays. A parallel
    region costs 1 µs where the last one ended less than 3 ms ago, 25 µs later on: for two threads
    2 500 iterations and 30 000 to 50 000. Between these little is lost either way."""
    waking_seconds: float = 5e-6
    """Waking the threads of a region, between what it costs soon and long after the last one."""
    further_thread_share: float = 0.85
    """The part of a kernel's time on one thread that each thread after the first saves. Not
    measured."""

    # ------------------------------------------------------------ dense products in loops

    contiguous_byte_seconds: float = 2.2e-11
    """A byte of each product in a loop along neighbours. Measured: 0.09 ns a product of floats,
    0.17 of doubles."""
    inner_loop_seconds: float = 1e-9
    """One run of an innermost loop along neighbours."""
    lane_sum_seconds: float = 3e-9
    """Adding up the lanes where that loop is a sum. Measured with the loop: 4.5 and 5.2 ns for rows
    of 9 and 25 terms."""
    strided_product_seconds: float = 4e-10
    """A product where the innermost loop strides through an array. Measured: 0.3 to 0.5 ns."""
    far_strided_product_seconds: float = 2e-9
    """What it takes more where that array exceeds strided_cache_bytes. Measured: 2.3 to 2.6 ns."""
    strided_cache_bytes: int = 1 << 18
    """The largest array whose lines stay near while a loop strides through it, or a copy does."""
    vector_bytes: int = 64
    """The vectors in which loops and tiles run along rows."""
    loop_row_columns: int = 8
    """Columns from which loops along the rows of a result do as well as tiles, for little depth."""
    epilogue_terms: int = 512
    """Terms of a dense product's sums up to which all of a sum is made before its epilogue."""
    epilogue_rows: int = 192
    """Rows of a product from which threads share its blocks of rows."""
    static_size_share: float = 0.85
    """The part of its time that a kernel in loops takes with a size compiled in. Not measured."""
    static_size_iterations: int = 1 << 13
    """Iterations from which a kernel with short sizes compiled in pays."""
    streamed_sum_terms: int = 8
    """Terms of a streamed factor's own sum from which the rest of the product is worth a kernel."""

    # ------------------------------------------------------------ dense products in register tiles

    tiled_byte_seconds: float = 5e-12
    """A byte of each product. Measured: 0.02 ns a product of floats."""
    packed_element_seconds: float = 3e-10
    """An element of a matrix that is packed along neighbours. Measured: 0.31 to 0.35 ns."""
    strided_element_seconds: float = 8e-10
    """An element of a matrix that is packed across neighbours. Measured: 0.6 to 0.95 ns."""
    tiled_matrix_seconds: float = 1e-7
    """One matrix of a batch."""
    tile_reuse_products: float = 1.3
    """Products for each element of operands and result from which tiles pay."""
    tile_few_rows: int = 3
    """The most rows or columns that are too few to fill tiles, or depth that loops along rows suit
    better."""
    narrow_tile_columns: int = 32
    """Columns of a batch's matrices below which tiles are no wider than the matrices."""
    transposed_tile_elements: int = 16
    """The least size of both modes for tiles that are transposed in registers."""
    tile_compile_products: float = 1e5
    """Products from which tiles, which take a second more to compile, save that in 10 000 calls."""
    own_kernel_products: float = 4e6
    own_kernel_reuse_products: float = 8
    """Products, and products for each element, from which a factor or an addend of a dense product
    is worth a kernel of its own. Measured, together and apart: 10 and 20 µs for matrices of 64, 39
    and 33 of 96, 55 and 31 of 128, 610 and 175 of 256. Batches with a reuse of 4: 0.8 times the
    speed; of 8: 0.95 to 3 times."""

    # ------------------------------------------------------------ dense copies

    copied_element_seconds: float = 1e-9
    """An element of a dense array copied in another order. Measured: 0.3 to 1.1 ns."""
    far_copied_element_seconds: float = 1.6e-9
    """The same of an array beyond the near caches. Measured: 0.8 to 1.7 ns."""
    copy_call_seconds: float = 4e-6
    plan_step_seconds: float = 1e-5
    """A copy of no elements as one more step of a plan. Measured: 7 to 12 µs."""
    matrix_row_elements: float = 16.0
    """Elements of a row of a product of matrices from which longer ones are no faster."""
    chosen_way_products: float = 32768.0
    """Multiplications of a product of matrices below which it is made by loops: any way takes
    microseconds."""
    copied_row_elements: int = 8
    """Elements of a row from which a loop along a copy is faster in vectors, where it adds to each
    element of the result. Measured: 0.6 times the speed with the copy for 4 to 6."""
    copied_sum_elements: int = 16
    """The same where the loop is a sum. Measured: 0.5 to 0.8 times the speed for 4 to 12."""
    small_factor_ratio: int = 8
    """Iterations for each element of a factor from which its copy takes no time beside them."""
    small_factor_iterations: int = 1 << 17
    """Iterations from which the call that copies takes no time either."""

    # ------------------------------------------------------------ libraries of dense products

    dense_products_per_second: float = 1.5e10
    """Products of doubles; twice as many of floats."""
    memory_bytes_per_second: float = 1e10
    kernel_call_seconds: float = 1e-6
    library_call_seconds: float = 8e-6
    library_matrix_seconds: float = 2e-6
    """Each matrix of a call to a library, beside its products."""
    library_lead_products: float = 2e9
    library_lead_ratio: float = 1.06
    """Products from which generated code takes so many times as long as the library."""
    library_narrow_columns: int = 64
    library_narrow_ratio: float = 1.12
    """Columns or depth up to which the library takes so many times as long as generated code."""
    library_shared_products: float = 2**22
    library_shared_ratio: float = 1.08
    """Products that threads share, and how many times as long the library then takes. Measured:
    512 by 784 by 512 floats, two threads, 2.33 ms, generated 2.13; one thread 2.82 and 2.77."""
    complex_loop_ratio: float = 6.0
    """How many times as long loops over complex numbers take as the library."""
    compile_seconds: float = 0.6
    compile_calls: float = 3e4
    """Compiling a product, and the calls that share that time."""
    lined_up_call_seconds: float = 5e-7
    """A copy of few elements in row-major order on the way of a call. Measured: 0.3 to 0.6 µs."""
    lined_up_least_seconds: float = 1.5e-6
    lined_up_share: float = 0.02
    """What such a copy may take of a call that reads no faster for it: always so long, or this
    share of its least time, where that is below its share in compiling another kernel."""

    # ------------------------------------------------------------ units of a GPU

    launch_seconds: float = 3e-6
    """A launch of a kernel. Not measured."""
    device_bytes_per_second: float = 3.35e12
    """Of global memory. From NVIDIA's data sheet of the H100 SXM, not measured."""
    device_latency_seconds: float = 3e-7
    """A load of global memory. Not measured; publications say 400 to 600 cycles."""
    iteration_latency_seconds: float = 1e-7
    """An iteration of a thread's own loop, of which the compiler has a few under way. Not
    measured."""
    device_instructions_per_second: float = 9e11
    """Of warps, in all: 132 multiprocessors with four schedulers of 1.7 GHz each. From the data
    sheet of the H100 SXM, not measured."""
    device_processors: int = 132
    device_schedulers: int = 4
    """Multiprocessors, and the schedulers of each. From the data sheet of the H100 SXM."""
    device_cache_bytes_per_second: float = 5.5e12
    """From the cache that multiprocessors share. From publications, not measured."""
    device_warp_threads: int = 32
    """Of a warp. From CUDA's programming guide."""
    device_sector_bytes: int = 32
    """The least that moves between memory and threads. From CUDA's programming guide."""
    unknown_rows_ratio: float = 4.0
    """How many times the mean the longest row of an operand is, where rows are not counted."""
    iteration_instructions: float = 12.0
    """An innermost iteration of a warp: loads, 64-bit positions, a product and a sum. Not
    measured."""
    combine_iterations: float = 3.0
    """Combining what the threads of a warp have, in such iterations; four times as many for a
    block, whose threads wait for each other twice. Not measured."""
    hidden_share: float = 0.1
    """What is not hidden of memory behind instructions, and the other way round. Not measured."""
    atomic_seconds: float = 1e-11
    """An atomic addition, where many are under way. Not measured."""
    search_iterations: float = 24.0
    """Looking for the first and the last row of a range of entries of 65 536 rows. Not measured."""
    strided_ratio: float = 1.5
    """How many times the bytes of a row move where each thread walks a row of its own: what is
    left of a sector may be gone when it is needed. Not measured."""

    @property
    def is_gpu(self) -> bool:
        """Tell whether kernels run on a GPU, emulated or not."""
        return self.target.startswith("cuda")

    @property
    def teams(self) -> bool:
        """Tell whether threads are few and take large ranges of a loop, with memory of their
        own."""
        return not self.is_gpu

    def copied_element(self, nbytes: float) -> float:
        """Return the seconds of each element of a dense copy of so many bytes."""
        near = nbytes <= self.near_cache_bytes
        return self.copied_element_seconds if near else self.far_copied_element_seconds

    def __hash__(self) -> int:
        """Return a hash in constant time, for machines are parts of many keys and seldom differ."""
        return hash(self.step_seconds)

    @property
    def vector_scatter_steps(self) -> float:
        """What an addition to memory costs more in an innermost loop that vectorises. Measured:
        0.05 for rows of 16 to 64 elements in the near caches."""
        return self.vector_steps * (self.scatter_steps - 1.0)

    @property
    def lane_sum_steps(self) -> float:
        """Return `lane_sum_seconds` in steps."""
        return self.lane_sum_seconds / self.step_seconds

    @property
    def quickest_steps(self) -> float:
        """Return the least that an innermost iteration costs, in loops or as a dense product."""
        return min(self.vector_steps, 1 / self.dense_products_per_second / self.step_seconds)


NOMINAL = Machine()
"""The machine that plans are made for where no other is given."""

UNAVAILABLE = 1e5
"""Steps of what kernels of a machine do not do: plans without it take less, however they do it."""


ON_HOST = 3.0
"""How many times more a copy in another order weighs beside the steps of kernels than on a CPU: its
entries go to the host and back. More would take orders of loops that store what no product is in.
Not measured."""


def gpu(target: str) -> Machine:
    """Return a GPU: no hash tables over several indices, and copies in another order on the
    host."""
    return Machine(
        target,
        hash_workspace_steps=UNAVAILABLE,
        hash_key_steps=UNAVAILABLE,
        transposed_entry_steps=NOMINAL.transposed_entry_steps * ON_HOST,
        transposed_row_steps=NOMINAL.transposed_row_steps * ON_HOST,
        sorted_entry_steps=NOMINAL.sorted_entry_steps * ON_HOST,
    )


MACHINES: dict[str, Machine] = {
    "c": NOMINAL,
    "cuda": gpu("cuda"),
    "cuda-emulated": gpu("cuda-emulated"),
}
"""The machines by what `target=` calls them."""
