/* What the emulated device knows while a launch runs. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emulated_launch.h"
#include "emulated_operations.h"

#define LANES 32
#define MOST_THREADS 1024
#define MOST_WARPS (MOST_THREADS / LANES)
#define MOST_DYNAMIC (227 * 1024)
#define MOST_ACQUIRED 16
#define MOST_RELEASES 4 /* of a block, at different places */
#define MOST_CLOCKS ((1u << 20) - 2)
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

/* What a block has made known: all before a fence, by an atomic (or a volatile write) after it. */
struct release {
    uint32_t epoch, thread, clock; /* of the fence; no epoch: nothing */
    uintptr_t place;        /* of the atomic */
};

/* What a thread has learnt: all that was made known at a place, by a fence after an atomic (or a
 * volatile read) of it. */
struct acquisition {
    uintptr_t place;
    uint32_t epoch, thread, clock;
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
    uint32_t fence_epoch, fence_clock; /* of its last fence in this block, else 0 */
    uintptr_t flag;       /* where its last atomic was */
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
    struct release *releases; /* of each block, in the order of blocks */
    struct acquisition acquired[MOST_ACQUIRED];
    uint32_t acquired_count;
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
