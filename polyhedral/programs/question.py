"""The input of a plan for a nest: sizes, requests and the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from operator import index
from typing import Any

from codegen.machine.cpu import Processor
from codegen.records import dataclass
from polyhedral.band_schedule import checked_size
from polyhedral.errors import NestError, ScheduleError
from polyhedral.model import Nest
from polyhedral.programs.program_product import Product


@dataclass(frozen=True, slots=True)
class ProgramQuestion:
    """A nest, the expected values of its parameters, and the user's requests.

    element_bytes  bytes of the elements of arrays, 8 by default
    tiles          None for the model's choice, else sizes of the tiles of every band, from the
                   outermost loop on, the last one for all further loops; () for no tiles
    reorder        whether loops inside a tile, or without tiles, may be interchanged
    parallel       whether threads may share tiles
    products       statements that add or subtract products of two elements, by name

    Raises NestError where a parameter has no integer value, ScheduleError for invalid sizes of
    tiles, or a cache without bytes.
    """

    nest: Nest
    values: Mapping[str, int]
    processor: Processor = Processor(vector_bytes=32)
    element_bytes: Mapping[str, int] = field(default_factory=dict)
    tiles: tuple[int, ...] | None = None
    reorder: bool = True
    parallel: bool = False
    products: Mapping[str, Product] = field(default_factory=dict)

    def __post_init__(self) -> None:
        missing = [name for name in self.nest.parameters if name not in self.values]
        if missing:
            raise NestError(f"Expected a value for each parameter, found none for {missing[0]}.")
        caches = self.processor.cache_bytes
        if not caches or min(caches) < 1:
            raise ScheduleError(f"Expected caches of 1 byte or more, found {caches}.")
        values = {name: _integer(name, value) for name, value in self.values.items()}
        object.__setattr__(self, "values", values)
        if self.tiles is not None:
            object.__setattr__(self, "tiles", tuple(map(checked_size, self.tiles)))


def _integer(name: str, value: Any) -> int:
    """Return the value of a parameter as an integer, also one of NumPy's."""
    try:
        return index(value)
    except TypeError:
        raise NestError(f"Expected an integer for {name}, found {value!r}.") from None
