"""What products of dense tensors cost in generated code: in loops and in register tiles."""

from __future__ import annotations

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class DenseCosts:
    """What products of dense tensors cost in generated code: in loops and in register tiles.

    The last words of a field are its unit (`cost.machine`).
    """

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
    tile_row_bytes: int = 256
    """A row of a tile. Fewer columns take as long: 41 million products of floats in 32 columns took
    1.66 ms, in 64 columns 0.91."""
    tile_result_byte_seconds: float = 4e-11
    """A byte of the result of tiles. Measured: 0.16 to 0.2 ns a float, of rows that are whole."""
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
    narrow_tile_ratio: int = 4
    """Vectors of columns below which tiles of one matrix are one vector wide. Measured, as a share
    of the time with tiles of 32 doubles, for 300 rows and 300 terms: 0.27 for 8 columns, 0.46 for
    16, 0.72 for 24, 1.0 for 32; of floats 0.17 to 0.5."""
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
