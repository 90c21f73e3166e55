/* Races: who used each cell of memory, and who is ordered after whom. */

/* The number, in the order of blocks, of the one that an epoch of this launch belongs to. */
static uint32_t order_of(uint32_t epoch)
{
    uint64_t low = 0, high = S.block_number;
    while (low < high) {
        uint64_t middle = (low + high + 1) / 2;
        if (S.epochs[middle] <= epoch)
            low = middle;
        else
            high = middle - 1;
    }
    return (uint32_t)low;
}

/* The block of that number. */
static uint32_t block_at(uint64_t number)
{
    uint64_t blocks = (uint64_t)S.launch->grid[0] * S.launch->grid[1] * S.launch->grid[2];
    return (uint32_t)((number * S.step + S.start) % blocks);
}

/* The lanes of `set`, in this warp, that come before nothing that this thread knows of. */
static inline uint32_t unordered_lanes(const struct set *set)
{
    uint32_t lanes = set->lanes & ~(1u << S.lane);
    if (!lanes || set->clock <= S.floor)
        return 0;
    uint32_t found = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        if (S.its_warp->clocks[S.lane][lane] < set->clock)
            found |= 1u << lane;
    }
    return found;
}

/* Whether this thread knows what was made known at `place`. */
static bool has_acquired(uintptr_t place)
{
    for (uint32_t i = 0; i < S.acquired_count; i++) {
        const struct acquisition *each = &S.acquired[i];
        bool same_warp = each->thread / LANES == S.warp_number;
        if (each->place == place
            && (each->epoch < S.epoch || each->thread == S.thread
                || (same_warp && S.its_warp->clocks[S.lane][each->thread % LANES] >= each->clock)))
            return true;
    }
    return false;
}

/* What a block has made known, and this thread has learnt; NULL for nothing. Blocks by their number
 * in the order. */
static const struct release *learnt_of(uint32_t number)
{
    const struct release *releases = &S.releases[(uint64_t)number * MOST_RELEASES], *last = NULL;
    for (int i = 0; i < MOST_RELEASES && releases[i].epoch; i++)
        if (has_acquired(releases[i].place) && (!last || last->epoch <= releases[i].epoch))
            last = &releases[i];
    return last;
}

/* Whether what other blocks of `set` did was made known to this thread. */
COLD static bool is_known(const struct set *set)
{
    if (!S.acquired_count)
        return false;
    if (set->blocks) { /* of more blocks than one: all there were */
        for (uint32_t i = 0; i < S.block_number; i++)
            if (!learnt_of(i))
                return false;
        return true;
    }
    const struct release *release = learnt_of(order_of(set->epoch));
    if (!release)
        return false;
    return set->epoch < release->epoch
        || (set->epoch == release->epoch && !set->warps && set->warp == release->thread / LANES
            && set->lanes == 1u << release->thread % LANES && set->clock <= release->clock);
}

/* Whether a thread of `set` other than this one is not ordered before it. */
static inline bool conflicts(const struct set *set, bool shared)
{
    if (LIKELY(set->epoch < S.launch_epoch))
        return false;
    if (!shared && UNLIKELY(set->epoch < S.block_epoch || set->blocks) && !is_known(set))
        return true;
    return set->epoch == S.epoch
        && (set->warps || set->warp != S.warp_number || unordered_lanes(set));
}

/* An atomic or volatile access of this thread: it makes known what came before its last fence. */
static void use_flag(uintptr_t place, bool writes)
{
    struct thread *thread = &S.threads_[S.thread];
    thread->flag = place;
    if (!writes || !thread->fence_epoch)
        return;
    struct release *release = &S.releases[(uint64_t)S.block_number * MOST_RELEASES];
    for (int i = 0; i < MOST_RELEASES - 1 && release->epoch && release->place != place; i++)
        release++;
    *release = (struct release){thread->fence_epoch, S.thread, thread->fence_clock, place};
}

void emulated_fence(void)
{
    struct thread *thread = &S.threads_[S.thread];
    thread->fence_epoch = S.epoch;
    thread->fence_clock = S.clock;
    /* what it does from here on is not what the fence makes known */
    if (S.its_warp->time < MOST_CLOCKS)
        S.clock = S.its_warp->clocks[S.lane][S.lane] = ++S.its_warp->time;
    if (!thread->flag)
        return;
    uint32_t at = 0;
    while (at < S.acquired_count
           && (S.acquired[at].place != thread->flag || S.acquired[at].thread != S.thread))
        at++;
    if (at == MOST_ACQUIRED)
        return;
    S.acquired[at] = (struct acquisition){thread->flag, S.epoch, S.thread, S.clock};
    S.acquired_count += at == S.acquired_count;
}

static inline void replace(struct set *set, uint32_t pc)
{
    *set = (struct set){S.epoch, S.clock, S.warp_number, 0, 0, 1u << S.lane, pc};
}

/* Add this thread to `set`, without those that are ordered before it. */
static inline void add(struct set *set, bool shared, uint32_t pc)
{
    if (set->epoch != S.epoch) {
        bool blocks = !shared && set->epoch >= S.launch_epoch
                      && (set->blocks || set->epoch < S.block_epoch);
        replace(set, pc);
        set->blocks = blocks;
        return;
    }
    if (set->warps)
        return;
    if (set->warp != S.warp_number) {
        set->warps = 1;
        return;
    }
    uint32_t me = 1u << S.lane, old = set->lanes & ~me;
    if (LIKELY(set->clock == S.clock)) {
        set->lanes |= me;
        return;
    }
    old = unordered_lanes(set);
    bool blocks = set->blocks;
    uint32_t clock = old && set->clock < S.clock ? set->clock : S.clock;
    replace(set, pc);
    set->blocks = blocks;
    set->lanes |= old;
    set->clock = clock;
}

enum access { READS, WRITES, ATOMIC, RELAXED_READ, RELAXED_WRITE };

COLD static void report_race(const struct set *set, enum access other, int number,
                             uintptr_t address, uint32_t size, uintptr_t pc, enum access access)
{
    struct emulated_buffer *buffer = &S.launch->buffers[number];
    struct emulated_report *made = report(buffer->shared ? SHARED_RACE : GLOBAL_RACE, pc, 0);
    if (!made)
        return;
    bool elsewhere = !buffer->shared && set->epoch < S.block_epoch;
    uint32_t lanes = set->lanes;
    if (!elsewhere && set->warp == S.warp_number && !set->warps && unordered_lanes(set))
        lanes = unordered_lanes(set);
    made->buffer = number;
    made->address = address;
    made->offset = (int64_t)(address - buffer->base);
    made->size = (int32_t)size;
    made->detail = (int)access | (int)other << 4;
    made->other_pc = set->pc;
    made->other_block = elsewhere ? block_at(order_of(set->epoch)) : S.block;
    made->other_thread = set->warp * LANES + (uint32_t)__builtin_ctz(lanes | 1u << 31);
}

static inline __attribute__((always_inline)) void
check_cell(struct cell *cell, enum access access, bool shared, int number, uintptr_t address,
           uint32_t size, uintptr_t pc)
{
    uint32_t place = (uint32_t)(pc - S.base);
    bool atomic = access >= ATOMIC, reads = access == READS || access == RELAXED_READ;
    if (UNLIKELY(conflicts(&cell->writes, shared)))
        report_race(&cell->writes, WRITES, number, address, size, pc, access);
    if (!atomic && UNLIKELY(conflicts(&cell->atomics, shared)))
        report_race(&cell->atomics, ATOMIC, number, address, size, pc, access);
    if (!reads && UNLIKELY(conflicts(&cell->reads, shared)))
        report_race(&cell->reads, READS, number, address, size, pc, access);
    if (access == READS) {
        add(&cell->reads, shared, place);
    } else if (access == WRITES) {
        replace(&cell->writes, place);
        cell->reads.epoch = cell->atomics.epoch = 0;
    } else if (access != RELAXED_READ) {
        add(&cell->atomics, shared, place);
    }
}

/* Make cells stand for fewer bytes: what was said of a cell holds for each of its parts. */
COLD static void split(struct emulated_buffer *buffer, int shift)
{
    uint64_t count = (buffer->size + (1u << shift) - 1) >> shift;
    struct cell *old = buffer->cells, *made = calloc(count + 1, sizeof *made);
    if (!made)
        stop_for_memory();
    for (uint64_t i = 0; i < count; i++)
        made[i] = old[(i << shift) >> buffer->shift];
    free(old);
    buffer->cells = made;
    buffer->shift = shift;
}

static inline __attribute__((always_inline)) void
check_races(struct emulated_buffer *buffer, int number, enum access access, uintptr_t address,
            uint64_t offset, uint32_t size, uintptr_t pc)
{
    uint32_t unit = 1u << buffer->shift;
    if (UNLIKELY((offset | size) & (unit - 1))) {
        split(buffer, (offset | size) & 1 ? 0 : (offset | size) & 2 ? 1 : 2);
        unit = 1u << buffer->shift;
    }
    struct cell *cell = (struct cell *)buffer->cells + (offset >> buffer->shift);
    bool shared = buffer->shared;
    for (uint32_t done = 0; done < size; done += unit, cell++)
        check_cell(cell, access, shared, number, address, size, pc);
}
