/* What Python and the emulated device tell each other of a launch. cffi reads this file too. */

/* A range of memory that kernels may use: a buffer of the device, or a shared variable. */
struct emulated_buffer {
    uint64_t base, size;
    uint8_t *valid;   /* of each byte: 1 once it was written */
    void *cells;      /* who used which bytes: allocated by the first launch, freed with free() */
    int32_t shift;    /* a cell stands for 1 << shift bytes */
    int32_t shared;   /* 1 for the memory of a block */
    int32_t constant; /* 1 for what kernels may only read */
    int32_t live;     /* 0 for a buffer that is no argument of this launch */
};

struct emulated_report {
    int32_t kind, buffer; /* buffer: its number, -1 where there is none */
    int64_t offset;       /* from its base, in bytes */
    int32_t size, line, other_line, detail; /* line: where it is known, else 0 */
    uint64_t pc, other_pc;                  /* addresses in the library, else 0 */
    uint32_t block, thread, other_block, other_thread, lanes;
    uint64_t address;
    const char *array; /* the type of an array that has no such index, else NULL */
};

/* What warps did at one place of the text. */
struct emulated_place {
    uint64_t pc;
    int32_t kind, buffer; /* kind: 0 reads, 1 writes, 2 atomics */
    uint64_t accesses, bytes, requests, sectors, ideal_sectors;
};

struct emulated_launch {
    uint32_t grid[3], block[3];
    uint32_t kernel, dynamic_bytes, epoch, checks, counting, seed_low, seed_high;
    uint64_t most_steps; /* of one thread: a step is a straight piece of code, or an access */
    void **arguments;
    struct emulated_buffer *buffers;
    uint32_t buffer_count;
    uint8_t *stacks;
    uint64_t stack_size;
    struct emulated_report *reports;
    uint32_t report_capacity, report_count;
    struct emulated_place *places;
    uint32_t place_capacity, place_count;
    uint32_t *accesses; /* of each thread, or NULL */
    uint64_t bytes_read, bytes_written, atomics, barriers, warp_operations, yields;
    int32_t status; /* 0, 1 where it was stopped, 2 where memory is missing */
};

struct emulated_kernel {
    const char *name;
    void (*run)(void **arguments);
    int32_t parameters;
    const int32_t *sizes;   /* of each parameter in bytes */
    const int32_t *classes; /* 0 pointers, 1 signed, 2 unsigned integers, 3 floating point */
};

int32_t emulated_run(struct emulated_launch *launch);
uint64_t emulated_base(void);
uint64_t emulated_dynamic_base(void);
int32_t emulated_kernel_count(void);
const struct emulated_kernel *emulated_kernel_at(int32_t number);
