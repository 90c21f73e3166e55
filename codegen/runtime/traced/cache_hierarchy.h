/* Caches between a processor and its memory, simulated: which bytes move, and between which two.
 *
 * Each cache is set-associative, with least recently used lines leaving first; a write fetches the line
 * that it misses, unless all of it is written, and a changed line is written to the next cache when it
 * leaves. A line may be in several caches. Streamed bytes go to memory, and take their line out of all.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MOST_CACHES 4

/* sets, ways   lines are sets * ways numbers: (number of a line + 1) * 2 + whether it was changed, the last
 *              used first, 0 where there is none
 * filled       lines that came from the next cache, or memory
 * written      changed lines that went there */
struct cache {
    uint64_t sets, ways, filled, written;
    uint64_t *lines;
};

/* loaded, stored, streamed   bytes that the processor asked for, wrote, and wrote past all caches */
struct hierarchy {
    uint64_t count, line_bytes, loaded, stored, streamed;
    struct cache caches[MOST_CACHES];
};

/* Use a line in cache `level`, or in memory behind the last one. `whole`: all of it is written. */
static void use_line(struct hierarchy *h, uint64_t level, uint64_t line, bool writes, bool whole)
{
    if (level == h->count)
        return;
    struct cache *cache = &h->caches[level];
    uint64_t *set = cache->lines + line % cache->sets * cache->ways;
    uint64_t tag = (line + 1) * 2, place = 0, entry;
    while (place < cache->ways && (set[place] & ~(uint64_t)1) != tag)
        place++;
    if (place < cache->ways) {
        entry = set[place] | writes;
    } else {
        uint64_t last = set[--place];
        if (last & 1) {
            cache->written++;
            use_line(h, level + 1, last / 2 - 1, true, true);
        }
        if (!whole) {
            cache->filled++;
            use_line(h, level + 1, line, false, false);
        }
        entry = tag | writes;
    }
    if (place)
        memmove(set + 1, set, place * sizeof *set);
    set[0] = entry;
}

static void load_bytes(struct hierarchy *h, uint64_t address, uint64_t bytes)
{
    h->loaded += bytes;
    for (uint64_t line = address / h->line_bytes; line <= (address + bytes - 1) / h->line_bytes; line++)
        use_line(h, 0, line, false, false);
}

static void store_bytes(struct hierarchy *h, uint64_t address, uint64_t bytes)
{
    h->stored += bytes;
    for (uint64_t line = address / h->line_bytes; line <= (address + bytes - 1) / h->line_bytes; line++)
        use_line(h, 0, line, true, false);
}

/* Take a line out of all caches; it goes to memory first where it was changed. */
static void remove_line(struct hierarchy *h, uint64_t line)
{
    bool changed = false;
    for (uint64_t level = 0; level < h->count; level++) {
        struct cache *cache = &h->caches[level];
        uint64_t *set = cache->lines + line % cache->sets * cache->ways;
        for (uint64_t place = 0; place < cache->ways; place++)
            if (set[place] / 2 == line + 1) {
                changed |= set[place] & 1;
                memmove(set + place, set + place + 1, (cache->ways - place - 1) * sizeof *set);
                set[cache->ways - 1] = 0;
            }
        cache->written += changed;
    }
}

static void stream_bytes(struct hierarchy *h, uint64_t address, uint64_t bytes)
{
    h->stored += bytes;
    h->streamed += bytes;
    for (uint64_t line = address / h->line_bytes; line <= (address + bytes - 1) / h->line_bytes; line++)
        remove_line(h, line);
}

/* Empty all caches; what was changed is written, from each one to the next. */
static void empty_caches(struct hierarchy *h)
{
    for (uint64_t level = 0; level < h->count; level++) {
        struct cache *cache = &h->caches[level];
        for (uint64_t i = 0; i < cache->sets * cache->ways; i++) {
            uint64_t entry = cache->lines[i];
            cache->lines[i] = 0;
            if (entry & 1) {
                cache->written++;
                use_line(h, level + 1, entry / 2 - 1, true, true);
            }
        }
    }
}
