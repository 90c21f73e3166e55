"""Small kernels that the tests of this folder compile."""

from __future__ import annotations

from codegen.runtime.kernel_cache import KernelSource
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.types import BOOL, FLOAT64, INT32, INT64


def scale(factor: int = 2) -> KernelSource:
    """y[i] = factor * x[i]."""
    source = f"""#include "taco_runtime.h"

int32_t scale(const double *restrict x, double *restrict y, int64_t n)
{{
    for (int64_t i = 0; i < n; i++)
        y[i] = {factor} * x[i];
    return 0;
}}
"""
    signature = Signature(
        "scale",
        (
            Parameter("x", Kind.INPUT, FLOAT64),
            Parameter("y", Kind.OUTPUT, FLOAT64),
            Parameter("n", Kind.SCALAR, INT64),
        ),
    )
    return KernelSource(source, (signature,), f"factor {factor}")


def broken() -> KernelSource:
    """A kernel that no compiler accepts."""
    good = scale()
    return KernelSource(good.source.replace("return 0", "return nonsense"), good.signatures)


def runtime() -> KernelSource:
    """The functions of taco_runtime.h, reachable from Python."""
    source = """#include "taco_runtime.h"
#include <string.h>

int32_t sort32(int32_t *a, int64_t n) { taco_sort_int32(a, n); return 0; }
int32_t sort64(int64_t *a, int64_t n) { taco_sort_int64(a, n); return 0; }
int32_t marked32(int32_t *a, int64_t n, const bool *m)
{
    taco_sort_int32_marked(a, n, m);
    return 0;
}
int32_t heap32(int32_t *a, int64_t n) { taco_sort_int32_heap(a, n); return 0; }
int32_t merge64(int64_t *a, int64_t *scratch, int64_t n)
{
    taco_sort_int64_merge(a, scratch, n);
    return 0;
}

/* Insert keys[0..dropped), clear, insert the rest: the entry of each, and their ranking. */
int32_t table(const int64_t *keys, int64_t *entries, int64_t *ranked, int64_t *count, int64_t n,
              int64_t dropped)
{
    taco_local_table taco_table t;
    if (taco_table_init(&t))
        return 1;
    for (int64_t i = 0; i < n; i++) {
        if (i == dropped)
            taco_table_clear(&t);
        entries[i] = taco_table_insert(&t, keys[i]);
        if (entries[i] < 0)
            return 1;
    }
    taco_table_sort(&t);
    memcpy(ranked, t.ranked, (size_t)t.count * sizeof(int64_t));
    count[0] = t.count;
    for (int64_t i = 0; i < t.count; i++)
        if (t.keys[entries[n - 1]] != keys[n - 1])
            return 1;
    return 0;
}

/* b[i] = i, growing as needed; `grown` counts how often. */
int32_t iota(int64_t *grown, taco_buffer *b, int64_t n)
{
    int32_t *data = b->data;
    for (int64_t i = 0; i < n; i++) {
        if (taco_unlikely(i >= b->capacity)) {
            if (taco_grow(b, i + 1, sizeof *data))
                return 1;
            data = b->data;
            grown[0]++;
        }
        data[i] = (int32_t)i;
    }
    b->length = n;
    return 0;
}

/* Two growing arrays, of which the second runs out of memory when `fail`. */
int32_t pair(taco_buffer *a, taco_buffer *b, int64_t n, int64_t fail)
{
    if (taco_grow(a, n, sizeof(double)))
        return 1;
    if (taco_grow(b, fail ? INT64_MAX / 64 : n, sizeof(int64_t)))
        return 1;
    for (int64_t i = 0; i < n; i++) {
        ((double *)a->data)[i] = 0.5 * (double)i;
        ((int64_t *)b->data)[i] = -i;
    }
    a->length = b->length = n;
    return 0;
}

/* Whether allocating works: 0 bytes, zeroed memory, and sizes that overflow. */
int32_t allocation(int64_t *facts, int64_t n)
{
    taco_local void *nothing = taco_alloc(0, 8);
    taco_local char *zeros = taco_alloc_zero(n, 1);
    if (nothing == NULL || zeros == NULL)
        return 1;
    for (int64_t i = 0; i < n; i++)
        facts[0] += zeros[i] != 0;
    facts[1] = taco_alloc(INT64_MAX, 8) == NULL;
    facts[2] = taco_alloc(-1, 8) == NULL;
    facts[3] = taco_alloc_zero(INT64_MAX / 4, 16) == NULL;
    return 0;
}
"""

    def of(name: str, *parameters: Parameter) -> Signature:
        return Signature(name, parameters)

    def out(name: str) -> Parameter:
        return Parameter(name, Kind.OUTPUT, INT64)

    n = Parameter("n", Kind.SCALAR, INT64)
    out32 = Parameter("a", Kind.OUTPUT, INT32)
    return KernelSource(
        source,
        (
            of("sort32", out32, n),
            of("sort64", out("a"), n),
            of("marked32", out32, n, Parameter("m", Kind.INPUT, BOOL)),
            of("heap32", out32, n),
            of("merge64", out("a"), out("scratch"), n),
            of(
                "table",
                Parameter("keys", Kind.INPUT, INT64),
                out("entries"),
                out("ranked"),
                out("count"),
                n,
                Parameter("dropped", Kind.SCALAR, INT64),
            ),
            of("iota", out("grown"), Parameter("b", Kind.GROWING, INT32), n),
            of(
                "pair",
                Parameter("a", Kind.GROWING, FLOAT64),
                Parameter("b", Kind.GROWING, INT64),
                n,
                Parameter("fail", Kind.SCALAR, INT64),
            ),
            of("allocation", out("facts"), n),
        ),
    )
