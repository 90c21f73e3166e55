"""What steps of a plan cost beside their loops: copies of dense arrays, and calls of libraries."""

from __future__ import annotations

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class CallCosts:
    """What steps of a plan cost beside their loops: copies of dense arrays, and calls of libraries.

    The last words of a field are its unit (`cost.machine`).
    """

    # ------------------------------------------------------------ dense copies

    copied_element_seconds: float = 1e-9
    """An element of a dense array copied in another order. Measured: 0.3 to 1.1 ns."""
    far_copied_element_seconds: float = 1.6e-9
    """The same of an array beyond the near caches. Measured: 0.8 to 1.7 ns."""
    copy_call_seconds: float = 4e-6
    plan_step_seconds: float = 1e-5
    """A copy of no elements as one more step of a plan. Measured: 7 to 12 µs."""
    conversion_seconds: float = 4e-5
    """A copy of no entries in another format. Measured: 29 µs between CSR and CSC, 33 to 60 others
    whose entries keep their order or are an array's."""
    distribution_seconds: float = 1e-4
    """The same where entries are distributed or sorted by coordinates. Measured: 85 to 130 µs."""
    view_seconds: float = 3e-7
    """A step that shows an array with other modes, or what a kernel stored besides."""
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
