/* Accesses to memory, as the compiler calls them out (ThreadSanitizer's and UBSan's functions). */

static inline int find_buffer(uintptr_t address, uint32_t size, uintptr_t pc)
{
    uint8_t *last = &S.last_buffer[(pc >> 1 ^ pc >> 7) & 255];
    struct emulated_buffer *buffers = S.launch->buffers, *buffer = &buffers[*last];
    if (LIKELY(address - buffer->base < buffer->size))
        return address - buffer->base + size <= buffer->size && buffer->live ? *last : -1;
    for (uint32_t i = 0; i < S.launch->buffer_count; i++) {
        buffer = &buffers[i];
        if (address - buffer->base < buffer->size && buffer->live) {
            *last = (uint8_t)i;
            return address - buffer->base + size <= buffer->size ? (int)i : -1;
        }
    }
    return -1;
}

static inline __attribute__((always_inline)) bool all_valid(const uint8_t *valid, uint32_t size)
{
    uint64_t eight;
    uint32_t four;
    uint16_t two;
    switch (size) {
    case 1: return *valid;
    case 2: memcpy(&two, valid, 2); return two == 0x0101;
    case 4: memcpy(&four, valid, 4); return four == 0x01010101;
    case 8: memcpy(&eight, valid, 8); return eight == 0x0101010101010101;
    default:
        for (uint32_t i = 0; i < size; i++)
            if (!valid[i])
                return false;
        return true;
    }
}

static inline __attribute__((always_inline)) void
access_memory(uintptr_t address, uint32_t size, enum access access, bool needs_value,
              bool aligned, uintptr_t pc)
{
    if (address - S.stack_low < S.stack_high - S.stack_low)
        return;
    if (UNLIKELY(!S.left--))
        hang(pc);
    int number = find_buffer(address, size, pc);
    if (aligned && UNLIKELY(address & (size - 1))) {
        report_access(MISALIGNED, pc, address, size, number, access);
        stop(); /* the processor may not like it either */
    }
    if (UNLIKELY(number < 0))
        report_outside(pc, address, size, access);
    struct emulated_buffer *buffer = &S.launch->buffers[number];
    if (UNLIKELY(S.launch->counting))
        count(access, number, address, size, pc);
    if (!S.launch->checks)
        return;
    uint64_t offset = address - buffer->base;
    bool writes = access != READS && access != RELAXED_READ;
    if (UNLIKELY(buffer->constant)) {
        if (writes) {
            report_access(WRITE_TO_CONSTANT, pc, address, size, number, access);
            stop();
        }
        return;
    }
    if (needs_value && UNLIKELY(!all_valid(buffer->valid + offset, size))) {
        report_access(UNINITIALISED, pc, address, size, number, access);
        memset(buffer->valid + offset, 1, size);
    }
    if (writes)
        memset(buffer->valid + offset, 1, size);
    if (access >= ATOMIC && !buffer->shared)
        use_flag(address, access != RELAXED_READ);
    check_races(buffer, number, access, address, offset, size, pc);
}

/* The same where it need not be fast. */
NEVER_INLINE static void access_any(uintptr_t address, uint32_t size, enum access access,
                                    bool needs_value, bool aligned, uintptr_t pc)
{
    access_memory(address, size, access, needs_value, aligned, pc);
}

static void give_way(void);

#define PLAIN(size, access_memory)                                                                \
    void __tsan_read##size(void *p) { access_memory((uintptr_t)p, size, READS, true, true, CALLER); } \
    void __tsan_write##size(void *p)                                                              \
    {                                                                                             \
        access_memory((uintptr_t)p, size, WRITES, false, true, CALLER);                           \
    }
#define UNUSUAL(size)                                                                             \
    void __tsan_unaligned_read##size(void *p)                                                     \
    {                                                                                             \
        access_any((uintptr_t)p, size, READS, true, false, CALLER);                               \
    }                                                                                             \
    void __tsan_unaligned_write##size(void *p)                                                    \
    {                                                                                             \
        access_any((uintptr_t)p, size, WRITES, false, false, CALLER);                             \
    }                                                                                             \
    void __tsan_volatile_read##size(void *p)                                                      \
    {                                                                                             \
        give_way();                                                                               \
        access_any((uintptr_t)p, size, size > 8 ? READS : RELAXED_READ, true, true, CALLER);      \
    }                                                                                             \
    void __tsan_volatile_write##size(void *p)                                                     \
    {                                                                                             \
        access_any((uintptr_t)p, size, size > 8 ? WRITES : RELAXED_WRITE, false, true, CALLER);   \
    }                                                                                             \
    void __tsan_unaligned_volatile_read##size(void *p)                                            \
    {                                                                                             \
        access_any((uintptr_t)p, size, READS, true, false, CALLER);                               \
    }                                                                                             \
    void __tsan_unaligned_volatile_write##size(void *p)                                           \
    {                                                                                             \
        access_any((uintptr_t)p, size, WRITES, false, false, CALLER);                             \
    }

PLAIN(1, access_any)
PLAIN(2, access_any)
PLAIN(4, access_memory)
PLAIN(8, access_memory)
PLAIN(16, access_any)
UNUSUAL(1)
UNUSUAL(2)
UNUSUAL(4)
UNUSUAL(8)
UNUSUAL(16)

static void access_range(uintptr_t address, uint64_t size, enum access access, uintptr_t pc)
{
    uint32_t unit = address % 4 || size % 4 ? 1 : 4;
    for (uint64_t i = 0; i < size; i += unit)
        access_any(address + i, unit, access, access == READS, false, pc);
}

void __tsan_read_range(void *p, unsigned long size)
{
    access_range((uintptr_t)p, size, READS, CALLER);
}

void __tsan_write_range(void *p, unsigned long size)
{
    access_range((uintptr_t)p, size, WRITES, CALLER);
}

void *emulated_copy(void *to, const void *from, size_t bytes)
{
    access_range((uintptr_t)from, bytes, READS, CALLER);
    access_range((uintptr_t)to, bytes, WRITES, CALLER);
    return memmove(to, from, bytes);
}

void *emulated_fill(void *to, int byte, size_t bytes)
{
    access_range((uintptr_t)to, bytes, WRITES, CALLER);
    return memset(to, byte, bytes);
}

void __tsan_init(void) {}
void __tsan_func_entry(void *caller)
{
    (void)caller;
    if (UNLIKELY((uintptr_t)__builtin_frame_address(0) - S.stack_low < 4096)) {
        report(STACK_OVERFLOW, CALLER, 0);
        stop();
    }
}
void __tsan_func_exit(void) {}
void __tsan_vptr_update(void **vptr, void *value) { (void)vptr, (void)value; }
void __tsan_vptr_read(void **vptr) { (void)vptr; }

/* Between branches: what neither ends nor touches memory is found here. */
void __sanitizer_cov_trace_pc(void)
{
    if (UNLIKELY(!S.left--))
        hang(CALLER);
}

/* What -fsanitize=bounds, integer-divide-by-zero and shift call, each with its place first. */
struct source_place {
    const char *file;
    uint32_t line, column;
};

struct type_name {
    uint16_t kind, facts;
    char name[];
};

struct array_place {
    struct source_place place;
    const struct type_name *array;
};

void __ubsan_handle_out_of_bounds(const struct array_place *at, uintptr_t index)
{
    struct emulated_report *made = report(OUT_OF_BOUNDS, 0, at->place.line);
    if (made) {
        made->offset = (int64_t)(int32_t)index;
        made->array = at->array->name;
    }
    stop(); /* the stack is not checked any further */
}

void __ubsan_handle_divrem_overflow(const struct source_place *place, uintptr_t left,
                                    uintptr_t right)
{
    (void)left, (void)right;
    report(DIVISION, 0, place->line);
    stop(); /* the processor would end the process */
}

void __ubsan_handle_shift_out_of_bounds(const struct source_place *place, uintptr_t left,
                                        uintptr_t right)
{
    (void)left;
    struct emulated_report *made = report(SHIFT, 0, place->line);
    if (made)
        made->offset = (int64_t)(int32_t)right;
}

void __trap(void)
{
    report(TRAP, CALLER, 0);
    stop();
}

unsigned __activemask(void) { return 1u << S.lane; }
