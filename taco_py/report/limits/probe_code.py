"""C that measures what a processor can do at most: products and sums in registers, bytes that are
read and copied in arrays of several sizes, loads of single elements; on one thread and on all.

    probe_source(vector_bytes=64, registers=32)   →  void measure(const double *, double *)

    arguments  threads, seconds for each figure, then for each level the bytes of a thread's array:
               of one thread, then of several together
    results    for one thread, then for all together: operations a second of doubles, of floats,
               loads a second; then for each level bytes a second that are read, and copied

Each figure is the best of many short repetitions: what else runs on the machine makes them slower,
and nothing makes them faster.
"""

from __future__ import annotations

from codegen.records import dataclass

FIGURES = 3
"""Figures of a number of threads before those of the levels."""
EACH_LEVEL = 2
"""Figures of a level: bytes that are read, and copied."""
PASSES = 3
"""Times that everything is measured: what else runs may take a processor for as long as one."""
LARGE = 1 << 22
"""Bytes of an array from which two repetitions are enough where time is short."""
LEVELS = 4
"""The most levels that are measured."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The vectors that a processor has.

    vector_bytes  of a register
    registers     how many there are
    """

    vector_bytes: int
    registers: int

    @property
    def chains(self) -> int:
        """Return sums in flight: more than a processor's latency times its units, within its
        registers."""
        return 24 if self.registers >= 32 else 12


def probe_source(probe: Probe) -> str:
    """Return the text of the program for a processor."""
    chains = range(probe.chains)
    lines = {
        "BYTES": str(max(16, probe.vector_bytes)),
        "CHAINS": str(probe.chains),
        "FIGURES": str(FIGURES),
        "EACH_LEVEL": str(EACH_LEVEL),
        "LEVELS": str(LEVELS),
        "LARGE": str(LARGE),
        "PASSES": str(PASSES),
    }
    head = "\n".join(f"#define {name} {value}" for name, value in lines.items())
    peaks = "\n".join(_peak(element, chains) for element in ("double", "float"))
    return "\n".join((_INCLUDES, head, _TYPES, peaks, _ARRAYS, _TURNS, _MEASURE))


def _peak(element: str, chains: range) -> str:
    """Write rounds of products and sums in registers, each of which waits for its own last one
    alone.

    s0 = s0 * x + y; s1 = s1 * x + y; …
    """
    vector = f"v_{element}"
    begin = " ".join(f"{vector} s{n} = x * {n + 1};" for n in chains)
    round = "\n    ".join(f"s{n} = s{n} * x + y;" for n in chains)
    keep = "\n    ".join(f'__asm__ volatile("" : "+" REGISTER(s{n}));' for n in chains)
    return f"""\
static double peak_{element}(char *place, size_t size, long rounds) {{
  (void)place; (void)size;
  {vector} x = {{0}}, y = {{0}};
  x += ({element})0.5;
  y += ({element})1.5;
  {begin}
  for (long r = 0; r < rounds; r++) {{
    {round}
    {keep}
  }}
  return 2.0 * CHAINS * rounds * (BYTES / sizeof({element}));
}}
"""


_INCLUDES = """\
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__AVX512F__)
#define REGISTER "v"
#elif defined(__x86_64__)
#define REGISTER "x"
#else
#define REGISTER "w"
#endif
"""
_TYPES = """\
typedef double v_double __attribute__((vector_size(BYTES), may_alias));
typedef float v_float __attribute__((vector_size(BYTES), may_alias));
typedef int64_t v_int __attribute__((vector_size(BYTES), may_alias));
typedef double work(char *, size_t, long);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
"""
_ARRAYS = """\
static double loads(char *place, size_t size, long rounds) {
  for (long r = 0; r < rounds; r++)
    for (size_t k = 0; k + 128 <= size; k += 128) {
      const int64_t *p = (const int64_t *)(place + k);
#define LOAD(n) { int64_t t = p[n]; __asm__ volatile("" :: "r"(t)); }
      LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7)
      LOAD(8) LOAD(9) LOAD(10) LOAD(11) LOAD(12) LOAD(13) LOAD(14) LOAD(15)
    }
  return (double)rounds * (size / 128) * 16;
}

static double reads(char *place, size_t size, long rounds) {
  v_int a = {0}, b = {0}, c = {0}, d = {0};
  for (long r = 0; r < rounds; r++) {
    for (size_t k = 0; k + 8 * BYTES <= size; k += 8 * BYTES) {
      const v_int *p = (const v_int *)(place + k);
      a ^= p[0]; b ^= p[1]; c ^= p[2]; d ^= p[3];
      a ^= p[4]; b ^= p[5]; c ^= p[6]; d ^= p[7];
    }
    __asm__ volatile("" : "+" REGISTER(a), "+" REGISTER(b) :: "memory");
    __asm__ volatile("" : "+" REGISTER(c), "+" REGISTER(d) :: "memory");
  }
  return (double)rounds * (size / (8 * BYTES)) * 8 * BYTES;
}

static double copies(char *place, size_t size, long rounds) {
  size_t half = size / 2 / (4 * BYTES) * (4 * BYTES);
  for (long r = 0; r < rounds; r++) {
    for (size_t k = 0; k < half; k += 4 * BYTES) {
      const v_int *p = (const v_int *)(place + k);
      v_int *q = (v_int *)(place + half + k);
      q[0] = p[0]; q[1] = p[1]; q[2] = p[2]; q[3] = p[3];
    }
    __asm__ volatile("" ::: "memory");
  }
  return (double)rounds * half * 2;
}
"""
_TURNS = """\
/* The most that one thread does a second. */
static double best_of_one(work *what, char *place, size_t size, double budget) {
  long rounds = size == 0 ? 2000 : 1 + (long)(2e6 / (double)size);
  double most = 0.0, begin = now(), end = begin + budget;
  for (int turn = size < LARGE ? -5 : -1; turn < 0 || begin < end; turn++) {
    double done = what(place, size, rounds), after = now();
    if (after > begin && done / (after - begin) > most) most = done / (after - begin);
    begin = after;
  }
  return most;
}

/* What threads do together a second: the best of each, beside the others. */
static double best(work *what, char *place, size_t size, int threads, double budget) {
  double total = 0.0;
  if (threads == 1) return best_of_one(what, place, size, budget);
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) reduction(+ : total)
  {
    char *own = place + size * (size_t)omp_get_thread_num();
#pragma omp barrier
    total += best_of_one(what, own, size, budget);
  }
#endif
  return total;
}
"""
_MEASURE = """\
static void more(double *figure, double found) {
  if (found > *figure) *figure = found;
}

__attribute__((visibility("default"))) void measure(const double *given, double *result) {
  int threads = (int)given[0];
  double budget = given[1];
#ifndef _OPENMP
  threads = 1;
#endif
  size_t most = 1 << 16;
  for (int level = 0; level < LEVELS; level++) {
    if (given[2 + level] > most) most = (size_t)given[2 + level];
    size_t together = (size_t)given[2 + LEVELS + level] * threads;
    if (together > most) most = together;
  }
  char *place = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) abort();
#ifdef MADV_HUGEPAGE
  madvise(place, most, MADV_HUGEPAGE);
#endif
  memset(place, 1, most);
  memset(result, 0, 2 * (FIGURES + EACH_LEVEL * LEVELS) * sizeof(double));
  for (int turn = 0; turn < 2 * PASSES; turn++) {
    int count = turn % 2 == 0 ? 1 : threads;
    const double *sizes = given + 2 + turn % 2 * LEVELS;
    double *r = result + turn % 2 * (FIGURES + EACH_LEVEL * LEVELS);
    more(r + 0, best(peak_double, place, 0, count, budget));
    more(r + 1, best(peak_float, place, 0, count, budget));
    more(r + 2, best(loads, place, 8192, count, budget));
    for (int level = 0; level < LEVELS; level++) {
      size_t size = (size_t)sizes[level];
      if (size == 0) continue;
      more(r + 3 + 2 * level, best(reads, place, size, count, budget));
      more(r + 4 + 2 * level, best(copies, place, size, count, budget));
    }
  }
  munmap(place, most);
}
"""
