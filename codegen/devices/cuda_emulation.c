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
 * enough; but what a block has done before a fence and an atomic, another one knows after an atomic
 * of the same place and a fence. A write that races with nothing empties the sets, as it comes after all that is in them.
 */
#include "emulated_state.h"
#include "emulated_fibers.h"
#include "emulated_reports.h"
#include "emulated_races.h"
#include "emulated_counting.h"
#include "emulated_accesses.h"
#include "emulated_lanes.h"
#include "emulated_schedule.h"
#include "emulated_atomics.h"

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
        S.threads_[t].fence_epoch = 0;
        S.threads_[t].flag = 0;
    }
    S.ended = ALL_LANES;
    S.acquired_count = 0;
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
    S.releases = calloc(blocks * MOST_RELEASES, sizeof *S.releases);
    launch->status = S.epochs && S.releases ? 0 : 2;
    start_launch(launch, blocks);
    for (uint64_t i = 0; i < blocks && !S.stopped && launch->status == 0; i++) {
        S.block_number = (uint32_t)i;
        run_block(launch, block_at(i));
    }
    if (launch->counting)
        close_requests();
    launch->epoch = S.epoch;
    free(S.epochs);
    free(S.releases);
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
