/* Which thread runs next; barriers of blocks, and threads that wait for each other in vain. */

static void begin(uint32_t number)
{
    struct thread *thread = &S.threads_[number];
    S.thread = number;
    S.lane = number % LANES;
    S.warp_number = number / LANES;
    S.its_warp = &S.warps_[S.warp_number];
    S.clock = S.its_warp->clocks[S.lane][S.lane];
    threadIdx = thread->index;
    S.left = S.allowed = thread->left;
    if (S.its_warp->time == 1) {
        S.floor = 0;
        return;
    }
    uint32_t floor = UINT32_MAX;
    for (int i = 0; i < LANES; i++)
        if (i != (int)S.lane && S.warp_number * LANES + (uint32_t)i < S.threads) {
            uint32_t clock = S.its_warp->clocks[S.lane][i];
            floor = clock < floor ? clock : floor;
        }
    S.floor = floor;
}

static void leave(struct thread *thread) { thread->left = S.left; }

static void use_stack(struct fiber *fiber)
{
    S.stack_low = (uintptr_t)fiber->stack;
    S.stack_high = S.stack_low + S.launch->stack_size;
}

static uint32_t runnable(const struct warp *warp)
{
    return warp->live & ~warp->at_barrier & ~warp->at_warp;
}

/* Begin a pass over the lanes of a warp that may run, in an order that is drawn. */
static void start_pass(uint32_t warp)
{
    uint32_t bits = random_bits();
    S.pass_warp = warp;
    S.pass_at = 0;
    S.pass_factor = bits | 1;
    S.pass_shift = bits >> 16;
    S.pass_lanes = runnable(&S.warps_[warp]);
}

COLD static void report_stuck(void)
{
    for (uint32_t w = 0; w < S.warps; w++) {
        struct warp *warp = &S.warps_[w];
        if (!warp->at_warp)
            continue;
        uint32_t number = w * LANES + (uint32_t)__builtin_ctz(warp->at_warp);
        struct thread *thread = &S.threads_[number];
        struct emulated_report *made = report(DIVERGENT_WARP, 0, thread->line);
        if (!made)
            return;
        made->thread = number;
        made->lanes = thread->mask;
        uint32_t lanes = thread->mask & warp->live & ~(1u << number % LANES);
        for (; lanes; lanes &= lanes - 1) {
            struct thread *other = &S.threads_[w * LANES + (uint32_t)__builtin_ctz(lanes)];
            bool waits = warp->at_warp >> __builtin_ctz(lanes) & 1;
            if (waits && other->mask == thread->mask && other->operation == thread->operation)
                continue;
            made->other_thread = w * LANES + (uint32_t)__builtin_ctz(lanes);
            made->other_line = (int32_t)other->line;
            made->detail = !waits ? 1 : other->mask != thread->mask ? 2 : 3;
            break;
        }
        return;
    }
}

COLD static bool report_barrier(uint32_t number, uint32_t other, bool ended)
{
    struct emulated_report *made = report(DIVERGENT_BARRIER, 0, S.threads_[number].line);
    if (made) {
        made->thread = number;
        made->other_thread = other;
        made->other_line = ended ? 0 : (int32_t)S.threads_[other].line;
        made->detail = ended;
    }
    return false;
}

/* All live threads wait for the barrier: let them go on, or say that they wait at several. Threads
 * that ended without any barrier do not count; one that ended after some has left out this one. */
static bool pass_barrier(void)
{
    struct thread *first = NULL;
    uint32_t votes = 0, all = 0, first_number = 0;
    for (uint32_t w = 0; w < S.warps; w++)
        for (uint32_t rest = S.warps_[w].live; rest; rest &= rest - 1) {
            uint32_t number = w * LANES + (uint32_t)__builtin_ctz(rest);
            struct thread *thread = &S.threads_[number];
            if (!first) {
                first = thread;
                first_number = number;
            }
            votes += thread->bits != 0;
            all++;
            if (thread->site != first->site)
                return report_barrier(first_number, number, false);
        }
    if (S.ended != ALL_LANES)
        return report_barrier(first_number, S.ended, true);
    int operation = first->operation;
    int result = operation == EMULATED_COUNT_TRUE ? (int)votes
               : operation == EMULATED_ALL_TRUE ? votes == all : votes != 0;
    for (uint32_t w = 0; w < S.warps; w++) {
        struct warp *warp = &S.warps_[w];
        for (uint32_t rest = warp->live; rest; rest &= rest - 1)
            S.threads_[w * LANES + (uint32_t)__builtin_ctz(rest)].bits = (uint64_t)result;
        warp->at_barrier = 0;
        if (warp->time != 1)
            reset_clocks(warp);
    }
    S.epoch++;
    S.launch->barriers++;
    return true;
}

/* The thread that runs next; -1 where the block has ended, or cannot go on. */
static int choose(void)
{
    for (;;) {
        while (S.pass_at < LANES) {
            uint32_t lane = (S.pass_at++ * S.pass_factor + S.pass_shift) % LANES;
            if (S.pass_lanes >> lane & 1)
                return (int)(S.pass_warp * LANES + lane);
        }
        if (S.warps_[S.pass_warp].at_warp)
            meet(S.pass_warp);
        if (S.launch->counting)
            close_requests();
        /* the same warp again, or another */
        if (runnable(&S.warps_[S.pass_warp]) && random_bits() % 4) {
            start_pass(S.pass_warp);
            continue;
        }
        uint32_t start = random_bits() % S.warps, chosen = ALL_LANES, live = 0, waiting = 0;
        for (uint32_t i = 0; i < S.warps; i++) {
            uint32_t w = start + i < S.warps ? start + i : start + i - S.warps;
            live |= S.warps_[w].live;
            waiting |= S.warps_[w].at_warp;
            if (chosen == ALL_LANES && runnable(&S.warps_[w]))
                chosen = w;
        }
        if (chosen != ALL_LANES) {
            start_pass(chosen);
            continue;
        }
        if (!live)
            return -1;
        if (waiting) {
            report_stuck();
            stop();
        }
        if (!pass_barrier())
            stop();
    }
}

/* Go on with thread `next` on its own stack. */
static void go_to(uint32_t next)
{
    struct thread *thread = &S.threads_[next];
    if (!thread->fiber)
        thread->fiber = new_fiber();
    begin(next);
    use_stack(thread->fiber);
    switch_to(thread->fiber);
}

/* Let others run until this thread is chosen again. */
static void suspend(void)
{
    uint32_t me = S.thread;
    leave(&S.threads_[me]);
    int next = choose();
    if (next == (int)me)
        begin(me);
    else
        go_to((uint32_t)next);
}

static void fiber_main(void)
{
    for (;;) {
        struct thread *thread = &S.threads_[S.thread];
        S.run(S.launch->arguments);
        S.its_warp->live &= ~(1u << S.lane);
        if (thread->synchronised)
            S.ended = S.thread;
        struct fiber *mine = thread->fiber;
        thread->fiber = NULL;
        int next = choose();
        if (next >= 0 && !S.threads_[next].fiber) {
            S.threads_[next].fiber = mine;
            begin((uint32_t)next);
            continue;
        }
        S.free_fibers[S.free_count++] = mine;
        if (next < 0)
            switch_to(&S.main);
        else
            go_to((uint32_t)next);
    }
}

/* An atomic, or a volatile read, now and then lets other lanes go first. */
static void give_way(void)
{
    /* What is counted is counted of lanes that run side by side, so there, only where one waits. */
    if (S.launch->counting ? ++S.spins % 4096 == 0 : random_bits() % 4 == 0) {
        S.launch->yields++;
        suspend();
    }
}

int emulated_barrier(int operation, int predicate, unsigned site, unsigned line)
{
    struct thread *thread = &S.threads_[S.thread];
    thread->operation = operation;
    thread->bits = (uint64_t)(predicate != 0);
    thread->site = site;
    thread->line = line;
    thread->synchronised = true;
    S.its_warp->at_barrier |= 1u << S.lane;
    suspend();
    return (int)thread->bits;
}

uint64_t emulated_warp(
    int operation, unsigned mask, uint64_t bits, int by, int width, unsigned line)
{
    struct thread *thread = &S.threads_[S.thread];
    if (UNLIKELY(!(mask >> S.lane & 1))) {
        struct emulated_report *made = report(DIVERGENT_WARP, 0, line);
        if (made) {
            made->lanes = mask;
            made->detail = 4;
        }
        stop();
    }
    if (UNLIKELY(width < 1 || width > LANES || width & (width - 1))) {
        struct emulated_report *made = report(UNDEFINED_LANE, 0, line);
        if (made)
            made->detail = width;
        stop();
    }
    if (UNLIKELY(S.its_warp->time >= MOST_CLOCKS)) {
        report(LIMIT, 0, line);
        stop();
    }
    thread->operation = operation;
    thread->mask = mask;
    thread->bits = bits;
    thread->by = by;
    thread->width = width;
    thread->line = line;
    S.its_warp->at_warp |= 1u << S.lane;
    suspend();
    return thread->bits;
}
