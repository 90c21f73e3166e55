/* What a kernel that is compiled with -fsanitize=thread calls before each access to memory: the functions of
 * ThreadSanitizer's library, which here pass the access to simulated caches.
 *
 * The stack of the calling thread counts as registers do: nothing of it is passed on.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* pthread_getattr_np */
#endif
#include <pthread.h>

#include "cache_hierarchy.h"

#define SHOWN __attribute__((visibility("default")))

static struct hierarchy *H; /* NULL: accesses are not followed */
static uint64_t stack_low, stack_bytes;

/* Follow the accesses of the calling thread with `h` from now on; NULL: of none. 0, or 1 where its stack is
 * not known. */
SHOWN int taco_trace_into(struct hierarchy *h)
{
    pthread_attr_t facts;
    void *low = NULL;
    size_t bytes = 0;
    H = NULL;
    if (h == NULL)
        return 0;
    if (pthread_getattr_np(pthread_self(), &facts))
        return 1;
    int wrong = pthread_attr_getstack(&facts, &low, &bytes);
    pthread_attr_destroy(&facts);
    stack_low = (uint64_t)(uintptr_t)low;
    stack_bytes = bytes;
    if (!wrong)
        H = h;
    return wrong != 0;
}

SHOWN void taco_trace_empty(struct hierarchy *h) { empty_caches(h); }

static inline bool is_followed(uint64_t address) { return H != NULL && address - stack_low >= stack_bytes; }

static inline void reads(const void *place, uint64_t bytes)
{
    uint64_t address = (uint64_t)(uintptr_t)place;
    if (bytes && is_followed(address))
        load_bytes(H, address, bytes);
}

static inline void writes(const void *place, uint64_t bytes)
{
    uint64_t address = (uint64_t)(uintptr_t)place;
    if (bytes && is_followed(address))
        store_bytes(H, address, bytes);
}

void taco_trace_streamed(const void *place, size_t bytes)
{
    uint64_t address = (uint64_t)(uintptr_t)place;
    if (bytes && is_followed(address))
        stream_bytes(H, address, bytes);
}

void *taco_trace_copy(void *to, const void *from, size_t bytes)
{
    reads(from, bytes);
    writes(to, bytes);
    return memmove(to, from, bytes);
}

void *taco_trace_fill(void *to, int byte, size_t bytes)
{
    writes(to, bytes);
    return memset(to, byte, bytes);
}

#define ACCESSES(bytes)                                                                            \
    void __tsan_read##bytes(void *place) { reads(place, bytes); }                                  \
    void __tsan_write##bytes(void *place) { writes(place, bytes); }                                \
    void __tsan_unaligned_read##bytes(void *place) { reads(place, bytes); }                        \
    void __tsan_unaligned_write##bytes(void *place) { writes(place, bytes); }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *place, unsigned long bytes) { reads(place, bytes); }
void __tsan_write_range(void *place, unsigned long bytes) { writes(place, bytes); }
void __tsan_init(void) {}
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void) {}

/* Atomic operations are replaced by calls altogether. */
#define ATOMICS(bits, type)                                                                        \
    type __tsan_atomic##bits##_load(const volatile type *place, int order)                         \
    {                                                                                              \
        (void)order;                                                                               \
        reads((const void *)place, sizeof *place);                                                 \
        return __atomic_load_n(place, __ATOMIC_SEQ_CST);                                           \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *place, type value, int order)                  \
    {                                                                                              \
        (void)order;                                                                               \
        writes((const void *)place, sizeof *place);                                                \
        __atomic_store_n(place, value, __ATOMIC_SEQ_CST);                                          \
    }                                                                                              \
    UPDATES(bits, type, exchange, __atomic_exchange_n)                                             \
    UPDATES(bits, type, fetch_add, __atomic_fetch_add)                                             \
    UPDATES(bits, type, fetch_sub, __atomic_fetch_sub)                                             \
    UPDATES(bits, type, fetch_and, __atomic_fetch_and)                                             \
    UPDATES(bits, type, fetch_or, __atomic_fetch_or)                                               \
    UPDATES(bits, type, fetch_xor, __atomic_fetch_xor)                                             \
    COMPARES(bits, type, compare_exchange_strong)                                                  \
    COMPARES(bits, type, compare_exchange_weak)
#define UPDATES(bits, type, name, change)                                                          \
    type __tsan_atomic##bits##_##name(volatile type *place, type value, int order)                 \
    {                                                                                              \
        (void)order;                                                                               \
        reads((const void *)place, sizeof *place);                                                 \
        writes((const void *)place, sizeof *place);                                                \
        return change(place, value, __ATOMIC_SEQ_CST);                                             \
    }
#define COMPARES(bits, type, name)                                                                 \
    int __tsan_atomic##bits##_##name(volatile type *place, type *expected, type value, int order,  \
                                     int other)                                                    \
    {                                                                                              \
        (void)order, (void)other;                                                                  \
        reads((const void *)place, sizeof *place);                                                 \
        writes((const void *)place, sizeof *place);                                                \
        return __atomic_compare_exchange_n(place, expected, value, 0, __ATOMIC_SEQ_CST,            \
                                           __ATOMIC_SEQ_CST);                                      \
    }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
void __tsan_atomic_thread_fence(int order) { (void)order; }
