/* Lanes of a warp that meet: their clocks, shuffles, votes and reductions. */

/* Let all lanes in `lanes` know what each of them does. */
static void join(struct warp *warp, uint32_t lanes)
{
    uint32_t all[LANES] = {0}, time = ++warp->time;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t *clocks = warp->clocks[__builtin_ctz(rest)];
        for (int i = 0; i < LANES; i++)
            all[i] = all[i] > clocks[i] ? all[i] : clocks[i];
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        memcpy(warp->clocks[lane], all, sizeof all);
        warp->clocks[lane][lane] = time;
    }
}

static void reset_clocks(struct warp *warp)
{
    memset(warp->clocks, 0, sizeof warp->clocks);
    for (int i = 0; i < LANES; i++)
        warp->clocks[i][i] = 1;
    warp->time = 1;
}

/* The lane whose value `lane` gets from a shuffle. */
static int source_of(const struct thread *thread, int lane)
{
    int width = thread->width, segment = lane & -width, by = thread->by, from;
    switch (thread->operation) {
    case EMULATED_SHUFFLE: return segment + (by & (width - 1));
    case EMULATED_UP: from = lane - by; return from < segment ? lane : from;
    case EMULATED_DOWN: from = lane + by; return from >= segment + width ? lane : from;
    default: from = lane ^ by; return from >= segment + width ? lane : from;
    }
}

COLD static void report_lane(struct thread *thread, uint32_t number, int from)
{
    struct emulated_report *made = report(UNDEFINED_LANE, 0, thread->line);
    if (made) {
        made->thread = number;
        made->other_thread = number / LANES * LANES + (uint32_t)from;
        made->lanes = thread->mask;
    }
}

static uint64_t combine(int operation, uint64_t a, uint64_t b)
{
    int32_t x = (int32_t)a, y = (int32_t)b;
    switch (operation) {
    case EMULATED_ADD: return (uint32_t)(a + b);
    case EMULATED_MIN_SIGNED: return (uint64_t)(int64_t)(x < y ? x : y);
    case EMULATED_MIN_UNSIGNED: return a < b ? a : b;
    case EMULATED_MAX_SIGNED: return (uint64_t)(int64_t)(x > y ? x : y);
    case EMULATED_MAX_UNSIGNED: return a > b ? a : b;
    case EMULATED_AND: return a & b;
    case EMULATED_OR: return a | b;
    default: return a ^ b;
    }
}

static void shuffle(uint32_t first, uint32_t lanes)
{
    struct thread *threads = &S.threads_[first];
    uint64_t values[LANES];
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        values[__builtin_ctz(rest)] = threads[__builtin_ctz(rest)].bits;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest), from = source_of(&threads[lane], lane);
        if (lanes >> (from & 31) & 1)
            threads[lane].bits = values[from];
        else
            report_lane(&threads[lane], first + (uint32_t)lane, from);
    }
}

static void vote(uint32_t first, uint32_t lanes, int operation)
{
    struct thread *threads = &S.threads_[first];
    uint32_t ballot = 0;
    uint64_t total = threads[__builtin_ctz(lanes)].bits, values[LANES];
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        values[lane] = threads[lane].bits;
        ballot |= (uint32_t)(values[lane] != 0) << lane;
        if (operation >= EMULATED_ADD && rest != lanes)
            total = combine(operation, total, values[lane]);
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        uint64_t *result = &threads[lane].bits;
        if (operation == EMULATED_BALLOT)
            *result = ballot;
        else if (operation == EMULATED_ALL)
            *result = ballot == lanes;
        else if (operation == EMULATED_ANY)
            *result = ballot != 0;
        else if (operation >= EMULATED_ADD)
            *result = total;
        else if (operation == EMULATED_MATCH_ANY) {
            *result = 0;
            for (uint32_t others = lanes; others; others &= others - 1)
                if (values[__builtin_ctz(others)] == values[lane])
                    *result |= 1u << __builtin_ctz(others);
        }
    }
}

/* Whether some lanes of the warp, all that one of them waits for, have met; they may go on. */
static bool meet(uint32_t number)
{
    struct warp *warp = &S.warps_[number];
    struct thread *threads = &S.threads_[number * LANES];
    bool met = false;
    for (uint32_t rest = warp->at_warp; rest;) {
        int lane = __builtin_ctz(rest);
        uint32_t lanes = threads[lane].mask & warp->live;
        bool same = !(lanes & ~rest);
        for (uint32_t others = lanes; same && others; others &= others - 1) {
            const struct thread *other = &threads[__builtin_ctz(others)];
            same = other->mask == threads[lane].mask
                && other->operation == threads[lane].operation;
        }
        rest &= ~(same ? lanes : 1u << lane);
        if (!same)
            continue;
        met = true;
        int operation = threads[lane].operation;
        if (operation >= EMULATED_SHUFFLE && operation <= EMULATED_XOR)
            shuffle(number * LANES, lanes);
        else if (operation)
            vote(number * LANES, lanes, operation);
        join(warp, lanes);
        warp->at_warp &= ~lanes;
        S.launch->warp_operations++;
        if (S.launch->counting && lanes == warp->live)
            close_requests();
    }
    return met;
}
