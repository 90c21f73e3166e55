/* The part of the runtime that lives in the Python process once, in plain C: loading and calling kernels,
 * and the memory of results. Declared to cffi in codegen/runtime/host.py. */
#include "taco_runtime.h"

#include <dlfcn.h>
#include <pthread.h>

typedef int32_t (*taco_entry)(int32_t function, const taco_argument *arguments);

/* OpenMP's threads do not survive a fork, and waiting for them would hang: a forked child uses one. */
static int taco_forked = 0;

static void taco_note_fork(void)
{
    taco_forked = 1;
}

TACO_EXPORT void taco_start(void)
{
    pthread_atfork(NULL, NULL, taco_note_fork);
}

static void *taco_open(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* GCC's OpenMP lets a thread that waits for others look 300 000 times, some 10 ms, before it sleeps.
 * Where others compute on the same cores, it keeps from them what it waits for: a kernel of 0.2 ms
 * takes 8 ms. It reads what is asked for in its place once, when it is loaded. */
static void *taco_open_patient(const char *path)
{
    const char *count = "GOMP_SPINCOUNT";
    void *loaded = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (loaded != NULL) {
        dlclose(loaded);
        return taco_open(path);
    }
    if (getenv(count) != NULL || getenv("OMP_WAIT_POLICY") != NULL) {
        return taco_open(path);
    }
    setenv(count, "1000", 1);
    void *library = taco_open(path);
    unsetenv(count);
    return library;
}

/* The entry point of the shared object at `path`, or NULL: taco_load_error() has the reason. */
TACO_EXPORT void *taco_load(const char *path)
{
    void *library = taco_open_patient(path);
    return library == NULL ? NULL : dlsym(library, "taco_call");
}

TACO_EXPORT const char *taco_load_error(void)
{
    const char *text = dlerror();
    return text != NULL ? text : "no taco_call in it";
}

static int32_t taco_invoke(void *entry, int32_t function, const taco_argument *arguments)
{
    taco_entry call;
    memcpy(&call, &entry, sizeof call); /* ISO C has no cast from object to function pointers */
    return call(function, arguments);
}

/* Bytes that this process may still use, INT64_MAX for as many as one likes; `root` is "" but in tests. */
TACO_EXPORT int64_t taco_free_memory(const char *root)
{
#ifdef __linux__
    const size_t memory = taco_memory_left(root), addresses = taco_addresses_left("");
    const size_t left = memory < addresses ? memory : addresses;
    return left < (size_t)INT64_MAX ? (int64_t)left : INT64_MAX;
#else
    (void)root;
    return INT64_MAX;
#endif
}

/* A mapping of at least `bytes` in huge pages, `*mapped` bytes long; NULL where there is none to be had. */
TACO_EXPORT void *taco_new_mapping(int64_t bytes, int64_t *mapped)
{
#ifdef __linux__
    *mapped = (int64_t)taco_round((size_t)bytes);
    return taco_map((size_t)*mapped);
#else
    (void)bytes;
    *mapped = 0;
    return NULL;
#endif
}

/* Give back the block at `address`: a mapping of `mapped` bytes, or malloc's when `mapped` is 0. */
TACO_EXPORT void taco_give_back(int64_t address, int64_t mapped)
{
#ifdef __linux__
    if (mapped > 0) {
        munmap((void *)(intptr_t)address, (size_t)mapped);
        return;
    }
#endif
    (void)mapped;
    free((void *)(intptr_t)address);
}

/* Shorten a block to `bytes`, in place where it is a mapping; the new `*mapped` and address. */
TACO_EXPORT int64_t taco_shorten(int64_t address, int64_t *mapped, int64_t bytes)
{
#ifdef __linux__
    if (*mapped > 0) {
        const int64_t keep = (int64_t)taco_round(bytes > 0 ? (size_t)bytes : 1);
        if (keep < *mapped) {
            munmap((char *)(intptr_t)address + keep, (size_t)(*mapped - keep));
            *mapped = keep;
        }
        return address;
    }
#endif
    (void)mapped;
    void *data = realloc((void *)(intptr_t)address, bytes > 0 ? (size_t)bytes : 1);
    return data != NULL ? (int64_t)(intptr_t)data : address;
}

#if defined(__GNUC__) && !defined(__clang__)
#define TACO_FAST __attribute__((optimize("O3")))
#else
#define TACO_FAST
#endif

/* Whether crd ascends strictly in each of crd[pos[i]:pos[i + 1]]: whether all places where it does not are
 * starts of these. Comparing all neighbours and then those alone takes a third of the time of going from
 * row to row, whose ends the processor cannot foresee. Rows of some thousand entries at a time, so that what
 * is compared again is in the first cache. */
#define TACO_ASCENDS(name, type)                                                              \
    TACO_FAST static int64_t name(const type *pos, const type *crd, int64_t rows, int64_t count) \
    {                                                                                         \
        const int64_t first = pos[0];                                                         \
        if (first < 0 || pos[rows] > count)                                                   \
            return 0;                                                                         \
        for (int64_t i = 0, end = 0; i < rows; i = end) {                                     \
            int64_t wrong = 0;                                                                \
            for (end = i + 1; end < rows && end < i + 4096 && (int64_t)pos[end] - pos[i] < 4096; end++) \
                wrong |= pos[end - 1] > pos[end];                                             \
            const int64_t start = pos[i] > first ? pos[i] : first + 1, stop = pos[end];       \
            if (wrong | (pos[end - 1] > stop) | (stop > count))                               \
                return 0;                                                                     \
            int64_t falls = 0;                                                                \
            for (int64_t p = start; p < stop; p += 4096) {                                    \
                const int64_t last = p + 4096 < stop ? p + 4096 : stop;                       \
                type here = 0;                                                                \
                for (int64_t q = p; q < last; q++)                                            \
                    here += crd[q] <= crd[q - 1];                                             \
                falls += here;                                                                \
            }                                                                                 \
            for (int64_t k = i; k < end; k++) {                                               \
                const int64_t p = pos[k];                                                     \
                if (p > first && p < pos[k + 1])                                              \
                    falls -= crd[p] <= crd[p - 1];                                            \
            }                                                                                 \
            if (falls != 0)                                                                   \
                return 0;                                                                     \
        }                                                                                     \
        return 1;                                                                             \
    }

TACO_ASCENDS(taco_ascends_32, int32_t)
TACO_ASCENDS(taco_ascends_64, int64_t)

/* Whether pos ascends from 0, and all of its coordinates are within 0 .. size - 1; those of crd[:count] where
 * there is no pos, which rows below 0 say. */
#define TACO_WITHIN(name, type)                                                               \
    TACO_FAST static int64_t name(const type *pos, const type *crd, int64_t rows, int64_t count, int64_t size) \
    {                                                                                         \
        int64_t last = count;                                                                 \
        if (rows >= 0) {                                                                      \
            int64_t wrong = pos[0] != 0 || pos[rows] > count;                                 \
            for (int64_t i = 0; i < rows; i++)                                                \
                wrong |= pos[i] > pos[i + 1];                                                 \
            if (wrong)                                                                        \
                return 0;                                                                     \
            last = pos[rows];                                                                 \
        }                                                                                     \
        type least = 0, most = 0;                                                             \
        for (int64_t p = 0; p < last; p++) {                                                  \
            least = crd[p] < least ? crd[p] : least;                                          \
            most = crd[p] > most ? crd[p] : most;                                             \
        }                                                                                     \
        return least >= 0 && (last <= 0 || (int64_t)most < size);                             \
    }

TACO_WITHIN(taco_within_32, int32_t)
TACO_WITHIN(taco_within_64, int64_t)

#define TACO_LEAST(a, b) ((a) < (b) ? (a) : (b))

/* How many blocks of r x c of a matrix in CSR hold an entry, and where each row of blocks begins; -1 where a
 * coordinate is outside. `last` has a zero for each column of blocks. Entries of a row ascend, so that those
 * of one block follow each other. */
#define TACO_COUNT_BLOCKS(name, type)                                                           \
    TACO_FAST static int64_t name(const type *pos, const type *crd, type *first, type *last, int64_t rows, \
                                  int64_t columns, int64_t r, int64_t c)                          \
    {                                                                                           \
        const int64_t height = (rows + r - 1) / r;                                              \
        int64_t found = 0;                                                                      \
        first[0] = 0;                                                                           \
        for (int64_t i = 0; i < height; i++) {                                                  \
            const int64_t stop = pos[TACO_LEAST((i + 1) * r, rows)];                            \
            int64_t from = 0, to = 0;                                                           \
            for (int64_t p = pos[i * r]; p < stop; p++) {                                       \
                const int64_t j = crd[p];                                                       \
                if (j >= from && j < to)                                                        \
                    continue;                                                                   \
                if (j < 0 || j >= columns)                                                      \
                    return -1;                                                                  \
                const int64_t k = (int64_t)((type)j / (type)c);                                 \
                from = k * c;                                                                   \
                to = TACO_LEAST(from + c, columns);                                             \
                found += last[k] != (type)(i + 1);                                              \
                last[k] = (type)(i + 1);                                                        \
            }                                                                                   \
            first[i + 1] = (type)found;                                                         \
        }                                                                                       \
        return found;                                                                           \
    }

TACO_COUNT_BLOCKS(taco_count_blocks_32, int32_t)
TACO_COUNT_BLOCKS(taco_count_blocks_64, int64_t)

#define TACO_ASCENDING(name, type)                                                              \
    static int name(const void *a, const void *b)                                               \
    {                                                                                           \
        const type x = *(const type *)a, y = *(const type *)b;                                  \
        return (x > y) - (x < y);                                                               \
    }

TACO_ASCENDING(taco_ascending_32, int32_t)
TACO_ASCENDING(taco_ascending_64, int64_t)

#define TACO_COPY_ENTRIES(size)                                                                 \
    for (int64_t row = i * r; row < end; row++) {                                               \
        int64_t from = 0, to = 0;                                                               \
        char *into = blocks;                                                                    \
        for (int64_t p = pos[row]; p < pos[row + 1]; p++) {                                     \
            const int64_t j = crd[p];                                                           \
            if (j < from || j >= to) {                                                          \
                const int64_t k = j / c;                                                        \
                from = k * c;                                                                   \
                to = from + c;                                                                  \
                into = blocks + (place[k] * r + (row - i * r)) * c * (size);                    \
            }                                                                                   \
            memcpy(into + (j - from) * (size), values + p * (size), (size));                    \
        }                                                                                       \
    }

/* The blocks from .. stop - 1 of at most TACO_MOST_MERGED rows, filled: the rows are merged by the block that each is at, and
 * entries are copied on the way. */
#define TACO_MOST_MERGED 8
#define TACO_MERGE_BLOCKS(name, type, bytes)                                                    \
    TACO_FAST static void name(const type *pos, const type *crd, const char *values, int64_t from, \
                               int64_t stop, type *column, char *blocks, int64_t row, int64_t end, \
                               int64_t r, int64_t c)                                            \
    {                                                                                           \
        type at[TACO_MOST_MERGED], until[TACO_MOST_MERGED], block[TACO_MOST_MERGED];            \
        const type none = (type)((((type)1 << (8 * sizeof(type) - 2)) - 1) * 2 + 1);            \
        const int64_t count = end - row;                                                        \
        for (int64_t k = 0; k < count; k++) {                                                   \
            at[k] = pos[row + k];                                                               \
            until[k] = pos[row + k + 1];                                                        \
            block[k] = at[k] < until[k] ? crd[at[k]] / (type)c : none;                          \
        }                                                                                       \
        for (int64_t next = from; next < stop; next++) {                                        \
            type least = block[0];                                                              \
            for (int64_t k = 1; k < count; k++)                                                 \
                least = block[k] < least ? block[k] : least;                                    \
            column[next] = least;                                                               \
            for (int64_t k = 0; k < count; k++) {                                               \
                if (block[k] != least)                                                          \
                    continue;                                                                   \
                char *into = blocks + (next * r + k) * c * (bytes);                             \
                const int64_t first = (int64_t)least * c;                                       \
                type p = at[k];                                                                 \
                for (; p < until[k] && crd[p] >= first && crd[p] < first + c; p++)              \
                    memcpy(into + (crd[p] - first) * (bytes), values + (int64_t)p * (bytes), (bytes)); \
                at[k] = p;                                                                      \
                block[k] = p < until[k] ? crd[p] / (type)c : none;                              \
            }                                                                                   \
        }                                                                                       \
    }

TACO_MERGE_BLOCKS(taco_merge_blocks_32_4, int32_t, 4)
TACO_MERGE_BLOCKS(taco_merge_blocks_32_8, int32_t, 8)
TACO_MERGE_BLOCKS(taco_merge_blocks_64_4, int64_t, 4)
TACO_MERGE_BLOCKS(taco_merge_blocks_64_8, int64_t, 8)

/* The columns of the blocks, ascending in each row of blocks, and their elements, of `size` bytes each, which
 * are zero before. `place` has a number for each column of blocks. */
#define TACO_FILL_BLOCKS(name, type, ascending, merge_4, merge_8)                                                 \
    TACO_FAST static void name(const type *pos, const type *crd, const char *values, const type *first, \
                               type *column, char *blocks, int64_t *place, int64_t rows, int64_t r, \
                               int64_t c, int64_t size)                                         \
    {                                                                                           \
        const int64_t height = (rows + r - 1) / r;                                              \
        for (int64_t i = 0; i < height; i++) {                                                  \
            const int64_t end = TACO_LEAST((i + 1) * r, rows);                                  \
            if (r <= TACO_MOST_MERGED && (size == 4 || size == 8)) {                            \
                (size == 4 ? merge_4 : merge_8)(pos, crd, values, first[i], first[i + 1], column, blocks, \
                                                i * r, end, r, c);                              \
                continue;                                                                       \
            }                                                                                   \
            int64_t next = first[i], sorted = 1;                                                \
            for (int64_t row = i * r; row < end; row++) {                                       \
                int64_t to = 0;                                                                 \
                for (int64_t p = pos[row]; p < pos[row + 1]; p++) {                             \
                    if (crd[p] < to)                                                            \
                        continue;                                                               \
                    const int64_t k = crd[p] / c;                                               \
                    to = (k + 1) * c;                                                           \
                    if (place[k] >= first[i] && place[k] < next && column[place[k]] == k)       \
                        continue;                                                               \
                    sorted &= next == first[i] || column[next - 1] < k;                         \
                    place[k] = next;                                                            \
                    column[next++] = (type)k;                                                   \
                }                                                                               \
            }                                                                                   \
            if (!sorted) {                                                                      \
                qsort(column + first[i], (size_t)(next - first[i]), sizeof(type), ascending);   \
                for (int64_t b = first[i]; b < next; b++)                                       \
                    place[column[b]] = b;                                                       \
            }                                                                                   \
            switch (size) {                                                                     \
            case 1: TACO_COPY_ENTRIES(1) break;                                                 \
            case 2: TACO_COPY_ENTRIES(2) break;                                                 \
            case 4: TACO_COPY_ENTRIES(4) break;                                                 \
            case 8: TACO_COPY_ENTRIES(8) break;                                                 \
            default: TACO_COPY_ENTRIES(16) break;                                               \
            }                                                                                   \
        }                                                                                       \
    }

TACO_FILL_BLOCKS(taco_fill_blocks_32, int32_t, taco_ascending_32, taco_merge_blocks_32_4, taco_merge_blocks_32_8)
TACO_FILL_BLOCKS(taco_fill_blocks_64, int64_t, taco_ascending_64, taco_merge_blocks_64_4, taco_merge_blocks_64_8)

/* The sum over regression trees for each row of features. A leaf is a node that leads to itself. */
static void taco_sum_of_trees(const double *rows, const int32_t *feature, const double *threshold,
                              const int32_t *left, const int32_t *right, const double *value, const int32_t *roots,
                              double *total, int64_t count, int64_t columns, int64_t trees)
{
    for (int64_t r = 0; r < count; r++) {
        const double *row = rows + r * columns;
        double sum = 0.0;
        for (int64_t t = 0; t < trees; t++) {
            int32_t node = roots[t], next;
            while ((next = row[feature[node]] <= threshold[node] ? left[node] : right[node]) != node)
                node = next;
            sum += value[node];
        }
        total[r] = sum;
    }
}

/* The functions of this file that take arrays of Python, numbered as in codegen/runtime/host_functions.py. */
TACO_EXPORT int32_t taco_host_call(int32_t function, const taco_argument *a)
{
    int64_t *found = a[2].pointer;
    switch (function) {
    case 0: *found = taco_ascends_32(a[0].pointer, a[1].pointer, a[3].integer, a[4].integer); break;
    case 1: *found = taco_ascends_64(a[0].pointer, a[1].pointer, a[3].integer, a[4].integer); break;
    case 2:
        *found = taco_count_blocks_32(a[0].pointer, a[1].pointer, a[3].pointer, a[4].pointer, a[5].integer,
                                      a[6].integer, a[7].integer, a[8].integer);
        break;
    case 3:
        *found = taco_count_blocks_64(a[0].pointer, a[1].pointer, a[3].pointer, a[4].pointer, a[5].integer,
                                      a[6].integer, a[7].integer, a[8].integer);
        break;
    case 4:
        taco_fill_blocks_32(a[0].pointer, a[1].pointer, a[2].pointer, a[3].pointer, a[4].pointer, a[5].pointer,
                            a[6].pointer, a[7].integer, a[8].integer, a[9].integer, a[10].integer);
        break;
    case 5:
        taco_fill_blocks_64(a[0].pointer, a[1].pointer, a[2].pointer, a[3].pointer, a[4].pointer, a[5].pointer,
                            a[6].pointer, a[7].integer, a[8].integer, a[9].integer, a[10].integer);
        break;
    case 6:
        *found = taco_within_32(a[0].pointer, a[1].pointer, a[3].integer, a[4].integer, a[5].integer);
        break;
    case 8:
        taco_sum_of_trees(a[0].pointer, a[1].pointer, a[2].pointer, a[3].pointer, a[4].pointer, a[5].pointer,
                          a[6].pointer, a[7].pointer, a[8].integer, a[9].integer, a[10].integer);
        break;
    default: *found = taco_within_64(a[0].pointer, a[1].pointer, a[3].integer, a[4].integer, a[5].integer);
    }
    return 0;
}
