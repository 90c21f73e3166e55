"""Sorting by one thread, in CUDA: a heap sort, for a thread has no memory to sort in otherwise.

(Williams 1964, Algorithm 232.)
"""

from __future__ import annotations

import re

_SORT = re.compile(r"taco_sort_int(32|64)")


def sorting_function(name: str) -> str | None:
    """The definition of the function that sorts integers, None of other names."""
    match = _SORT.fullmatch(name)
    return (
        None if match is None else _TEXT.replace("TYPE", f"int{match[1]}_t").replace("NAME", name)
    )


_TEXT = """\
static __device__ inline void NAME(TYPE *a, int64_t count)
{
    int64_t start = count / 2, end = count;
    while (end > 1) {
        TYPE value;
        if (start > 0) {
            value = a[--start];
        } else {
            value = a[--end];
            a[end] = a[0];
        }
        int64_t hole = start, child;
        while ((child = 2 * hole + 1) < end) {
            if (child + 1 < end && a[child] < a[child + 1])
                child++;
            if (a[child] <= value)
                break;
            a[hole] = a[child];
            hole = child;
        }
        a[hole] = value;
    }
}"""
