/* What is wrong is written down for Python, and the launch ends where it cannot go on. */

static uint32_t random_bits(void)
{
    S.random ^= S.random << 13;
    S.random ^= S.random >> 7;
    S.random ^= S.random << 17;
    return (uint32_t)(S.random >> 32);
}

/* End the launch: fibers are left as they are. */
COLD __attribute__((noreturn)) static void stop(void)
{
    S.stopped = true;
    S.launch->status = 1;
    switch_to(&S.main);
    __builtin_unreachable();
}

COLD __attribute__((noreturn)) static void stop_for_memory(void)
{
    S.stopped = true;
    S.launch->status = 2;
    switch_to(&S.main);
    __builtin_unreachable();
}

/* A new report of this kind at this place, or NULL where there is one. */
COLD static struct emulated_report *report(enum kind kind, uintptr_t pc, uint32_t line)
{
    struct emulated_launch *launch = S.launch;
    uint64_t offset = pc ? pc - S.base : 0;
    for (uint32_t i = 0; i < launch->report_count; i++) {
        struct emulated_report *other = &launch->reports[i];
        if (other->kind == (int32_t)kind && other->pc == offset && other->line == (int32_t)line)
            return NULL;
    }
    if (launch->report_count == launch->report_capacity)
        return NULL;
    struct emulated_report *made = &launch->reports[launch->report_count++];
    memset(made, 0, sizeof *made);
    made->kind = kind;
    made->buffer = -1;
    made->pc = offset;
    made->line = (int32_t)line;
    made->block = S.block;
    made->thread = S.thread;
    made->other_block = S.block;
    made->other_thread = ALL_LANES;
    return made;
}

COLD static void report_access(enum kind kind, uintptr_t pc, uintptr_t address, uint32_t size,
                               int buffer, int detail)
{
    struct emulated_report *made = report(kind, pc, 0);
    if (!made)
        return;
    made->buffer = buffer;
    made->address = address;
    made->size = (int32_t)size;
    made->detail = detail;
    if (buffer >= 0)
        made->offset = (int64_t)(address - S.launch->buffers[buffer].base);
}

/* What is in no buffer of the launch: said of the nearest one. */
COLD __attribute__((noreturn)) static void report_outside(uintptr_t pc, uintptr_t address,
                                                          uint32_t size, int detail)
{
    int nearest = -1;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < S.launch->buffer_count; i++) {
        struct emulated_buffer *buffer = &S.launch->buffers[i];
        uint64_t end = buffer->base + buffer->size;
        uint64_t distance = address < buffer->base ? buffer->base - address
                          : address >= end ? address - end + 1 : 0;
        if (distance < least) {
            least = distance;
            nearest = (int)i;
        }
    }
    report_access(OUT_OF_BOUNDS, pc, address, size, least < 1 << 24 ? nearest : -1, detail);
    stop();
}

COLD static void hang(uintptr_t pc)
{
    if (!S.launch) /* what runs when the library is loaded */
        return;
    report(HANG, pc, 0);
    stop();
}
