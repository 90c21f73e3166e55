"""Sorting in CUDA: by one thread, or by all threads of a block or lanes of a warp together.

A thread has no memory to sort in otherwise: it sorts by a heap (Williams 1964, Algorithm 232).
Several compare and swap pairs that lie apart, in rounds between which they wait for each other, by
Batcher's bitonic network (1968) in the form whose comparators all point upwards, which is right for
any number of elements.
"""

from __future__ import annotations

import re

from codegen.machine.gpu import Gpu

_SORT = re.compile(r"taco_(threads_|lanes_|)sort_int(32|64)")


def sorting_function(name: str, gpu: Gpu) -> str | None:
    """Return the definition of the function that sorts integers, None of other names."""
    match = _SORT.fullmatch(name)
    if match is None:
        return None
    text = _COOPERATIVE if match[1] else _TEXT
    for word, value in _WORDS[match[1]].items():
        text = text.replace(word, value.format(warp=gpu.warp_threads))
    return text.replace("TYPE", f"int{match[2]}_t").replace("NAME", name)


_WORDS = {
    "": {},
    "threads_": {"WAIT": "__syncthreads()", "FIRST": "threadIdx.x", "STEP": "blockDim.x"},
    "lanes_": {"WAIT": "__syncwarp()", "FIRST": "threadIdx.x % {warp}", "STEP": "{warp}"},
}

_COOPERATIVE = """\
static __device__ inline void NAME(TYPE *a, int64_t count)
{
    for (int64_t size = 2; size < 2 * count; size *= 2) {
        for (int64_t step = size / 2; step > 0; step /= 2) {
            const int64_t apart = step == size / 2 ? size - 1 : step;
            WAIT;
            for (int64_t k = FIRST; k < count; k += STEP) {
                const int64_t other = k ^ apart;
                if (other > k && other < count && a[k] > a[other]) {
                    const TYPE greater = a[k];
                    a[k] = a[other];
                    a[other] = greater;
                }
            }
        }
    }
    WAIT;
}"""

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
