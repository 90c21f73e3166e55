/* The emulated device: runs kernels that were compiled with cuda_emulation.h, one block after
 * another, and checks every access to memory.
 *
 * Threads are fibers. One runs until it waits at a barrier, meets other lanes of its warp, or ends;
 * then the next one of its warp goes on, on the same stack where it is new. The order of blocks,
 * warps and lanes is drawn from a seed. Atomics give way to other threads now and then, so loops
 * around them have something to retry.
 *
 * Who is ordered after whom: every barrier of a block, and every new block, begins an epoch; within
 * an epoch the lanes of a warp have vector clocks (Flanagan and Freund 2009, FastTrack), which
 * `*_sync` functions join. For each cell of memory three sets are kept: who wrote, who read and who
 * used an atomic last, without order among them. A set is one epoch, one warp and a mask of lanes;
 * lanes of several warps, or blocks, are never ordered within one epoch, or launch, so that a flag is
 * enough. A write that races with nothing empties the sets, as it comes after all that is in them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emulated_launch.h"

#define LANES 32
#define MOST_THREADS 1024
#define MOST_WARPS (MOST_THREADS / LANES)
#define MOST_DYNAMIC (227 * 1024)
#define ALL_LANES 0xffffffffu
#define NEVER_INLINE __attribute__((noinline))
#define COLD __attribute__((noinline, cold))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CALLER ((uintptr_t)__builtin_return_address(0))

enum kind {
    OUT_OF_BOUNDS, UNINITIALISED, SHARED_RACE, GLOBAL_RACE, DIVERGENT_BARRIER, DIVERGENT_WARP,
    MISALIGNED, HANG, UNDEFINED_LANE, WRITE_TO_CONSTANT, STACK_OVERFLOW, TRAP, LIMIT,
    DIVISION, SHIFT
};

typedef struct { unsigned x, y, z; } triple;
triple threadIdx, blockIdx, blockDim, gridDim;
unsigned char emulated_dynamic_shared[MOST_DYNAMIC] __attribute__((aligned(256)));

/* Accesses without order among them. */
struct set {
    uint32_t epoch;
    uint32_t clock : 20, warp : 5, warps : 1, blocks : 1;
    uint32_t lanes, pc;
};

struct cell {
    struct set writes, reads, atomics;
};

struct fiber {
    void *sp;
    uint8_t *stack;
};

struct thread {
    struct fiber *fiber; /* NULL before it begins, and after it ends */
    triple index;
    uint64_t left; /* steps */
    uint32_t accesses;
    bool synchronised; /* whether it has waited at a barrier */
    /* what it waits for */
    int operation, by, width;
    uint32_t mask, site, line;
    uint64_t bits;
};

struct warp {
    uint32_t live, at_barrier, at_warp; /* masks of lanes */
    uint32_t time;                      /* counts what orders lanes, from 1 */
    uint32_t clocks[LANES][LANES];      /* [me][other]: the last clock of another that I know of */
};

static struct {
    struct emulated_launch *launch;
    void (*run)(void **);
    uintptr_t base;
    /* the thread that runs */
    uint32_t thread;
    struct warp *its_warp;
    uint32_t warp_number, lane;
    uint32_t clock, floor; /* its own clock, and the least one that it knows of any lane */
    uintptr_t stack_low, stack_high;
    uint64_t left, allowed;
    bool stopped;
    /* the block */
    uint32_t block, block_number, threads, warps, epoch, block_epoch, launch_epoch;
    uint32_t ended; /* a thread that ended after it had waited at a barrier */
    uint32_t *epochs; /* at which each block began, in the order of blocks */
    uint64_t step, start, spins;
    /* the pass over the lanes of a warp */
    uint32_t pass_warp, pass_at, pass_factor, pass_shift, pass_lanes;
    uint64_t random;
    struct fiber main, *current;
    uint32_t free_count, fiber_count;
    struct fiber *free_fibers[MOST_THREADS + 1];
    struct fiber fibers[MOST_THREADS + 1];
    struct thread threads_[MOST_THREADS];
    struct warp warps_[MOST_WARPS];
    uint8_t last_buffer[256];
} S;

/* ---------------------------------------------------------------- fibers */

void emulated_switch(void **save, void *to);
static void fiber_main(void);

#if defined(__x86_64__) && !defined(__ILP32__) && !defined(EMULATED_CONTEXTS)
__asm__(".text\n.p2align 4\n.globl emulated_switch\n.hidden emulated_switch\n"
        ".type emulated_switch, @function\nemulated_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\n"
        "ret\n.size emulated_switch, .-emulated_switch\n");

static void prepare(struct fiber *fiber, uint64_t size)
{
    uintptr_t *top = (uintptr_t *)(((uintptr_t)fiber->stack + size) & ~(uintptr_t)63);
    *--top = 0; /* where fiber_main would return to, which it does not */
    *--top = (uintptr_t)fiber_main;
    for (int i = 0; i < 6; i++)
        *--top = 0;
    fiber->sp = top;
}
#elif defined(__aarch64__) && !defined(EMULATED_CONTEXTS)
__asm__(".text\n.p2align 4\n.globl emulated_switch\n.hidden emulated_switch\n"
        ".type emulated_switch, %function\nemulated_switch:\n"
        "sub sp, sp, #160\n"
        "stp x19, x20, [sp, #0]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\n"
        "mov x2, sp\nstr x2, [x0]\nmov sp, x1\n"
        "ldp x19, x20, [sp, #0]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
        "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\n"
        "ldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\nret\n.size emulated_switch, .-emulated_switch\n");

static void prepare(struct fiber *fiber, uint64_t size)
{
    uintptr_t *top = (uintptr_t *)(((uintptr_t)fiber->stack + size) & ~(uintptr_t)63);
    top -= 20;
    memset(top, 0, 160);
    top[11] = (uintptr_t)fiber_main; /* x30 */
    fiber->sp = top;
}
#else
#include <ucontext.h>
static ucontext_t contexts[MOST_THREADS + 2];

static ucontext_t *context_of(struct fiber *fiber)
{
    return &contexts[fiber == &S.main ? MOST_THREADS + 1 : (size_t)(fiber - S.fibers)];
}

static void prepare(struct fiber *fiber, uint64_t size)
{
    ucontext_t *context = context_of(fiber);
    getcontext(context);
    context->uc_stack.ss_sp = fiber->stack;
    context->uc_stack.ss_size = size;
    context->uc_link = NULL;
    makecontext(context, fiber_main, 0);
}
#define SLOW_SWITCH 1
#endif

static void switch_to(struct fiber *to)
{
    struct fiber *from = S.current;
    S.current = to;
#ifdef SLOW_SWITCH
    swapcontext(context_of(from), context_of(to));
#else
    emulated_switch(&from->sp, to->sp);
#endif
}

static struct fiber *new_fiber(void)
{
    if (S.free_count)
        return S.free_fibers[--S.free_count];
    struct fiber *fiber = &S.fibers[S.fiber_count];
    fiber->stack = S.launch->stacks + S.fiber_count++ * S.launch->stack_size;
    prepare(fiber, S.launch->stack_size);
    return fiber;
}

/* ---------------------------------------------------------------- reports */

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

/* ---------------------------------------------------------------- races */

/* The block that an epoch of this launch belongs to. */
static uint32_t block_of(uint32_t epoch)
{
    uint64_t low = 0, high = S.block_number;
    while (low < high) {
        uint64_t middle = (low + high + 1) / 2;
        if (S.epochs[middle] <= epoch)
            low = middle;
        else
            high = middle - 1;
    }
    uint64_t blocks =
        (uint64_t)S.launch->grid[0] * S.launch->grid[1] * S.launch->grid[2];
    return (uint32_t)((low * S.step + S.start) % blocks);
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

/* Whether a thread of `set` other than this one is not ordered before it. */
static inline bool conflicts(const struct set *set, bool shared)
{
    if (set->epoch != S.epoch) {
        if (LIKELY(set->epoch < S.launch_epoch) || shared)
            return false;
        return set->epoch < S.block_epoch || set->blocks;
    }
    if (set->blocks && !shared)
        return true;
    return set->warps || set->warp != S.warp_number || unordered_lanes(set);
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
    made->other_block = elsewhere ? block_of(set->epoch) : S.block;
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

/* ---------------------------------------------------------------- counting */

/* What lanes of one warp did at one place for the n-th time since they last met. */
struct request {
    uint32_t place, number, generation, lanes;
    uint64_t first[LANES];
    uint32_t size;
};

struct turn {
    uint32_t place, generation;
    uint32_t lane, count;
};

static struct {
    struct request *requests;
    struct turn *turns;
    uint32_t *order; /* the requests in use */
    uint64_t capacity, used, turn_capacity, turns_used;
    uint32_t generation;
} C;

static int place_of(uintptr_t pc, int kind, int buffer)
{
    struct emulated_launch *launch = S.launch;
    uint64_t offset = pc - S.base;
    uint32_t hash = (uint32_t)(offset * 0x9e3779b1u >> 7) + (uint32_t)buffer * 31;
    for (uint32_t i = 0; i < launch->place_capacity; i++) {
        uint32_t at = (hash + i) & (launch->place_capacity - 1);
        struct emulated_place *place = &launch->places[at];
        if (place->pc == offset && place->buffer == buffer && place->kind == kind)
            return (int)at;
        if (!place->pc) {
            place->pc = offset;
            place->buffer = buffer;
            place->kind = kind;
            launch->place_count++;
            return (int)at;
        }
    }
    return -1;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void close_request(struct request *request)
{
    uint64_t starts[LANES], sectors = 0, distinct = 0, last = UINT64_MAX, end = 0;
    int count = 0;
    for (uint32_t rest = request->lanes; rest; rest &= rest - 1)
        starts[count++] = request->first[__builtin_ctz(rest)];
    qsort(starts, (size_t)count, sizeof *starts, compare);
    for (int i = 0; i < count; i++) {
        uint64_t low = starts[i], high = low + request->size;
        distinct += high - (low > end ? low : end < high ? end : high);
        end = high > end ? high : end;
        uint64_t from = low / 32, to = (high - 1) / 32;
        if (last != UINT64_MAX && from <= last)
            from = last + 1;
        if (from <= to) {
            sectors += to - from + 1;
            last = to;
        }
    }
    struct emulated_place *place = &S.launch->places[request->place];
    place->requests++;
    place->sectors += sectors;
    place->ideal_sectors += (distinct + 31) / 32;
}

/* Lanes have met, or the warp has ended: nothing more belongs to what is open. */
static void close_requests(void)
{
    for (uint64_t i = 0; i < C.used; i++)
        close_request(&C.requests[C.order[i]]);
    C.used = C.turns_used = 0;
    C.generation++;
}

COLD static bool grow_turns(void)
{
    uint64_t capacity = C.turn_capacity ? 2 * C.turn_capacity : 4096;
    struct turn *made = calloc(capacity, sizeof *made), *old = C.turns;
    if (!made)
        return false;
    for (uint64_t i = 0; i < C.turn_capacity; i++)
        if (old[i].generation == C.generation) {
            uint64_t at = (old[i].place * 32u + old[i].lane) * 0x9e3779b1u;
            while (made[at & (capacity - 1)].generation == C.generation)
                at++;
            made[at & (capacity - 1)] = old[i];
        }
    free(old);
    C.turns = made;
    C.turn_capacity = capacity;
    return true;
}

/* How many times this lane was at `place` since lanes last met. */
static uint32_t turn_of(uint32_t place)
{
    uint64_t at = (place * 32u + S.lane) * 0x9e3779b1u;
    for (;; at++) {
        struct turn *turn = &C.turns[at & (C.turn_capacity - 1)];
        if (turn->generation != C.generation) {
            *turn = (struct turn){place, C.generation, S.lane, 0};
            C.turns_used++;
            return 0;
        }
        if (turn->place == place && turn->lane == S.lane)
            return ++turn->count;
    }
}

static uint64_t hash_of(uint32_t place, uint32_t number)
{
    return ((uint64_t)place << 32 | number) * 0x9e3779b97f4a7c15u >> 20;
}

COLD static bool grow_requests(void)
{
    uint64_t capacity = C.capacity ? 2 * C.capacity : 1024;
    struct request *made = calloc(capacity, sizeof *made), *old = C.requests;
    uint32_t *order = malloc(capacity * sizeof *order);
    if (!made || !order) {
        free(made);
        free(order);
        return false;
    }
    for (uint64_t i = 0; i < C.used; i++) {
        struct request *request = &old[C.order[i]];
        uint64_t at = hash_of(request->place, request->number);
        while (made[at & (capacity - 1)].generation == C.generation)
            at++;
        made[at & (capacity - 1)] = *request;
        order[i] = (uint32_t)(at & (capacity - 1));
    }
    free(old);
    free(C.order);
    C.requests = made;
    C.order = order;
    C.capacity = capacity;
    return true;
}

NEVER_INLINE static void count(enum access access, int number, uintptr_t address, uint32_t size,
                               uintptr_t pc)
{
    struct emulated_launch *launch = S.launch;
    struct emulated_buffer *buffer = &launch->buffers[number];
    S.threads_[S.thread].accesses++;
    if (buffer->shared)
        return;
    bool reads = access == READS || access == RELAXED_READ;
    if (access == ATOMIC)
        launch->atomics++;
    else if (reads)
        launch->bytes_read += size;
    else
        launch->bytes_written += size;
    int place = place_of(pc, access == ATOMIC ? 2 : !reads, number);
    if (UNLIKELY(place < 0)) {
        report(LIMIT, pc, 0);
        stop();
    }
    launch->places[place].accesses++;
    launch->places[place].bytes += size;
    if ((2 * C.turns_used >= C.turn_capacity && !grow_turns())
        || (2 * C.used >= C.capacity && !grow_requests()))
        stop_for_memory();
    uint32_t turn = turn_of((uint32_t)place);
    for (uint64_t at = hash_of((uint32_t)place, turn);; at++) {
        struct request *request = &C.requests[at & (C.capacity - 1)];
        if (request->generation != C.generation) {
            request->place = (uint32_t)place;
            request->number = turn;
            request->generation = C.generation;
            request->lanes = 0;
            request->size = size;
            C.order[C.used++] = (uint32_t)(at & (C.capacity - 1));
        } else if (request->place != (uint32_t)place || request->number != turn) {
            continue;
        }
        request->lanes |= 1u << S.lane;
        request->first[S.lane] = address;
        return;
    }
}

/* ---------------------------------------------------------------- accesses */

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
    check_races(buffer, number, access, address, offset, size, pc);
}

static void give_way(void);

#define CALLBACKS(size)                                                                           \
    void __tsan_read##size(void *p) { access_memory((uintptr_t)p, size, READS, true, true, CALLER); } \
    void __tsan_write##size(void *p)                                                              \
    {                                                                                             \
        access_memory((uintptr_t)p, size, WRITES, false, true, CALLER);                           \
    }                                                                                             \
    void __tsan_unaligned_read##size(void *p)                                                     \
    {                                                                                             \
        access_memory((uintptr_t)p, size, READS, true, false, CALLER);                            \
    }                                                                                             \
    void __tsan_unaligned_write##size(void *p)                                                    \
    {                                                                                             \
        access_memory((uintptr_t)p, size, WRITES, false, false, CALLER);                          \
    }                                                                                             \
    void __tsan_volatile_read##size(void *p)                                                      \
    {                                                                                             \
        give_way();                                                                               \
        access_memory((uintptr_t)p, size, size > 8 ? READS : RELAXED_READ, true, true, CALLER);   \
    }                                                                                             \
    void __tsan_volatile_write##size(void *p)                                                     \
    {                                                                                             \
        access_memory((uintptr_t)p, size, size > 8 ? WRITES : RELAXED_WRITE, false, true, CALLER); \
    }                                                                                             \
    void __tsan_unaligned_volatile_read##size(void *p)                                            \
    {                                                                                             \
        access_memory((uintptr_t)p, size, READS, true, false, CALLER);                            \
    }                                                                                             \
    void __tsan_unaligned_volatile_write##size(void *p)                                           \
    {                                                                                             \
        access_memory((uintptr_t)p, size, WRITES, false, false, CALLER);                          \
    }

CALLBACKS(1)
CALLBACKS(2)
CALLBACKS(4)
CALLBACKS(8)
CALLBACKS(16)

static void access_range(uintptr_t address, uint64_t size, enum access access, uintptr_t pc)
{
    uint32_t unit = address % 4 || size % 4 ? 1 : 4;
    for (uint64_t i = 0; i < size; i += unit)
        access_memory(address + i, unit, access, access == READS, false, pc);
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

/* ---------------------------------------------------------------- scheduling */

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
    case 1: return segment + (by & (width - 1));
    case 2: from = lane - by; return from < segment ? lane : from;
    case 3: from = lane + by; return from >= segment + width ? lane : from;
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
    case 10: return (uint32_t)(a + b);
    case 11: return (uint64_t)(int64_t)(x < y ? x : y);
    case 12: return a < b ? a : b;
    case 13: return (uint64_t)(int64_t)(x > y ? x : y);
    case 14: return a > b ? a : b;
    case 15: return a & b;
    case 16: return a | b;
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
        if (operation >= 10 && rest != lanes)
            total = combine(operation, total, values[lane]);
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        uint64_t *result = &threads[lane].bits;
        if (operation == 5)
            *result = ballot;
        else if (operation == 6)
            *result = ballot == lanes;
        else if (operation == 7)
            *result = ballot != 0;
        else if (operation >= 10)
            *result = total;
        else if (operation == 8) {
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
        if (operation >= 1 && operation <= 4)
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
    int result = operation == 1 ? (int)votes : operation == 2 ? votes == all : votes != 0;
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
    if (UNLIKELY(S.its_warp->time >= (1u << 20) - 2)) {
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

/* ---------------------------------------------------------------- atomics */

#define BEFORE(needs)                                                                             \
    give_way();                                                                                   \
    access_memory((uintptr_t)place, sizeof *place, ATOMIC, needs, true, CALLER)
#define ATOMIC_FUNCTION(name, suffix, T, needs, expression)                                       \
    T emulated_##name##_##suffix(T *place, T value)                                               \
    {                                                                                             \
        BEFORE(needs);                                                                            \
        T old = *place;                                                                           \
        *place = (T)(expression);                                                                 \
        return old;                                                                               \
    }
#define FOR_INTEGERS(X)                                                                           \
    X(i32, int) X(u32, unsigned) X(u64, unsigned long long)
#define FOR_ORDERED(X) FOR_INTEGERS(X) X(i64, long long)
#define WRAPPED(T, a, operator, b) (T)((unsigned long long)(a) operator (unsigned long long)(b))

#define ADD(s, T) ATOMIC_FUNCTION(add, s, T, true, WRAPPED(T, old, +, value))
#define EXCHANGE(s, T) ATOMIC_FUNCTION(exchange, s, T, false, value)
#define LEAST(s, T) ATOMIC_FUNCTION(min, s, T, true, value < old ? value : old)
#define MOST(s, T) ATOMIC_FUNCTION(max, s, T, true, value > old ? value : old)
#define BOTH(s, T) ATOMIC_FUNCTION(and, s, T, true, old & value)
#define EITHER(s, T) ATOMIC_FUNCTION(or, s, T, true, old | value)
#define DIFFER(s, T) ATOMIC_FUNCTION(xor, s, T, true, old ^ value)
#define COMPARE(s, T)                                                                             \
    T emulated_cas_##s(T *place, T expected, T value)                                             \
    {                                                                                             \
        BEFORE(true);                                                                             \
        T old = *place;                                                                           \
        if (old == expected)                                                                      \
            *place = value;                                                                       \
        return old;                                                                               \
    }
FOR_INTEGERS(ADD)
ATOMIC_FUNCTION(add, f32, float, true, old + value)
ATOMIC_FUNCTION(add, f64, double, true, old + value)
ATOMIC_FUNCTION(sub, i32, int, true, WRAPPED(int, old, -, value))
ATOMIC_FUNCTION(sub, u32, unsigned, true, old - value)
FOR_INTEGERS(EXCHANGE)
ATOMIC_FUNCTION(exchange, f32, float, false, value)
FOR_ORDERED(LEAST)
FOR_ORDERED(MOST)
FOR_INTEGERS(BOTH)
FOR_INTEGERS(EITHER)
FOR_INTEGERS(DIFFER)
FOR_INTEGERS(COMPARE)
COMPARE(u16, unsigned short)
ATOMIC_FUNCTION(increment, u32, unsigned, true, old >= value ? 0 : old + 1)
ATOMIC_FUNCTION(decrement, u32, unsigned, true, old == 0 || old > value ? value : old - 1)

/* ---------------------------------------------------------------- launches */

static void start_block(const struct emulated_launch *launch, uint32_t block)
{
    S.block = block;
    S.block_epoch = ++S.epoch;
    S.epochs[S.block_number] = S.epoch;
    blockIdx.x = block % launch->grid[0];
    blockIdx.y = block / launch->grid[0] % launch->grid[1];
    blockIdx.z = block / launch->grid[0] / launch->grid[1];
    for (uint32_t i = 0; i < launch->buffer_count; i++) {
        struct emulated_buffer *buffer = &launch->buffers[i];
        if (!buffer->shared)
            continue;
        memset(buffer->valid, 0, buffer->size);
        memset((void *)buffer->base, 0xAB, buffer->size);
    }
    for (uint32_t w = 0; w < S.warps; w++) {
        struct warp *warp = &S.warps_[w];
        uint32_t lanes = S.threads - w * LANES;
        warp->live = lanes >= LANES ? ALL_LANES : (1u << lanes) - 1;
        warp->at_barrier = warp->at_warp = 0;
        if (warp->time != 1)
            reset_clocks(warp);
    }
    for (uint32_t t = 0; t < S.threads; t++) {
        S.threads_[t].left = launch->most_steps;
        S.threads_[t].accesses = 0;
        S.threads_[t].synchronised = false;
    }
    S.ended = ALL_LANES;
    S.pass_at = LANES;
    S.pass_warp = random_bits() % S.warps;
}

static void run_block(const struct emulated_launch *launch, uint32_t block)
{
    start_block(launch, block);
    int next = choose();
    if (next >= 0)
        go_to((uint32_t)next);
    if (launch->accesses)
        for (uint32_t t = 0; t < S.threads; t++)
            launch->accesses[(uint64_t)block * S.threads + t] = S.threads_[t].accesses;
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b) { return b ? greatest_divisor(b, a % b) : a; }

static bool make_cells(struct emulated_launch *launch)
{
    for (uint32_t i = 0; i < launch->buffer_count; i++) {
        struct emulated_buffer *buffer = &launch->buffers[i];
        if (buffer->cells || buffer->constant || !buffer->live)
            continue;
        buffer->shift = 2;
        buffer->cells = calloc(buffer->size / 4 + 2, sizeof(struct cell));
        if (!buffer->cells)
            return false;
    }
    return true;
}

static void start_launch(struct emulated_launch *launch, uint64_t blocks)
{
    S.launch = launch;
    C.generation += C.generation == 0; /* 0 is that of new tables */
    S.base = emulated_base();
    S.run = emulated_kernel_at((int32_t)launch->kernel)->run;
    S.stopped = false;
    S.random = ((uint64_t)launch->seed_high << 32 | launch->seed_low) * 0x9e3779b97f4a7c15u
               + 0x2545f4914f6cdd1du;
    S.random |= S.random == 0;
    for (int i = 0; i < 8; i++)
        random_bits();
    S.threads = launch->block[0] * launch->block[1] * launch->block[2];
    S.warps = (S.threads + LANES - 1) / LANES;
    S.epoch = launch->epoch;
    S.launch_epoch = S.epoch + 1;
    S.free_count = S.fiber_count = 0;
    S.current = &S.main;
    memset(S.last_buffer, 0, sizeof S.last_buffer);
    blockDim = (triple){launch->block[0], launch->block[1], launch->block[2]};
    gridDim = (triple){launch->grid[0], launch->grid[1], launch->grid[2]};
    S.start = random_bits() % blocks;
    do
        S.step = 1 + random_bits() % blocks;
    while (greatest_divisor(S.step, blocks) != 1);
    for (uint32_t t = 0; t < S.threads; t++) {
        S.threads_[t].fiber = NULL;
        S.threads_[t].index = (triple){t % launch->block[0], t / launch->block[0] % launch->block[1],
                                       t / launch->block[0] / launch->block[1]};
    }
    for (uint32_t w = 0; w < S.warps; w++)
        reset_clocks(&S.warps_[w]);
}

/* Run a kernel. Several at once are not possible: the caller sees to that. */
__attribute__((visibility("default"))) int32_t emulated_run(struct emulated_launch *launch)
{
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    launch->status = 2;
    if (launch->checks && !make_cells(launch))
        return 2;
    S.epochs = malloc(blocks * sizeof *S.epochs);
    if (!S.epochs)
        return 2;
    launch->status = 0;
    start_launch(launch, blocks);
    for (uint64_t i = 0; i < blocks && !S.stopped; i++) {
        S.block_number = (uint32_t)i;
        run_block(launch, (uint32_t)((i * S.step + S.start) % blocks));
    }
    if (launch->counting)
        close_requests();
    launch->epoch = S.epoch;
    free(S.epochs);
    S.epochs = NULL;
    return launch->status;
}

extern const char __ehdr_start __attribute__((visibility("hidden")));
__attribute__((visibility("default"))) uint64_t emulated_base(void)
{
    return (uint64_t)(uintptr_t)&__ehdr_start;
}
__attribute__((visibility("default"))) uint64_t emulated_dynamic_base(void)
{
    return (uint64_t)(uintptr_t)emulated_dynamic_shared;
}
