"""The functions of `taco_host.c` as cffi reads them: `CDEF`, and what its parser makes of it.

After a change of CDEF, take over what the test of this file expects (tests/toolchain/test_host.py).
Parsing CDEF in each new cache folder would take as long as compiling a kernel: importing the parser
alone takes 60 ms.
"""

from __future__ import annotations

from typing import Any

CDEF = """
void taco_start(void);
void *taco_load(const char *path);
const char *taco_load_error(void);
int64_t taco_free_memory(const char *root);
void *taco_new_mapping(int64_t bytes, int64_t *mapped);
void taco_give_back(int64_t address, int64_t mapped);
int64_t taco_shorten(int64_t address, int64_t *mapped, int64_t bytes);
"""

VERSION = 0x2601
TYPES = bytes.fromhex(
    "0000030d0000000f0000060d000017030000000f0000060d0000170100000603000017010000000f"
    "0000180d000003110000000f0000180d00001701000007110000000f0000190d0000170100001701"
    "0000000f0000190d0000000f000002010000190300000001"
)
FUNCTIONS = (
    (b"\x00\x00\x02\x23taco_free_memory", 0),
    (b"\x00\x00\x11\x23taco_give_back", 0),
    (b"\x00\x00\x0a\x23taco_load", 0),
    (b"\x00\x00\x00\x23taco_load_error", 0),
    (b"\x00\x00\x0d\x23taco_new_mapping", 0),
    (b"\x00\x00\x05\x23taco_shorten", 0),
    (b"\x00\x00\x15\x23taco_start", 0),
)


def make_ffi() -> Any:
    """Return cffi's `ffi` for CDEF."""
    import _cffi_backend

    functions = tuple(part for function in FUNCTIONS for part in function)
    return _cffi_backend.FFI("_tacopy_host", _version=VERSION, _types=TYPES, _globals=functions)
