"""C functions that many kernels have: they are compiled once, and kernels are linked to them.

    static TACO_INTERNAL int32_t tile_1(…)      int32_t tile_1(…);       int32_t tile_1(…)
    {                                       →                            {
        …                                                                    …
    }                                                                    }
    the source of a kernel                      what is compiled of it   what is compiled once

The source that users see has them; the tiles and the packing of products are most of it.
"""

from __future__ import annotations

from codegen.records import dataclass
from codegen.runtime.runtime_library import definitions
from codegen.toolchain.compile_unit import Unit


@dataclass(frozen=True, slots=True)
class SharedCode:
    """C functions that many kernels have.

    source        C that defines them, for a file of its own
    declarations  each definition as the sources of kernels have it, and what declares it instead
    """

    source: str
    declarations: tuple[tuple[str, str], ...]

    @property
    def unit(self) -> Unit:
        """Return the functions as a file that is compiled to an object."""
        text = f"{definitions(None)}{self.source}"
        return Unit((("shared.c", text),), output="shared.o")

    def declared(self, source: str) -> str:
        """Return the source of a kernel with the functions declared instead of defined."""
        for definition, declaration in self.declarations:
            source = source.replace(definition, declaration, 1)
        return source
