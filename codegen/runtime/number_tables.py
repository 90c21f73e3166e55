"""A kernel that reads tables of numbers from text: the C in `text_table.c`, with what it needs.

#define TEXT_INDEX int32_t
#define TEXT_POWERS 0xeef453d6923bd65a, 0x113faa2906a13b3f, …
…
"""

from __future__ import annotations

from pathlib import Path

from codegen.runtime.kernel_cache import KernelSource
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.types import INT32, INT64, UINT8, UINT64, ScalarType

LOWEST, HIGHEST = -342, 308
"""The powers of ten that a double may have, with 19 digits before them."""


def power_of_five(exponent: int) -> int:
    """Return the upper 128 bits of 5^exponent, which the reciprocals of powers exceed by less than
    one.

    >>> hex(power_of_five(1)), hex(power_of_five(-1))
    ('0xa0000000000000000000000000000000', '0xcccccccccccccccccccccccccccccccd')
    """
    power: int = 5 ** abs(exponent)
    length = power.bit_length()
    if exponent >= 0:
        return power << 128 - length if length <= 128 else power >> length - 128
    return (1 << length + 127) // power + 1


def table_source(index: ScalarType) -> KernelSource:
    """Return the kernel whose coordinates are of type `index`."""
    powers = [power_of_five(q) for q in range(LOWEST, HIGHEST + 1)]
    words = (f"{power >> 64:#x}, {power & (2**64 - 1):#x}" for power in powers)
    text = (Path(__file__).parent / "text_table.c").read_text()
    defined = f"#define TEXT_INDEX {index.c}\n#define TEXT_POWERS {', '.join(words)}\n"
    return KernelSource(defined + text, (count_signature(), read_signature(index)), index.name)


def count_signature() -> Signature:
    """Return the parameters of `text_count_lines`."""
    return Signature(
        "text_count_lines",
        (
            Parameter("text", Kind.INPUT, UINT8),
            Parameter("starts", Kind.INPUT, INT64),
            Parameter("lines", Kind.OUTPUT, INT64),
            Parameter("chunks", Kind.SCALAR, INT64),
            Parameter("threads", Kind.THREADS, INT32),
        ),
    )


def read_signature(index: ScalarType) -> Signature:
    """Return the parameters of `text_read_table`."""
    inputs = [("starts", INT64), ("first", INT64), ("sizes", INT64)]
    outputs = [("rows", INT64), ("columns", index), ("values", UINT64)]
    scalars = ("chunks", "lines", "digits", "numbers", "kind")
    return Signature(
        "text_read_table",
        (
            Parameter("text", Kind.INPUT, UINT8),
            *(Parameter(name, Kind.INPUT, element) for name, element in inputs),
            *(Parameter(name, Kind.OUTPUT, element) for name, element in outputs),
            *(Parameter(name, Kind.SCALAR, INT64) for name in scalars),
            Parameter("threads", Kind.THREADS, INT32),
        ),
    )
