/* The entries of a matrix in the order of one of their coordinates, their `key`: a stable counting sort.
 *
 * A text that includes this defines TACO_INDEX, the type of positions and coordinates, and TACO_VALUE, one of the
 * size of a value. It gets
 *
 *     taco_order    pos and the other coordinate of each entry, and its value, below its key: CSR to CSC
 *     taco_starts   pos alone, of entries that are in order, and whether they are: COO to CSR
 *
 * Where keys of neighbours are far apart and the result does not fit into a cache, each write misses. Entries then go
 * to buckets first, by the high bits of their keys, of which so few are written at a time that all stay in a cache;
 * and from each of them, whose part of the result stays in a cache too, to their places.
 * (Polychroniou and Ross 2014, A comprehensive study of main-memory partitioning and its application to sorting.) */
#include "taco_runtime.h"
#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct {
    TACO_INDEX key, other;
    TACO_VALUE value;
} taco_moved;

/* Entries as they come: `other` of entry p is others[p], or where there are `lists`, the list that p is in. */
typedef struct {
    const TACO_INDEX *pos, *keys, *others;
    const TACO_VALUE *values;
    int64_t lists, count, range;
} taco_entries;

/* The number of this thread, and how many there are, which may be fewer than were asked for. */
static int64_t taco_this_thread(int64_t *threads)
{
#ifdef _OPENMP
    *threads = omp_get_num_threads();
    return omp_get_thread_num();
#else
    *threads = 1;
    return 0;
#endif
}

/* The list that entry p is in: the last one that begins at p or before, and is not empty. */
static int64_t taco_list_at(const taco_entries *e, int64_t p)
{
    int64_t low = 0, high = e->lists;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (e->pos[middle + 1] <= p)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* For entries p from `first` to `last`, with `other`: the statements behind. */
#define TACO_EACH_ENTRY(e, first, last, ...)                                          \
    do {                                                                              \
        if ((e)->lists == 0) {                                                        \
            for (int64_t p = (first); p < (last); p++) {                              \
                const TACO_INDEX other = (e)->others[p];                              \
                __VA_ARGS__                                                               \
            }                                                                         \
        } else {                                                                      \
            int64_t list = taco_list_at(e, first);                                    \
            for (int64_t p = (first); p < (last); list++) {                           \
                const TACO_INDEX other = (TACO_INDEX)list;                            \
                const int64_t end = (e)->pos[list + 1] < (last) ? (e)->pos[list + 1] : (last); \
                for (; p < end; p++) {                                                \
                    __VA_ARGS__                                                           \
                }                                                                     \
            }                                                                         \
        }                                                                             \
    } while (0)

/* Each thread counts the keys of its share, and its entries of a key come behind those of threads before. */
static int32_t taco_order_directly(const taco_entries *e, TACO_INDEX *to_pos, TACO_INDEX *to_others,
                                   TACO_VALUE *to_values, int32_t most)
{
    const int64_t range = e->range, count = e->count;
    taco_local TACO_INDEX *places = taco_alloc_zero(range * most, sizeof(TACO_INDEX));
    taco_local int64_t *totals = taco_alloc_zero(most + 1, sizeof(int64_t));
    if (places == NULL || totals == NULL)
        return 1;
    #pragma omp parallel num_threads(most) if (most > 1)
    {
        int64_t threads;
        const int64_t t = taco_this_thread(&threads);
        const int64_t first = count * t / threads, last = count * (t + 1) / threads;
        const int64_t low = range * t / threads, high = range * (t + 1) / threads;
        TACO_INDEX *const mine = places + range * t;
        for (int64_t p = first; p < last; p++)
            mine[e->keys[p]]++;
        #pragma omp barrier
        int64_t total = 0;
        for (int64_t u = 0; u < threads; u++)
            for (int64_t k = low; k < high; k++)
                total += places[range * u + k];
        totals[t + 1] = total;
        #pragma omp barrier
        int64_t start = 0;
        for (int64_t u = 0; u <= t; u++)
            start += totals[u];
        for (int64_t k = low; k < high; k++) {
            to_pos[k] = (TACO_INDEX)start;
            for (int64_t u = 0; u < threads; u++) {
                const TACO_INDEX own = places[range * u + k];
                places[range * u + k] = (TACO_INDEX)start;
                start += own;
            }
        }
        #pragma omp barrier
        TACO_EACH_ENTRY(e, first, last, {
            const int64_t place = mine[e->keys[p]]++;
            to_others[place] = other;
            to_values[place] = e->values[p];
        });
    }
    to_pos[range] = (TACO_INDEX)count;
    return 0;
}

/* The entries of one bucket, whose keys are those from `base` on, `width` of them. */
static void taco_order_bucket(const taco_moved *from, int64_t first, int64_t last, int64_t base, int64_t width,
                              TACO_INDEX *places, TACO_INDEX *to_pos, TACO_INDEX *to_others, TACO_VALUE *to_values)
{
    memset(places, 0, (size_t)width * sizeof *places);
    for (int64_t p = first; p < last; p++)
        places[from[p].key - base]++;
    int64_t start = first;
    for (int64_t k = 0; k < width; k++) {
        const TACO_INDEX own = places[k];
        to_pos[base + k] = places[k] = (TACO_INDEX)start;
        start += own;
    }
    for (int64_t p = first; p < last; p++) {
        const int64_t place = places[from[p].key - base]++;
        to_others[place] = from[p].other;
        to_values[place] = from[p].value;
    }
}

/* Through buckets of 2^shift keys each; `moved` has room for all entries. */
static int32_t taco_order_in_buckets(const taco_entries *e, taco_moved *moved, TACO_INDEX *to_pos,
                                     TACO_INDEX *to_others, TACO_VALUE *to_values, int shift, int32_t most)
{
    const int64_t range = e->range, count = e->count, size = INT64_C(1) << shift;
    const int64_t buckets = ((range - 1) >> shift) + 1;
    taco_local int64_t *places = taco_alloc_zero(buckets * most + buckets + 1, sizeof(int64_t));
    taco_local TACO_INDEX *counts = taco_alloc(size * most, sizeof(TACO_INDEX));
    if (places == NULL || counts == NULL)
        return 1;
    int64_t *const starts = places + buckets * most;
    int64_t next = 0;
    #pragma omp parallel num_threads(most) if (most > 1)
    {
        int64_t threads;
        const int64_t t = taco_this_thread(&threads);
        const int64_t first = count * t / threads, last = count * (t + 1) / threads;
        int64_t *const mine = places + buckets * t;
        for (int64_t p = first; p < last; p++)
            mine[e->keys[p] >> shift]++;
        #pragma omp barrier
        #pragma omp single
        {
            int64_t start = 0;
            for (int64_t b = 0; b < buckets; b++) {
                starts[b] = start;
                for (int64_t u = 0; u < threads; u++) {
                    const int64_t own = places[buckets * u + b];
                    places[buckets * u + b] = start;
                    start += own;
                }
            }
            starts[buckets] = start;
        }
        TACO_EACH_ENTRY(e, first, last, {
            const TACO_INDEX key = e->keys[p];
            const taco_moved entry = {key, other, e->values[p]};
            moved[mine[key >> shift]++] = entry;
        });
        #pragma omp barrier
        for (int64_t b = taco_next(&next); b < buckets; b = taco_next(&next)) {
            const int64_t base = b << shift, width = range - base < size ? range - base : size;
            taco_order_bucket(moved, starts[b], starts[b + 1], base, width, counts + size * t, to_pos, to_others,
                              to_values);
        }
    }
    to_pos[range] = (TACO_INDEX)count;
    return 0;
}

/* `shift` is 0 for no buckets, else the bits of keys in one; `room` is for as many taco_moved as there are entries. */
static int32_t taco_order(const TACO_INDEX *pos, const TACO_INDEX *keys, const TACO_INDEX *others,
                          const TACO_VALUE *values, void *room, TACO_INDEX *to_pos, TACO_INDEX *to_others,
                          TACO_VALUE *to_values, int64_t lists, int64_t count, int64_t range, int64_t shift,
                          int32_t threads)
{
    const taco_entries entries = {pos, keys, others, values, lists, count, range};
    if (shift > 0)
        return taco_order_in_buckets(&entries, room, to_pos, to_others, to_values, (int)shift, threads);
    return taco_order_directly(&entries, to_pos, to_others, to_values, threads);
}

/* Where the entries of each key begin, which ascend; how they lie in `found`: 0 strictly ascending, 1 some are equal,
 * 2 some descend, and `to_pos` is worth nothing. */
static int32_t taco_starts(const TACO_INDEX *keys, const TACO_INDEX *others, TACO_INDEX *to_pos, int64_t *found,
                           int64_t count, int64_t range, int32_t threads)
{
    int64_t worst = 0;
    #pragma omp parallel for num_threads(threads) reduction(max : worst) if (threads > 1)
    for (int32_t t = 0; t < threads; t++) {
        const int64_t first = count * t / threads, last = count * (t + 1) / threads;
        int64_t key = first == 0 ? 0 : (int64_t)keys[first - 1] + 1, wrong = 0;
        for (int64_t p = first; p < last && wrong < 2; p++) {
            if (p > 0 && keys[p] <= keys[p - 1] && (keys[p] < keys[p - 1] || others[p] <= others[p - 1])) {
                const int64_t here = keys[p] == keys[p - 1] && others[p] == others[p - 1] ? 1 : 2;
                wrong = here > wrong ? here : wrong;
            }
            for (; key <= keys[p]; key++)
                to_pos[key] = (TACO_INDEX)p;
        }
        for (; last == count && key <= range; key++)
            to_pos[key] = (TACO_INDEX)count;
        worst = wrong > worst ? wrong : worst;
    }
    *found = worst;
    return 0;
}
