/* What generated kernels call: growing memory, a hash table, and integer sorting.
 *
 * Everything is static: each kernel is its own shared object and shares no state with the others, so
 * blocks that outlive a call are owned, and recycled, by the caller (codegen/runtime/memory.py).
 * Functions that can fail return 0 for success and 1 when memory ran out, unless they say otherwise.
 */
#ifndef TACO_RUNTIME_H
#define TACO_RUNTIME_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* mremap */
#endif

/* Functions that no inner loop calls are TACO_FAR. In a kernel that stands alone they are static like all
 * others. Elsewhere (codegen/runtime/library.py) each of two objects defines some of them, TACO_ARRAYS or
 * TACO_SORTING, once for all kernels, which are linked to the objects and see declarations alone: so a kernel
 * is compiled in a third of the time. Nor does such a kernel read the system's headers, which take longer
 * than the rest of this one. */
#if defined(TACO_ARRAYS) || defined(TACO_SORTING)
#define TACO_FAR __attribute__((visibility("hidden")))
#else
#define TACO_FAR static
#define TACO_ARRAYS 1
#define TACO_SORTING 1
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if TACO_ARRAYS || TACO_SORTING
#include <stdlib.h>
#include <string.h>
#endif
#if TACO_ARRAYS && defined(__linux__)
#include <sched.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#endif
#if (TACO_ARRAYS || TACO_SORTING) && defined(__linux__)
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

#define taco_unlikely(x) __builtin_expect(!!(x), 0)
#define taco_truth(x) (*(const uint8_t *)&(x) != 0)
#define TACO_UNUSED __attribute__((unused))
#define TACO_COLD __attribute__((unused, noinline))
/* A function of this file that stays one: registers are allotted to it alone. */
#if defined(__GNUC__) && !defined(__clang__)
#define TACO_INTERNAL __attribute__((unused, noinline, noclone))
#else
#define TACO_INTERNAL __attribute__((unused, noinline))
#endif
#define TACO_EXPORT __attribute__((visibility("default")))
#define TACO_NEW __attribute__((malloc)) /* what it returns is part of no other object */
/* A function that is inlined nowhere. To be said after its definition too, where clang does not take it. */
#if defined(__GNUC__) && !defined(__clang__)
#define TACO_APART __attribute__((noinline, noclone))
#else
#define TACO_APART
#endif

/* The vector of those lanes of two others, of elements of so many bits. */
#if defined(__clang__) || __GNUC__ >= 12
#define TACO_SHUFFLE(bits, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define TACO_SHUFFLE(bits, a, b, ...) \
    __builtin_shuffle(a, b, (int##bits##_t __attribute__((vector_size(sizeof(a))))){__VA_ARGS__})
#endif

/* How many elements of `size` bytes lie before the first one at a multiple of `bytes`. */
static inline TACO_UNUSED int64_t taco_lead(const void *array, int64_t size, int64_t bytes)
{
    return (int64_t)(-(uintptr_t)array & (uintptr_t)(bytes - 1)) / size;
}

/* Write a vector past the caches, where its place is aligned and the machine can. Simulated caches are told
 * (codegen/runtime/traced). */
#ifndef TACO_STREAMED
#define TACO_STREAMED(place, bytes) ((void)0)
#endif
#if defined(__SSE2__) && defined(__GNUC__) && !defined(__clang__)
typedef double taco_16_bytes __attribute__((vector_size(16), aligned(4), may_alias));
typedef double taco_32_bytes __attribute__((vector_size(32), aligned(4), may_alias));
typedef double taco_64_bytes __attribute__((vector_size(64), aligned(4), may_alias));
#define TACO_STREAM_AS(store, bytes, place, value) \
    if (sizeof(value) == bytes && ((uintptr_t)&(place) & (bytes - 1)) == 0) { \
        TACO_STREAMED(&(place), bytes); \
        store((double *)&(place), *(const taco_##bytes##_bytes *)&(value)); \
    } else
#define TACO_STREAM_16(place, value) TACO_STREAM_AS(__builtin_ia32_movntpd, 16, place, value)
#ifdef __AVX__
#define TACO_STREAM_32(place, value) TACO_STREAM_AS(__builtin_ia32_movntpd256, 32, place, value)
#else
#define TACO_STREAM_32(place, value)
#endif
#ifdef __AVX512F__
#define TACO_STREAM_64(place, value) TACO_STREAM_AS(__builtin_ia32_movntpd512, 64, place, value)
#else
#define TACO_STREAM_64(place, value)
#endif
#define TACO_STREAM(place, value) \
    do { \
        TACO_STREAM_64(place, value) \
        TACO_STREAM_32(place, value) \
        TACO_STREAM_16(place, value) \
        (place) = (value); \
    } while (0)
#else
#define TACO_STREAM(place, value) ((place) = (value))
#endif

/* ---------------------------------------------------------------- 16-bit numbers
 *
 * Arrays of such numbers are read as float and written rounded to nearest, ties to even. The bits are
 * moved by integer arithmetic without a branch, which compilers turn into vectors; gcc 12 makes none of
 * the conversions of its own _Float16. No operand is subnormal, which would cost a trap on some processors.
 */
typedef uint16_t taco_float16;
typedef uint16_t taco_bfloat16;
typedef union {
    uint32_t bits;
    float value;
} taco_single;

static inline TACO_UNUSED float taco_of_float16(taco_float16 x)
{
    const uint32_t rest = ((uint32_t)x & 0x7fff) << 13, sign = ((uint32_t)x & 0x8000) << 16;
    taco_single normal, small, result;
    normal.bits = rest + (rest >= 0x0f800000 ? 0x70000000u : 0x38000000u); /* other exponents; inf and NaN */
    small.bits = 0x3f000000u + (rest >> 13); /* 0.5 + x below 2^-14, for the last bit of both is worth 2^-24 */
    small.value -= 0.5f;
    result.bits = sign | (rest < 0x00800000u ? small.bits : normal.bits);
    return result.value;
}

static inline TACO_UNUSED taco_float16 taco_to_float16(float x)
{
    taco_single given, small;
    given.value = x;
    const uint32_t sign = (given.bits >> 16) & 0x8000, rest = given.bits & 0x7fffffff;
    const uint32_t normal = (rest - 0x38000000u + 0x0fff + ((rest >> 13) & 1)) >> 13;
    small.bits = rest < 0x38800000u ? rest : 0;
    small.value += 0.5f; /* its last bit is worth 2^-24, as that of a half below 2^-14 */
    uint32_t half = rest < 0x38800000u ? small.bits - 0x3f000000u : normal;
    half = rest >= 0x477ff000u ? 0x7c00 : half; /* 65520 and more */
    half = rest > 0x7f800000u ? 0x7e00 | ((rest >> 13) & 0x3ff) : half;
    return (taco_float16)(sign | half);
}

static inline TACO_UNUSED float taco_of_bfloat16(taco_bfloat16 x)
{
    taco_single result;
    result.bits = (uint32_t)x << 16;
    return result.value;
}

static inline TACO_UNUSED taco_bfloat16 taco_to_bfloat16(float x)
{
    taco_single given;
    given.value = x;
    const uint32_t rest = given.bits & 0x7fffffff;
    const uint32_t rounded = (given.bits + 0x7fff + ((given.bits >> 16) & 1)) >> 16;
    return (taco_bfloat16)(rest > 0x7f800000u ? (given.bits >> 16) | 0x40 : rounded);
}

/* ---------------------------------------------------------------- memory
 *
 * Touching fresh memory costs as much as computing what goes there: 1.7 GB/s in 4 KB pages against
 * 4.2 GB/s in 2 MB pages. Blocks below TACO_LARGE bytes come from malloc, which recycles them. Larger
 * ones are 2 MB aligned mappings that ask for huge pages and reserve far more addresses than they need
 * (MAP_NORESERVE: only touched pages cost anything), so that growth inside the reservation is free;
 * beyond it mremap moves pages instead of bytes. The owner gives the unused tail back.
 */

#define TACO_HUGE_PAGE ((size_t)1 << 21)
#ifdef __linux__
#define TACO_LARGE ((size_t)4 << 20)
#define TACO_TRUSTED ((size_t)32 << 20) /* what is taken without a look at what there is */
#else
#define TACO_LARGE SIZE_MAX /* malloc and realloc only */
#endif

/* ---------------------------------------------------------------- free memory
 *
 * What this process can still use: of the system's memory (MemAvailable), of the limits of its control
 * groups, whose page cache counts as free, and of its addresses (RLIMIT_AS). `root` stands before the paths
 * of files; it is "" but in tests. SIZE_MAX is for as much as one likes.
 */

#if (TACO_ARRAYS || TACO_SORTING) && defined(__linux__)
/* The text of the file `root` `path`; "" where there is none. */
static TACO_COLD const char *taco_read(const char *root, const char *path, char *text, size_t size)
{
    char whole[4096];
    text[0] = 0;
    if ((size_t)snprintf(whole, sizeof whole, "%s%s", root, path) >= sizeof whole)
        return text;
    const int file = open(whole, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = 0;
    return text;
}

/* The number behind `name`, which begins a line of `text`; SIZE_MAX where there is none. */
static TACO_COLD size_t taco_number(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0)
            continue;
        const char *const number = line + length + strspn(line + length, " ");
        return *number >= '0' && *number <= '9' ? (size_t)strtoull(number, NULL, 10) : SIZE_MAX;
    }
    return SIZE_MAX;
}

/* What the control group in the folder `group` may still use, in itself. */
static TACO_COLD size_t taco_group_left(const char *root, const char *group, int version)
{
    char path[2048], text[4096];
    const int old = version == 1;
    snprintf(path, sizeof path, "%s/%s", group, old ? "memory.limit_in_bytes" : "memory.max");
    const size_t limit = taco_number(taco_read(root, path, text, sizeof text), "");
    if (limit >= PTRDIFF_MAX / 2) /* none: "max", or a number that no machine has */
        return SIZE_MAX;
    snprintf(path, sizeof path, "%s/%s", group, old ? "memory.usage_in_bytes" : "memory.current");
    const size_t usage = taco_number(taco_read(root, path, text, sizeof text), "");
    if (usage == SIZE_MAX)
        return limit;
    snprintf(path, sizeof path, "%s/memory.stat", group);
    taco_read(root, path, text, sizeof text);
    const size_t idle = taco_number(text, old ? "total_inactive_file" : "inactive_file");
    const size_t busy = taco_number(text, old ? "total_active_file" : "active_file");
    const size_t cached = (idle == SIZE_MAX ? 0 : idle) + (busy == SIZE_MAX ? 0 : busy);
    const size_t used = usage > cached ? usage - cached : 0;
    return limit > used ? limit - used : 0;
}

/* What the groups on the way up from the folder `top` `path` may still use. */
static TACO_COLD size_t taco_groups_left(const char *root, const char *top, const char *path, int version)
{
    char group[1536];
    size_t least = SIZE_MAX;
    const size_t above = strlen(top);
    if (strstr(path, "..") != NULL) /* of a name space above this one */
        path = "";
    if ((size_t)snprintf(group, sizeof group, "%s%s", top, path) >= sizeof group)
        return least;
    for (;;) {
        const size_t left = taco_group_left(root, group, version);
        least = left < least ? left : least;
        char *const last = strrchr(group, '/');
        if (last == NULL || last < group + above)
            return least;
        *last = 0;
    }
}

/* What the control groups of this process may still use. */
static TACO_COLD size_t taco_limits_left(const char *root)
{
    char text[4096];
    taco_read(root, "/proc/self/cgroup", text, sizeof text);
    char *line = text[0] != 0 ? text : strcpy(text, "0::/\n1:memory:/\n");
    size_t least = SIZE_MAX;
    for (char *end; *line != 0; line = end) {
        end = line + strcspn(line, "\n");
        end = *end != 0 ? (*end = 0, end + 1) : end;
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL)
            continue;
        *path++ = 0;
        const int version = controllers[1] == 0 ? 2 : 1;
        if (version == 1 && strcmp(controllers + 1, "memory") != 0)
            continue;
        const char *const tops[2] = {version == 2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory",
                                     "/sys/fs/cgroup/unified"};
        for (int k = 0; k < version; k++) {
            const size_t left = taco_groups_left(root, tops[k], path, version);
            least = left < least ? left : least;
        }
    }
    return least;
}

/* Bytes of memory that this process may still use, whatever its addresses are. */
static TACO_COLD size_t taco_memory_left(const char *root)
{
    char text[2048];
    const size_t kilobytes = taco_number(taco_read(root, "/proc/meminfo", text, sizeof text), "MemAvailable:");
    const size_t limited = taco_limits_left(root), all = kilobytes == SIZE_MAX ? SIZE_MAX : kilobytes << 10;
    return limited < all ? limited : all;
}

/* Bytes of addresses that this process may still take. */
static TACO_COLD size_t taco_addresses_left(const char *root)
{
    struct rlimit limit;
    char text[256];
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    const size_t pages = taco_number(taco_read(root, "/proc/self/statm", text, sizeof text), "");
    const size_t used = pages == SIZE_MAX ? 0 : pages * (size_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? (size_t)limit.rlim_cur - used : 0;
}

/* Whether `bytes` are more than four fifths of what may still be used. */
static TACO_COLD int taco_scarce(size_t bytes)
{
    if (bytes <= TACO_TRUSTED)
        return 0;
    const size_t memory = taco_memory_left(""), addresses = taco_addresses_left("");
    const size_t left = memory < addresses ? memory : addresses;
    return bytes > left - left / 5;
}
#elif TACO_ARRAYS || TACO_SORTING
static TACO_COLD int taco_scarce(size_t bytes)
{
    (void)bytes;
    return 0;
}
#endif

/* A growing array. `length` and `capacity` count elements. `mapped` is the size in bytes of the mapping
 * at `data`, 0 when `data` came from malloc. `spare` is an unused mapping of `spare_bytes` that the
 * caller lends for the moment the array becomes large. */
typedef struct {
    void *data;
    int64_t length;
    int64_t capacity;
    int64_t mapped;
    void *spare;
    int64_t spare_bytes;
    int64_t floor; /* bytes of the system's memory that it leaves free; 0 before it has looked */
    int64_t *budget; /* bytes that it and other arrays may still take; NULL for what there is */
    int64_t taken;   /* of them */
} taco_buffer;

/* Give `b` room for at least `elements`, keeping its contents; at least doubles what it had. */
TACO_FAR TACO_COLD int taco_grow(taco_buffer *b, int64_t elements, size_t itemsize);

/* Free the array and the spare block; `b` is empty afterwards. */
TACO_FAR TACO_COLD void taco_release(taco_buffer *b);

/* Memory of the kernel's own, to be freed with free(). Never NULL for 0 elements; NULL = out of memory. */
TACO_FAR TACO_UNUSED void *taco_alloc(int64_t elements, size_t itemsize) TACO_NEW;

/* The same, from a multiple of `align` bytes on. */
TACO_FAR TACO_UNUSED void *taco_alloc_aligned(int64_t elements, size_t itemsize, size_t align) TACO_NEW;

/* The same, all bits zero. */
TACO_FAR TACO_UNUSED void *taco_alloc_zero(int64_t elements, size_t itemsize) TACO_NEW;

#if TACO_ARRAYS
/* elements * itemsize, or SIZE_MAX when that passes what an object may have. */
static inline size_t taco_bytes(int64_t elements, size_t itemsize)
{
    size_t bytes;
    if (elements < 0 || __builtin_mul_overflow((size_t)elements, itemsize, &bytes) || bytes > PTRDIFF_MAX)
        return SIZE_MAX;
    return bytes;
}

#ifdef __linux__
static inline size_t taco_round(size_t bytes)
{
    return (bytes + TACO_HUGE_PAGE - 1) & ~(TACO_HUGE_PAGE - 1);
}

/* A 2 MB aligned mapping of `bytes` (a multiple of 2 MB) that asks for huge pages, or NULL. */
static TACO_COLD void *taco_map(size_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *raw = mmap(NULL, bytes + TACO_HUGE_PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (raw == MAP_FAILED)
        return NULL;
    char *data = (char *)taco_round((size_t)raw);
    if (data > raw)
        munmap(raw, (size_t)(data - raw));
    if (data + bytes < raw + bytes + TACO_HUGE_PAGE)
        munmap(data + bytes, (size_t)(raw + TACO_HUGE_PAGE - data));
    madvise(data, bytes, MADV_HUGEPAGE);
    return data;
}

/* Bytes of memory and swap of this machine. */
static TACO_COLD size_t taco_memory(void)
{
    struct sysinfo info;
    if (sysinfo(&info) != 0)
        return PTRDIFF_MAX;
    return taco_round(((size_t)info.totalram + (size_t)info.totalswap) * info.mem_unit);
}

/* How many bytes of the mapping of `b` may be used when `needed` are and `used` were; 0 = so many that the
 * system, which grants addresses freely, would kill the process later. A fifth of what is free at the first
 * look stays free. Asked again as arrays grow. */
static TACO_COLD size_t taco_room(taco_buffer *b, size_t needed, size_t used)
{
    const size_t mapped = (size_t)b->mapped;
    size_t room = TACO_TRUSTED;
    if (needed > TACO_TRUSTED) {
        const size_t left = taco_memory_left(""), more = needed - (used < needed ? used : needed);
        if (b->floor == 0)
            b->floor = (int64_t)(left / 5) + 1;
        const size_t floor = (size_t)b->floor;
        if (left < floor || more > left - floor)
            return 0;
        const size_t quarter = (left - floor) / 4;
        room = needed + (needed < quarter ? needed : quarter);
    }
    return room < mapped ? room : mapped;
}

/* A mapping for at least `bytes`: all of the machine's memory if the system grants that many addresses
 * (strict overcommit may not) and no limit says that others will lack them, otherwise just enough. */
static TACO_COLD void *taco_reserve(size_t bytes, int64_t *mapped)
{
    size_t size = taco_memory();
    void *data = taco_addresses_left("") == SIZE_MAX ? taco_map(size) : NULL;
    if (data == NULL) {
        size = taco_round(bytes);
        data = taco_map(size);
    }
    *mapped = (int64_t)size;
    return data;
}

/* Enlarge the mapping of `b` to at least `bytes`, moving its pages if it must. */
static TACO_COLD int taco_remap(taco_buffer *b, size_t bytes)
{
    const size_t old = (size_t)b->mapped;
    if (mremap(b->data, old, taco_round(bytes), 0) != MAP_FAILED) {
        b->mapped = (int64_t)taco_round(bytes);
        return 0;
    }
    int64_t mapped;
    void *data = taco_reserve(bytes, &mapped);
    if (data == NULL)
        return 1;
    if (mremap(b->data, old, old, MREMAP_MAYMOVE | MREMAP_FIXED, data) == MAP_FAILED) {
        memcpy(data, b->data, old); /* the old range consists of several mappings */
        munmap(b->data, old);
    }
    b->data = data;
    b->mapped = mapped;
    return 0;
}

/* Make `b` large: into the spare block if there is one, with `used` bytes of contents. It gets `bytes`, or
 * if these are not to be had, those that are `needed`. */
static TACO_COLD int taco_promote(taco_buffer *b, size_t bytes, size_t needed, size_t used)
{
    void *small = b->data;
    if (b->spare != NULL) {
        b->data = b->spare;
        b->mapped = b->spare_bytes;
        b->spare = NULL;
        b->spare_bytes = 0;
    } else {
        int64_t mapped;
        void *data = taco_reserve(bytes, &mapped);
        if (data == NULL)
            data = taco_reserve(needed, &mapped);
        if (data == NULL)
            return 1;
        b->data = data;
        b->mapped = mapped;
    }
    /* a spare may be short */
    const int failed = (size_t)b->mapped < needed && taco_remap(b, bytes) && taco_remap(b, needed);
    if (!failed && used > 0)
        memcpy(b->data, small, used);
    free(small);
    return failed;
}
#endif

/* Take from the budget of `b` what it lacks for `*bytes`, or if these are too many, for `needed`. */
static TACO_COLD int taco_afford(taco_buffer *b, size_t needed, size_t *bytes)
{
    const int64_t wishes[2] = {(int64_t)*bytes, (int64_t)needed};
    for (int k = 0; k < 2; k++) {
        const int64_t more = wishes[k] - b->taken;
        if (__atomic_sub_fetch(b->budget, more, __ATOMIC_RELAXED) >= 0) {
            b->taken = wishes[k];
            *bytes = (size_t)wishes[k];
            return 0;
        }
        __atomic_add_fetch(b->budget, more, __ATOMIC_RELAXED);
    }
    return 1;
}

TACO_FAR TACO_COLD int taco_grow(taco_buffer *b, int64_t elements, size_t itemsize)
{
    if (elements <= b->capacity)
        return 0;
    const size_t used = (size_t)b->capacity * itemsize;
    size_t bytes = taco_bytes(elements, itemsize);
    if (bytes == SIZE_MAX)
        return 1;
    if (bytes < 2 * used)
        bytes = 2 * used;
    if (bytes < 64)
        bytes = 64;
    if (b->budget != NULL && taco_afford(b, taco_bytes(elements, itemsize), &bytes))
        return 1;
#ifdef __linux__
    if (b->mapped > 0 || bytes >= TACO_LARGE) {
        const size_t memory = taco_memory(), needed = taco_bytes(elements, itemsize);
        if (needed > memory)
            return 1;
        bytes = bytes > memory ? memory : bytes;
        if (b->mapped == 0 ? taco_promote(b, bytes, needed, used)
                           : (size_t)b->mapped < needed && taco_remap(b, bytes) && taco_remap(b, needed))
            return 1;
        size_t room = taco_room(b, needed, used);
        if (b->budget != NULL && room > bytes)
            room = bytes;
        b->capacity = (int64_t)(room / itemsize);
        return room == 0;
    }
#endif
    void *data = realloc(b->data, bytes);
    if (data == NULL)
        return 1;
    b->data = data;
    b->capacity = (int64_t)(bytes / itemsize);
    return 0;
}

TACO_FAR TACO_COLD void taco_release(taco_buffer *b)
{
    if (b->budget != NULL)
        __atomic_add_fetch(b->budget, b->taken, __ATOMIC_RELAXED);
#ifdef __linux__
    if (b->spare != NULL)
        munmap(b->spare, (size_t)b->spare_bytes);
    if (b->mapped > 0)
        munmap(b->data, (size_t)b->mapped);
    else
        free(b->data);
#else
    free(b->data);
#endif
    memset(b, 0, sizeof *b);
}

/* Ask for huge pages in the interior of a large heap block, as NumPy does. */
static inline void *taco_advise(void *data, size_t bytes)
{
#ifdef __linux__
    if (data != NULL && bytes >= TACO_LARGE) {
        char *first = (char *)taco_round((size_t)data);
        char *last = (char *)(((size_t)data + bytes) & ~(TACO_HUGE_PAGE - 1));
        madvise(first, (size_t)(last - first), MADV_HUGEPAGE);
    }
#else
    (void)bytes;
#endif
    return data;
}

TACO_FAR TACO_UNUSED void *taco_alloc(int64_t elements, size_t itemsize)
{
    const size_t bytes = taco_bytes(elements, itemsize);
    if (bytes == SIZE_MAX || taco_scarce(bytes))
        return NULL;
    return taco_advise(malloc(bytes > 0 ? bytes : 1), bytes);
}

TACO_FAR TACO_UNUSED void *taco_alloc_aligned(int64_t elements, size_t itemsize, size_t align)
{
    const size_t bytes = taco_bytes(elements, itemsize);
    void *data;
    if (bytes == SIZE_MAX || taco_scarce(bytes) || posix_memalign(&data, align, bytes > 0 ? bytes : 1))
        return NULL;
    return taco_advise(data, bytes);
}

TACO_FAR TACO_UNUSED void *taco_alloc_zero(int64_t elements, size_t itemsize)
{
    const size_t bytes = taco_bytes(elements, itemsize);
    if (bytes == SIZE_MAX || taco_scarce(bytes))
        return NULL;
    return taco_advise(calloc(bytes > 0 ? bytes : 1, 1), bytes);
}
#endif

/* ---------------------------------------------------------------- calls
 *
 * Each kernel's shared object exports `taco_call(function, arguments)`, which passes the arguments on to
 * its function number `function`: whoever calls needs to know no other prototype.
 */

typedef union {
    void *pointer;
    taco_buffer *buffer;
    int64_t integer;
    uint64_t natural;
    double real;
    double parts[2]; /* of a complex number */
} taco_argument;

/* A call of a kernel's function through its entry point, and what it returned. */
typedef struct {
    int32_t (*entry)(int32_t function, const taco_argument *arguments);
    int32_t function;
    int32_t status;
    const taco_argument *arguments;
} taco_job;

/* ---------------------------------------------------------------- sorting
 *
 * Sorted input costs one scan; short or nearly sorted input insertion sort; middling input a merge of
 * insertion-sorted runs of 16; long input a least-significant-digit radix sort over the bytes in which
 * the values differ. Should scratch memory be missing, heap sort does without. Where an array of marks
 * tells which values there are, long input whose values lie close together is read from the marks.
 */

#define TACO_MARKS_PER_VALUE 16 /* so many marks are read in the time that one value is sorted in */

#define TACO_DEFINE_SORT(name, type)                                                                   \
    static inline void name##_insertion(type *a, int64_t n)                                            \
    {                                                                                                  \
        for (int64_t i = 1; i < n; i++) {                                                              \
            const type x = a[i];                                                                       \
            int64_t j = i;                                                                             \
            for (; j > 0 && a[j - 1] > x; j--)                                                         \
                a[j] = a[j - 1];                                                                       \
            a[j] = x;                                                                                  \
        }                                                                                              \
    }                                                                                                  \
                                                                                                       \
    TACO_FAR TACO_COLD void name##_merge(type *a, type *scratch, int64_t n);                           \
    TACO_FAR TACO_COLD void name##_heap(type *a, int64_t n);                                           \
    TACO_FAR TACO_COLD void name##_long(type *a, int64_t n, const bool *marks, int bits);              \
                                                                                                       \
    /* Sort a[0..n) ascending, where those that differ in their lowest `bits` bits alone do so already.\
     */                                                                                                \
    static TACO_UNUSED void name##_above(type *a, int64_t n, int bits)                                 \
    {                                                                                                  \
        if (n <= 24)                                                                                   \
            name##_insertion(a, n);                                                                    \
        else                                                                                           \
            name##_long(a, n, NULL, bits);                                                             \
    }                                                                                                  \
                                                                                                       \
    /* Sort a[0..n) ascending. */                                                                      \
    static TACO_UNUSED void name(type *a, int64_t n)                                                   \
    {                                                                                                  \
        name##_above(a, n, 0);                                                                         \
    }                                                                                                  \
                                                                                                       \
    /* Sort a[0..n) ascending, where marks[x] says whether x is in it, and no value is there twice. */ \
    static TACO_UNUSED void name##_marked(type *a, int64_t n, const bool *marks)                       \
    {                                                                                                  \
        if (n <= 24)                                                                                   \
            name##_insertion(a, n);                                                                    \
        else                                                                                           \
            name##_long(a, n, marks, 0);                                                               \
    }

TACO_DEFINE_SORT(taco_sort_int32, int32_t)
TACO_DEFINE_SORT(taco_sort_int64, int64_t)

#if TACO_SORTING
/* Eight bytes read as one number, whose lowest byte is the first in memory. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define TACO_FIRST_LOWEST(eight) __builtin_bswap64(eight)
#else
#define TACO_FIRST_LOWEST(eight) (eight)
#endif

#define TACO_DEFINE_LONG_SORT(name, type, unsigned_type)                                               \
    TACO_FAR TACO_COLD void name##_merge(type *a, type *scratch, int64_t n)                            \
    {                                                                                                  \
        for (int64_t i = 0; i < n; i += 16)                                                            \
            name##_insertion(a + i, n - i < 16 ? n - i : 16);                                          \
        for (int64_t width = 16; width < n; width *= 2) {                                              \
            for (int64_t low = 0; low + width < n; low += 2 * width) {                                 \
                const int64_t middle = low + width;                                                    \
                const int64_t high = middle + width < n ? middle + width : n;                          \
                if (a[middle - 1] <= a[middle])                                                        \
                    continue;                                                                          \
                memcpy(scratch, a + low, (size_t)width * sizeof(type));                                \
                int64_t i = 0, j = middle, k = low;                                                    \
                while (i < width && j < high) {                                                        \
                    const type x = scratch[i], y = a[j];                                               \
                    const int64_t left = x <= y;                                                       \
                    a[k++] = left ? x : y;                                                             \
                    i += left;                                                                         \
                    j += !left;                                                                        \
                }                                                                                      \
                memcpy(a + k, scratch + i, (size_t)(width - i) * sizeof(type));                        \
            }                                                                                          \
        }                                                                                              \
    }                                                                                                  \
                                                                                                       \
    TACO_FAR TACO_COLD void name##_heap(type *a, int64_t n)                                            \
    {                                                                                                  \
        for (int64_t start = n / 2, end = n; end > 1;) {                                               \
            if (start > 0) {                                                                           \
                start--;                                                                               \
            } else {                                                                                   \
                const type last = a[--end];                                                            \
                a[end] = a[0];                                                                         \
                a[0] = last;                                                                           \
            }                                                                                          \
            const type x = a[start];                                                                   \
            int64_t i = start;                                                                         \
            for (int64_t child = 2 * i + 1; child < end; child = 2 * i + 1) {                          \
                child += child + 1 < end && a[child + 1] > a[child];                                   \
                if (a[child] <= x)                                                                     \
                    break;                                                                             \
                a[i] = a[child];                                                                       \
                i = child;                                                                             \
            }                                                                                          \
            a[i] = x;                                                                                  \
        }                                                                                              \
    }                                                                                                  \
                                                                                                       \
    /* By bytes, from those above the lowest `bits` bits on, which are 0 in `low`. */                  \
    static TACO_COLD void name##_radix(type *a, type *scratch, int64_t n, type low, type high,         \
                                       int bits)                                                       \
    {                                                                                                  \
        const unsigned_type range = (unsigned_type)high - (unsigned_type)low;                          \
        type *from = a, *to = scratch;                                                                 \
        for (int shift = bits; shift < (int)sizeof(type) * 8 && range >> shift; shift += 8) {          \
            int64_t start[257] = {0};                                                                  \
            for (int64_t i = 0; i < n; i++)                                                            \
                start[((((unsigned_type)from[i] - (unsigned_type)low) >> shift) & 255) + 1]++;         \
            for (int d = 0; d < 256; d++)                                                              \
                start[d + 1] += start[d];                                                              \
            for (int64_t i = 0; i < n; i++)                                                            \
                to[start[(((unsigned_type)from[i] - (unsigned_type)low) >> shift) & 255]++] = from[i]; \
            type *other = from;                                                                        \
            from = to;                                                                                 \
            to = other;                                                                                \
        }                                                                                              \
        if (from != a)                                                                                 \
            memcpy(a, from, (size_t)n * sizeof(type));                                                 \
    }                                                                                                  \
                                                                                                       \
    /* From the marks of low to high, eight at a time; each is a byte, 0 or 1. */                      \
    static TACO_COLD void name##_read(type *a, const bool *marks, int64_t low, int64_t high)           \
    {                                                                                                  \
        int64_t i = low;                                                                               \
        for (; i + 7 <= high; i += 8) {                                                                \
            uint64_t eight;                                                                            \
            memcpy(&eight, marks + i, 8);                                                              \
            for (eight = TACO_FIRST_LOWEST(eight); eight; eight &= eight - 1)                          \
                *a++ = (type)(i + (__builtin_ctzll(eight) >> 3));                                      \
        }                                                                                              \
        for (; i <= high; i++)                                                                         \
            if (marks[i])                                                                              \
                *a++ = (type)i;                                                                        \
    }                                                                                                  \
                                                                                                       \
    TACO_FAR TACO_COLD void name##_long(type *a, int64_t n, const bool *marks, int bits)               \
    {                                                                                                  \
        type low = a[0], high = a[0];                                                                  \
        int64_t descents = 0;                                                                          \
        for (int64_t i = 1; i < n; i++) {                                                              \
            low = a[i] < low ? a[i] : low;                                                             \
            high = a[i] > high ? a[i] : high;                                                          \
            descents += a[i] < a[i - 1];                                                               \
        }                                                                                              \
        if (descents == 0)                                                                             \
            return;                                                                                    \
        if (marks != NULL && ((int64_t)high - (int64_t)low) / TACO_MARKS_PER_VALUE < n) {              \
            name##_read(a, marks, low, high);                                                          \
            return;                                                                                    \
        }                                                                                              \
        type local[512];                                                                               \
        const size_t bytes = (size_t)n * sizeof(type);                                                 \
        type *scratch = n <= 512 ? local : taco_scarce(bytes) ? NULL : malloc(bytes);                  \
        if (scratch == NULL)                                                                           \
            name##_heap(a, n);                                                                         \
        else if (n < 64 || descents < n / 64)                                                          \
            name##_merge(a, scratch, n);                                                               \
        else                                                                                           \
            name##_radix(a, scratch, n, (type)((unsigned_type)low >> bits << bits), high, bits);       \
        if (scratch != local)                                                                          \
            free(scratch);                                                                             \
    }

TACO_DEFINE_LONG_SORT(taco_sort_int32, int32_t, uint32_t)
TACO_DEFINE_LONG_SORT(taco_sort_int64, int64_t, uint64_t)
#endif

/* The first place in a[start] ... a[stop - 1], which ascend, whose element is at least `value`; `stop`
 * if none is. */
#define TACO_DEFINE_SEARCH(type)                                                                          \
    static TACO_UNUSED int64_t taco_search_##type(const type##_t *a, int64_t start, int64_t stop,         \
                                                  int64_t value)                                          \
    {                                                                                                     \
        while (start < stop) {                                                                            \
            int64_t middle = start + (stop - start) / 2;                                                  \
            if (a[middle] < value)                                                                        \
                start = middle + 1;                                                                       \
            else                                                                                          \
                stop = middle;                                                                            \
        }                                                                                                 \
        return start;                                                                                     \
    }

TACO_DEFINE_SEARCH(int32)
TACO_DEFINE_SEARCH(int64)

/* The same where the place is likely near `start`: steps of 1, 2, 4 ... lead past it, and the last of
 * them is searched. (Bentley and Yao 1976, An almost optimal algorithm for unbounded searching.) */
#define TACO_DEFINE_GALLOP(type)                                                                          \
    static TACO_UNUSED int64_t taco_gallop_##type(const type##_t *a, int64_t start, int64_t stop,         \
                                                  int64_t value)                                          \
    {                                                                                                     \
        int64_t step = 1;                                                                                 \
        while (step < stop - start && a[start + step] < value) {                                          \
            start += step;                                                                                \
            step *= 2;                                                                                    \
        }                                                                                                 \
        if (step < stop - start)                                                                          \
            stop = start + step;                                                                          \
        return taco_search_##type(a, start, stop, value);                                                 \
    }

TACO_DEFINE_GALLOP(int32)
TACO_DEFINE_GALLOP(int64)

/* ---------------------------------------------------------------- table
 *
 * Open addressing with linear probing, at most half full. `keys` lists the keys in the order of their
 * insertion; a slot holds an entry number + 1, or 0 when it is empty. Multiplication by 2^64 / phi
 * spreads consecutive keys and keys with a common stride alike (Knuth, TAOCP 6.4).
 */

typedef struct {
    int64_t count;
    int64_t *keys;
    int64_t *ranked;
    uint32_t *slots;
    int64_t capacity; /* entries that `keys` and `ranked` have room for; there are twice as many slots */
    int shift;        /* 64 - log2(number of slots) */
} taco_table;

static inline uint64_t taco_table_slot(const taco_table *t, int64_t key)
{
    return ((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15)) >> t->shift;
}

TACO_FAR TACO_COLD void taco_table_free(taco_table *t);
TACO_FAR TACO_COLD int taco_table_init(taco_table *t);

/* Double the table. On failure it is unchanged. */
TACO_FAR TACO_COLD int taco_table_grow(taco_table *t);

/* Remove all entries and keep the memory. Costs the number of entries, not the size of the table. */
TACO_FAR TACO_UNUSED void taco_table_clear(taco_table *t);

/* Fill ranked[0..count) with the entry numbers in ascending order of their keys. */
TACO_FAR TACO_UNUSED void taco_table_sort(taco_table *t);

/* The entry number of `key`, which becomes a new last entry if it was absent; -1 = out of memory. */
static inline TACO_UNUSED int64_t taco_table_insert(taco_table *t, int64_t key)
{
    uint64_t mask = (uint64_t)t->capacity * 2 - 1;
    uint64_t slot = taco_table_slot(t, key);
    for (; t->slots[slot] != 0; slot = (slot + 1) & mask) {
        const int64_t entry = (int64_t)t->slots[slot] - 1;
        if (t->keys[entry] == key)
            return entry;
    }
    if (taco_unlikely(t->count == t->capacity)) {
        if (taco_table_grow(t))
            return -1;
        mask = (uint64_t)t->capacity * 2 - 1;
        slot = taco_table_slot(t, key);
        while (t->slots[slot] != 0)
            slot = (slot + 1) & mask;
    }
    t->keys[t->count] = key;
    t->slots[slot] = (uint32_t)(t->count + 1);
    return t->count++;
}

#if TACO_SORTING
TACO_FAR TACO_COLD void taco_table_free(taco_table *t)
{
    free(t->keys);
    free(t->ranked);
    free(t->slots);
    memset(t, 0, sizeof *t);
}

TACO_FAR TACO_COLD int taco_table_init(taco_table *t)
{
    memset(t, 0, sizeof *t);
    t->capacity = 16;
    t->shift = 64 - 5;
    t->keys = malloc(16 * sizeof(int64_t));
    t->ranked = malloc(16 * sizeof(int64_t));
    t->slots = calloc(32, sizeof(uint32_t));
    if (t->keys == NULL || t->ranked == NULL || t->slots == NULL) {
        taco_table_free(t);
        return 1;
    }
    return 0;
}

TACO_FAR TACO_COLD int taco_table_grow(taco_table *t)
{
    const int64_t capacity = 2 * t->capacity;
    if (capacity > (INT64_C(1) << 31))
        return 1; /* a slot could not name the entry */
    if (taco_scarce((size_t)t->capacity * (4 * sizeof(int64_t))))
        return 1;
    int64_t *keys = realloc(t->keys, (size_t)capacity * sizeof(int64_t));
    if (keys == NULL)
        return 1;
    t->keys = keys;
    int64_t *ranked = realloc(t->ranked, (size_t)capacity * sizeof(int64_t));
    if (ranked == NULL)
        return 1;
    t->ranked = ranked;
    uint32_t *slots = calloc((size_t)capacity * 2, sizeof(uint32_t));
    if (slots == NULL)
        return 1;
    free(t->slots);
    t->slots = slots;
    t->capacity = capacity;
    t->shift--;
    const uint64_t mask = (uint64_t)capacity * 2 - 1;
    for (int64_t entry = 0; entry < t->count; entry++) {
        uint64_t slot = taco_table_slot(t, t->keys[entry]);
        while (slots[slot] != 0)
            slot = (slot + 1) & mask;
        slots[slot] = (uint32_t)(entry + 1);
    }
    return 0;
}

TACO_FAR TACO_UNUSED void taco_table_clear(taco_table *t)
{
    const uint64_t mask = (uint64_t)t->capacity * 2 - 1;
    if (t->count > t->capacity / 8) {
        memset(t->slots, 0, (size_t)t->capacity * 2 * sizeof(uint32_t));
    } else {
        /* Backwards, every entry is found as at its insertion: later ones are gone already. */
        for (int64_t entry = t->count; entry-- > 0;) {
            uint64_t slot = taco_table_slot(t, t->keys[entry]);
            while (t->slots[slot] != (uint32_t)(entry + 1))
                slot = (slot + 1) & mask;
            t->slots[slot] = 0;
        }
    }
    t->count = 0;
}

/* Rank the entries whose keys differ in their lowest `low_bits` bits alone, of which `ranked` has those
 * above, and the entries' numbers in `entry_bits` bits. */
static TACO_COLD void taco_table_sort_ties(taco_table *t, int64_t low, int low_bits, int entry_bits)
{
    int64_t *const r = t->ranked;
    const int64_t low_mask = (INT64_C(1) << low_bits) - 1, entry_mask = (INT64_C(1) << entry_bits) - 1;
    for (int64_t first = 0, last; first < t->count; first = last) {
        for (last = first + 1; last < t->count && r[last] >> entry_bits == r[first] >> entry_bits; last++)
            continue;
        if (last == first + 1)
            continue;
        for (int64_t i = first; i < last; i++) {
            const int64_t entry = r[i] & entry_mask;
            const uint64_t key = (uint64_t)t->keys[entry] - (uint64_t)low;
            r[i] = (int64_t)((key & (uint64_t)low_mask) << entry_bits) | entry;
        }
        taco_sort_int64_above(r + first, last - first, entry_bits);
    }
}

/* Key and entry are packed into one word, key first, and sorted as integers; where both do not fit, as
 * much of the keys as does, and the rest among those that are equal then. */
TACO_FAR TACO_UNUSED void taco_table_sort(taco_table *t)
{
    const int64_t n = t->count;
    if (n == 0)
        return;
    int64_t low = t->keys[0], high = t->keys[0];
    for (int64_t i = 1; i < n; i++) {
        low = t->keys[i] < low ? t->keys[i] : low;
        high = t->keys[i] > high ? t->keys[i] : high;
    }
    const uint64_t range = (uint64_t)high - (uint64_t)low;
    const int entry_bits = n > 1 ? 64 - __builtin_clzll((unsigned long long)(n - 1)) : 0;
    const int bits = entry_bits + (range > 0 ? 64 - __builtin_clzll(range) : 0);
    const int low_bits = bits > 63 ? bits - 63 : 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = ((uint64_t)t->keys[i] - (uint64_t)low) >> low_bits;
        t->ranked[i] = (int64_t)((key << entry_bits) | (uint64_t)i);
    }
    taco_sort_int64_above(t->ranked, n, entry_bits);
    if (low_bits > 0)
        taco_table_sort_ties(t, low, low_bits, entry_bits);
    const int64_t entry_mask = (INT64_C(1) << entry_bits) - 1;
    for (int64_t i = 0; i < n; i++)
        t->ranked[i] &= entry_mask;
}
#endif

/* ---------------------------------------------------------------- threads
 *
 * A team's pieces of work append to arrays. The first piece appends to the arrays of the result, so that
 * one piece costs nothing; every other one to a part of its own. Where a part goes is known as soon as
 * all pieces before it are finished. Then some thread, mostly the one that made it and has it in its
 * cache, copies it there, and the part's memory serves a later piece. A piece that takes long keeps
 * nobody waiting: the parts behind it lie where they are until it is finished.
 */

/* An array of the result. Where `counted` is 0 or more, the elements, of `itemsize` bytes, are lengths of
 * the array of that number so far: the zero that later parts begin with is left out, and the rest goes on
 * from where the parts before end. A `limit` other than 0 is the most elements it may have. */
typedef struct {
    taco_buffer *whole;
    size_t itemsize;
    int32_t counted;
    int64_t limit;
} taco_output;

enum { TACO_WORKING, TACO_FINISHED, TACO_PLACED, TACO_COPIED };

typedef struct {
    const taco_output *outputs;
    int64_t width;      /* how many outputs */
    int64_t count;      /* how many pieces */
    taco_buffer *parts; /* `width` for each set; a set belongs to one piece at a time */
    int64_t *place;     /* of each piece: where its part begins, in each output */
    int64_t *total;     /* of each output: the length of what is placed */
    int64_t *set;       /* of each piece: its set */
    int64_t *idle;      /* sets that belong to no piece, a stack */
    char *state;        /* of each piece */
    int64_t idles, sets;
    int64_t next;    /* the first piece that nobody has taken */
    int64_t turn;    /* the first piece that has no place */
    int64_t settled; /* all pieces before it are copied, or are being copied */
    int64_t copying; /* how many pieces are */
    int64_t busy;    /* the lock */
} taco_team;

/* Begin with `count` pieces that append to `width` outputs. */
TACO_FAR TACO_UNUSED int taco_gather(taco_team *t, const taco_output *outputs, int64_t width, int64_t count);
TACO_FAR TACO_COLD void taco_disband(taco_team *t);

/* The number of a piece that nobody has taken yet, which has memory for its parts then. */
TACO_FAR TACO_UNUSED int64_t taco_take(taco_team *t);

/* A piece is finished: place and copy what can be. 0, or what the kernel fails with. */
TACO_FAR TACO_UNUSED int taco_give(taco_team *t, int64_t piece);

/* All pieces are finished and copied. */
TACO_FAR TACO_UNUSED void taco_finish(taco_team *t);

/* The array to which a piece appends its part of an output. */
static inline TACO_UNUSED taco_buffer *taco_part(const taco_team *t, int64_t piece, int64_t output)
{
    return piece == 0 ? t->outputs[output].whole : &t->parts[t->set[piece] * t->width + output];
}

/* The number of a piece of a team without parts, of which `next` counts those that are taken. */
static inline TACO_UNUSED int64_t taco_next(int64_t *next)
{
    return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
}

#if TACO_ARRAYS
TACO_FAR TACO_COLD void taco_disband(taco_team *t)
{
    for (int64_t k = 0; k < t->sets * t->width; k++)
        taco_release(&t->parts[k]);
    free(t->parts);
    free(t->place);
    free(t->state);
    t->sets = 0;
    t->parts = NULL;
    t->place = NULL;
    t->state = NULL;
}

TACO_FAR TACO_UNUSED int taco_gather(taco_team *t, const taco_output *outputs, int64_t width, int64_t count)
{
    memset(t, 0, sizeof *t);
    t->outputs = outputs;
    t->width = width;
    t->count = count;
    t->place = calloc((size_t)(count * (width + 2) + width), sizeof *t->place);
    t->state = calloc((size_t)count, 1);
    t->parts = count > 1 ? calloc((size_t)(count * width), sizeof *t->parts) : NULL;
    if (t->place == NULL || t->state == NULL || (count > 1 && t->parts == NULL)) {
        taco_disband(t);
        return 1;
    }
    for (int64_t k = 0; count > 1 && k < count * width; k++)
        t->parts[k].budget = outputs[k % width].whole->budget;
    t->total = t->place + count * width;
    t->set = t->total + width;
    t->idle = t->set + count;
    return 0;
}

static inline void taco_yield(void)
{
#ifdef __linux__
    sched_yield();
#endif
}

static inline void taco_lock(taco_team *t)
{
    while (__atomic_exchange_n(&t->busy, 1, __ATOMIC_ACQUIRE))
        taco_yield();
}

static inline void taco_unlock(taco_team *t)
{
    __atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
}

TACO_FAR TACO_UNUSED int64_t taco_take(taco_team *t)
{
    taco_lock(t);
    const int64_t piece = t->next++;
    if (piece > 0 && piece < t->count)
        t->set[piece] = t->idles > 0 ? t->idle[--t->idles] : t->sets++;
    taco_unlock(t);
    return piece;
}

/* Give a place to a piece before which all have one; 0, or what the kernel fails with. */
static TACO_UNUSED int taco_place(taco_team *t, int64_t piece)
{
    for (int64_t k = 0; k < t->width; k++) {
        const taco_output *const output = &t->outputs[k];
        const int64_t length = taco_part(t, piece, k)->length - (piece > 0 && output->counted >= 0);
        t->place[piece * t->width + k] = t->total[k];
        t->total[k] += length;
        if (output->limit != 0 && t->total[k] > output->limit)
            return 2;
        if (t->total[k] <= output->whole->capacity)
            continue;
        while (__atomic_load_n(&t->copying, __ATOMIC_ACQUIRE) > 0)
            taco_yield(); /* the array may move */
        if (taco_grow(output->whole, t->total[k], output->itemsize))
            return 1;
    }
    return 0;
}

/* A piece to copy, `piece` itself if it can be, which the caller is to copy then; -1 if there is none. */
static TACO_UNUSED int64_t taco_claim(taco_team *t, int64_t piece)
{
    if (t->state[piece] != TACO_PLACED) {
        while (t->settled < t->turn && t->state[t->settled] == TACO_COPIED)
            t->settled++;
        piece = t->settled;
        if (piece == t->turn)
            return -1;
    }
    t->state[piece] = TACO_COPIED;
    __atomic_fetch_add(&t->copying, 1, __ATOMIC_RELAXED);
    return piece;
}

#define TACO_DEFINE_GO_ON(type)                                                                          \
    static TACO_UNUSED void taco_go_on_##type(type##_t *to, const type##_t *from, int64_t n, int64_t base) \
    {                                                                                                    \
        for (int64_t k = 0; k < n; k++)                                                                  \
            to[k] = (type##_t)(from[k] + base);                                                          \
    }

TACO_DEFINE_GO_ON(int32)
TACO_DEFINE_GO_ON(int64)

/* memcpy past the caches, which neither reads nor keeps the lines that are written. */
static TACO_UNUSED void taco_copy_past(char *to, const char *from, size_t bytes)
{
#if defined(__AVX__) && !defined(__clang__)
    typedef double taco_loose __attribute__((vector_size(32), may_alias, aligned(1)));
    const size_t lead = -(uintptr_t)to & 31;
    size_t done = lead < bytes ? lead : bytes;
    memcpy(to, from, done);
    for (; done + 32 <= bytes; done += 32)
        __builtin_ia32_movntpd256((double *)(void *)(to + done), *(const taco_loose *)(const void *)(from + done));
    __builtin_ia32_sfence();
    to += done;
    from += done;
    bytes -= done;
#endif
    memcpy(to, from, bytes);
}

/* Copy the parts of a piece to their places. */
static TACO_UNUSED void taco_copy(taco_team *t, int64_t piece)
{
    const int64_t *const place = t->place + piece * t->width;
    for (int64_t k = 0; k < t->width; k++) {
        const taco_output *const output = &t->outputs[k];
        const taco_buffer *const part = taco_part(t, piece, k);
        char *const to = (char *)output->whole->data + (size_t)place[k] * output->itemsize;
        if (output->counted < 0) {
            const size_t bytes = (size_t)part->length * output->itemsize;
            if (output->whole->mapped > 0)
                taco_copy_past(to, part->data, bytes);
            else if (bytes > 0)
                memcpy(to, part->data, bytes);
            continue;
        }
        const int64_t base = place[output->counted];
        if (output->itemsize == sizeof(int32_t))
            taco_go_on_int32((int32_t *)(void *)to, (const int32_t *)part->data + 1, part->length - 1, base);
        else
            taco_go_on_int64((int64_t *)(void *)to, (const int64_t *)part->data + 1, part->length - 1, base);
    }
}

TACO_FAR TACO_UNUSED int taco_give(taco_team *t, int64_t piece)
{
    int failed = 0;
    taco_lock(t);
    t->state[piece] = TACO_FINISHED;
    while (!failed && t->turn < t->count && t->state[t->turn] == TACO_FINISHED) {
        failed = taco_place(t, t->turn);
        t->state[t->turn] = t->turn > 0 ? TACO_PLACED : TACO_COPIED;
        t->turn += !failed;
    }
    int64_t mine = failed ? -1 : taco_claim(t, piece);
    taco_unlock(t);
    while (mine >= 0) {
        taco_copy(t, mine);
        __atomic_fetch_sub(&t->copying, 1, __ATOMIC_RELEASE);
        taco_lock(t);
        for (int64_t k = 0; k < t->width; k++)
            taco_part(t, mine, k)->length = 0;
        t->idle[t->idles++] = t->set[mine];
        mine = taco_claim(t, mine);
        taco_unlock(t);
    }
    return failed;
}

TACO_FAR TACO_UNUSED void taco_finish(taco_team *t)
{
    for (int64_t k = 0; k < t->width; k++)
        t->outputs[k].whole->length = t->total[k];
}
#endif

static TACO_COLD void taco_fail(int32_t *status, int32_t code)
{
    __atomic_store_n(status, code, __ATOMIC_RELAXED);
}

/* ---------------------------------------------------------------- what emitted code relies on
 *
 * A local that owns memory gives it back however its scope is left.
 */

static inline void taco_free_local(void *local)
{
    void *data;
    __builtin_memcpy(&data, local, sizeof data);
    __builtin_free(data);
}

#define taco_local __attribute__((cleanup(taco_free_local)))
#define taco_local_buffer __attribute__((cleanup(taco_release)))
#define taco_local_table __attribute__((cleanup(taco_table_free)))
#define taco_local_team __attribute__((cleanup(taco_disband)))

/* Set `elements` elements to all bits zero. */
static inline void taco_clear(void *data, int64_t elements, size_t itemsize)
{
    if (elements > 0)
        __builtin_memset(data, 0, (size_t)elements * itemsize);
}

/* Minimum and maximum, in which a NaN wins as it does in NumPy's. Two choices, one after the other, are two
 * instructions: with `||` the lesser of two numbers, which nobody foresees, is found by a branch. */
#define TACO_DEFINE_EXTREMA(suffix, type)                                                              \
    static inline type taco_min_##suffix(type a, type b)                                               \
    {                                                                                                  \
        const type least = a < b ? a : b;                                                              \
        return a == a ? least : a;                                                                     \
    }                                                                                                  \
    static inline type taco_max_##suffix(type a, type b)                                               \
    {                                                                                                  \
        const type greatest = a > b ? a : b;                                                           \
        return a == a ? greatest : a;                                                                  \
    }

TACO_DEFINE_EXTREMA(i8, int8_t)
TACO_DEFINE_EXTREMA(i16, int16_t)
TACO_DEFINE_EXTREMA(i32, int32_t)
TACO_DEFINE_EXTREMA(i64, int64_t)
TACO_DEFINE_EXTREMA(u8, uint8_t)
TACO_DEFINE_EXTREMA(u16, uint16_t)
TACO_DEFINE_EXTREMA(u32, uint32_t)
TACO_DEFINE_EXTREMA(u64, uint64_t)
TACO_DEFINE_EXTREMA(f32, float)
TACO_DEFINE_EXTREMA(f64, double)

/* `place = update(place, value)` as one operation: tried again where another thread has come between.
   What changes nothing is not written. */
#define TACO_ATOMIC(type, update, place, value)                                                        \
    do {                                                                                               \
        type taco_old, taco_new, taco_value = (value);                                                 \
        __atomic_load(&(place), &taco_old, __ATOMIC_RELAXED);                                          \
        do                                                                                             \
            taco_new = update(taco_old, taco_value);                                                   \
        while (taco_new != taco_old && !__atomic_compare_exchange(&(place), &taco_old, &taco_new, 1,   \
                                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
    } while (0)

/* Known to compilers that are asked for OpenMP, which those of loops in vector lanes are. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma omp declare reduction(taco_min_f32 : float : omp_out = taco_min_f32(omp_out, omp_in)) \
    initializer(omp_priv = __builtin_inff())
#pragma omp declare reduction(taco_max_f32 : float : omp_out = taco_max_f32(omp_out, omp_in)) \
    initializer(omp_priv = -__builtin_inff())
#pragma omp declare reduction(taco_min_f64 : double : omp_out = taco_min_f64(omp_out, omp_in)) \
    initializer(omp_priv = __builtin_inf())
#pragma omp declare reduction(taco_max_f64 : double : omp_out = taco_max_f64(omp_out, omp_in)) \
    initializer(omp_priv = -__builtin_inf())
#pragma GCC diagnostic pop

#endif
