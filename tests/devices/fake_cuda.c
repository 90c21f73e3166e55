/* A driver of CUDA for tests, in host memory. Streams are queues that run as late as they may: when
   the host waits for one, or when an operation before waits for an event of it. So what does not
   wait for what it should sees memory as it was before. Kernels are functions of the test. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ptr;
typedef void (*kernel_function)(const uint32_t *shape, void **arguments);

enum { UPLOAD, DOWNLOAD, COPY, FILL, LAUNCH, RECORD, WAIT };
enum { MOST = 4096, STREAMS = 256, KERNELS = 64, NAME = 64 };

struct event { int timing; struct stream *stream; int position; };
struct operation {
    int kind, number;
    void *to; const void *from; size_t size; int byte;
    struct kernel *kernel; uint32_t shape[7]; char *arguments;
    struct event *event; struct stream *on; int position;
};
struct stream { int open, count, done; struct operation *queue; };
struct kernel {
    char name[NAME]; int count; int sizes[32]; kernel_function function;
    int registers, threads, shared, local, dynamic, failure;
};

static struct stream streams[STREAMS];
static struct kernel kernels[KERNELS];
static __thread int context_depth;
static int kernel_count, opened, devices = 1, sticky, attributes[256];
static char fail_name[NAME]; static int fail_code, fail_after;
static size_t total = 1 << 26, used;
static struct { ptr address; size_t size; int device; } blocks[MOST]; static int block_count;
static char calls[1 << 20]; static size_t calls_end;
static char log_text[256];

/* ------------------------------------------------ what tests say and ask */
#define VISIBLE __attribute__((visibility("default")))
VISIBLE void fake_reset(void)
{
    for (int i = 0; i < STREAMS; i++) { free(streams[i].queue); streams[i] = (struct stream){0}; }
    for (int i = 0; i < block_count; i++) free((void *)(uintptr_t)blocks[i].address);
    kernel_count = opened = context_depth = sticky = fail_code = block_count = 0;
    used = 0, devices = 1, total = 1 << 26, calls_end = 0, calls[0] = 0, log_text[0] = 0;
    memset(attributes, 0, sizeof attributes);
}
VISIBLE void fake_devices(int count) { devices = count; }
VISIBLE void fake_memory(size_t bytes) { total = bytes; }
VISIBLE size_t fake_used(void) { return used; }
VISIBLE void fake_attribute(int number, int value) { attributes[number & 255] = value; }
VISIBLE void fake_log(const char *text) { snprintf(log_text, sizeof log_text, "%s", text); }
VISIBLE const char *fake_calls(void) { return calls; }
VISIBLE void fake_forget_calls(void) { calls_end = 0, calls[0] = 0; }
VISIBLE int fake_context_depth(void) { return context_depth; }
/* The calls of `name` answer `code` after so many that do not; 0 ends that. */
VISIBLE void fake_fail(const char *name, int code, int after)
{
    snprintf(fail_name, NAME, "%s", name);
    fail_code = code, fail_after = after;
}
VISIBLE void fake_kernel(const char *name, int count, const int *sizes, kernel_function function)
{
    struct kernel *k = &kernels[kernel_count++];
    memset(k, 0, sizeof *k);
    snprintf(k->name, NAME, "%s", name);
    k->count = count, k->function = function;
    for (int i = 0; i < count; i++) k->sizes[i] = sizes[i];
    k->registers = 32, k->threads = 1024;
}
static struct kernel *find_kernel(const char *name)
{
    for (int i = kernel_count - 1; i >= 0; i--)
        if (!strcmp(kernels[i].name, name)) return &kernels[i];
    return NULL;
}
/* Facts of a kernel, and the error that its run ends with. */
VISIBLE void fake_kernel_facts(const char *name, int registers, int threads, int shared, int failure)
{
    struct kernel *k = find_kernel(name);
    k->registers = registers, k->threads = threads, k->shared = shared, k->failure = failure;
}

/* ------------------------------------------------ calls */
static int called(const char *name)
{
    int wrote = snprintf(calls + calls_end, sizeof calls - calls_end, "%s\n", name);
    if (calls_end + wrote < sizeof calls - 1) calls_end += wrote;
    if (fail_code && !strcmp(name, fail_name) && fail_after-- <= 0) return fail_code;
    return 0;
}
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int lock(void) { return pthread_mutex_lock(&mutex); }
static void unlock(int *held) { (void)held; pthread_mutex_unlock(&mutex); }
#define ENTER(context)                                        \
    __attribute__((cleanup(unlock))) int held_ = lock();      \
    do {                                                      \
        int code_ = called(__func__);                         \
        if (code_) return code_;                              \
        if (!opened) return 3;                                \
        if (sticky) return sticky;                            \
        if (context && context_depth < 1) return 201;         \
    } while (0)

/* ------------------------------------------------ streams */
static void run_until(struct stream *s, int position);
static void run_one(struct operation *o)
{
    switch (o->kind) {
    case UPLOAD: memcpy(o->to, o->from, o->size); free((void *)o->from); break;
    case DOWNLOAD: case COPY: memmove(o->to, o->from, o->size); break;
    case FILL: memset(o->to, o->byte, o->size); break;
    case RECORD: break;
    case WAIT: run_until(o->on, o->position); break;
    case LAUNCH: {
        void *places[33]; char *at = o->arguments;
        for (int i = 0; i < o->kernel->count; i++) places[i] = at, at += o->kernel->sizes[i];
        if (o->kernel->failure) sticky = o->kernel->failure;
        else if (!sticky) o->kernel->function(o->shape, places);
        free(o->arguments);
    }
    }
}
static void run_until(struct stream *s, int position)
{
    while (s->done < position && !sticky) run_one(&s->queue[s->done++]);
}
static void run_all(void)
{
    for (int i = STREAMS - 1; i >= 0; i--) run_until(&streams[i], streams[i].count);
}
static struct stream *stream_at(void *handle)
{
    uintptr_t number = (uintptr_t)handle;
    return number < STREAMS ? &streams[number] : NULL;
}
static struct operation *push(void *handle, int kind)
{
    struct stream *s = stream_at(handle);
    if (!s->queue) s->queue = calloc(MOST, sizeof *s->queue);
    if (s->count == MOST) abort();
    struct operation *o = &s->queue[s->count++];
    o->kind = kind;
    return o;
}
static int is_stream(void *handle)
{
    uintptr_t number = (uintptr_t)handle;
    return number < 16 || (number < STREAMS && streams[number].open);
}
static int inside(ptr address, size_t size)
{
    for (int i = 0; i < block_count; i++)
        if (address >= blocks[i].address && address + size <= blocks[i].address + blocks[i].size)
            return 1;
    return 0;
}

/* ------------------------------------------------ the driver */
VISIBLE int cuInit(unsigned flags)
{
    int code = called("cuInit");
    const char *asked = getenv("FAKE_CUDA_INIT");
    if (!code && asked) code = atoi(asked);
    if (code) return code;
    opened = 1;
    return flags ? 1 : 0;
}
VISIBLE int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
VISIBLE int cuGetErrorName(int code, const char **name)
{
    switch (code) {
    case 1: *name = "CUDA_ERROR_INVALID_VALUE"; return 0;
    case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
    case 3: *name = "CUDA_ERROR_NOT_INITIALIZED"; return 0;
    case 100: *name = "CUDA_ERROR_NO_DEVICE"; return 0;
    case 201: *name = "CUDA_ERROR_INVALID_CONTEXT"; return 0;
    case 209: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; return 0;
    case 218: *name = "CUDA_ERROR_INVALID_PTX"; return 0;
    case 400: *name = "CUDA_ERROR_INVALID_HANDLE"; return 0;
    case 500: *name = "CUDA_ERROR_NOT_FOUND"; return 0;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
    case 701: *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; return 0;
    default: *name = NULL; return 1;
    }
}
VISIBLE int cuGetErrorString(int code, const char **text)
{
    *text = code == 700 ? "an illegal memory access was encountered" : "text of the driver";
    return 0;
}
VISIBLE int cuDeviceGetCount(int *count) { ENTER(0); *count = devices; return 0; }
VISIBLE int cuDeviceGet(int *device, int number) { ENTER(0); *device = number; return 0; }
VISIBLE int cuDeviceGetName(char *name, int size, int device)
{
    ENTER(0);
    snprintf(name, size, "Fake GPU %d", device);
    return 0;
}
VISIBLE int cuDeviceGetAttribute(int *value, int number, int device)
{
    static const int facts[256] = {
        [1] = 1024, [2] = 1024, [3] = 1024, [4] = 64, [5] = 2147483647, [6] = 65535, [7] = 65535,
        [8] = 49152, [10] = 32, [12] = 65536, [16] = 132, [36] = 2619000, [37] = 5120,
        [38] = 52428800, [39] = 2048, [75] = 9, [81] = 233472, [97] = 232448,
    };
    ENTER(0);
    *value = attributes[number & 255] ? attributes[number & 255] : facts[number & 255];
    return 0;
}
VISIBLE int cuDevicePrimaryCtxRetain(void **context, int device)
{
    ENTER(0);
    *context = (void *)(uintptr_t)(device + 1);
    return 0;
}
VISIBLE int cuDevicePrimaryCtxRelease_v2(int device) { ENTER(0); return 0; }
VISIBLE int cuCtxPushCurrent_v2(void *context)
{
    if (!opened || !context) return 201;
    context_depth++;
    return 0;
}
VISIBLE int cuCtxPopCurrent_v2(void **context)
{
    *context = NULL, context_depth--;
    return 0;
}
VISIBLE int cuCtxSynchronize(void) { ENTER(1); run_all(); return sticky; }

VISIBLE int cuMemGetInfo_v2(size_t *free_bytes, size_t *all)
{
    ENTER(1);
    *free_bytes = total - used, *all = total;
    return 0;
}
VISIBLE int cuMemAlloc_v2(ptr *address, size_t size)
{
    ENTER(1);
    if (!size || block_count == MOST) return 1;
    if (used + size > total) return 2;
    void *memory = aligned_alloc(256, (size + 255) / 256 * 256);
    if (!memory) return 2;
    memset(memory, 0xAB, size);
    used += size;
    blocks[block_count].address = *address = (uintptr_t)memory;
    blocks[block_count++].size = size;
    return 0;
}
/* Does not wait, as the real one does: what is still to run on the memory is a mistake here. */
VISIBLE int cuMemFree_v2(ptr address)
{
    ENTER(1);
    for (int i = 0; i < block_count; i++)
        if (blocks[i].address == address) {
            memset((void *)(uintptr_t)address, 0xDD, blocks[i].size);
            free((void *)(uintptr_t)address);
            used -= blocks[i].size;
            blocks[i] = blocks[--block_count];
            return 0;
        }
    return 1;
}
VISIBLE int cuMemcpyHtoDAsync_v2(ptr to, const void *from, size_t size, void *stream)
{
    ENTER(1);
    if (!is_stream(stream)) return 400;
    if (!inside(to, size)) return 1;
    struct operation *o = push(stream, UPLOAD);
    void *stage = malloc(size);
    memcpy(stage, from, size);
    o->to = (void *)(uintptr_t)to, o->from = stage, o->size = size;
    return 0;
}
VISIBLE int cuMemcpyDtoHAsync_v2(void *to, ptr from, size_t size, void *stream)
{
    ENTER(1);
    if (!is_stream(stream)) return 400;
    if (!inside(from, size)) return 1;
    struct operation *o = push(stream, DOWNLOAD);
    o->to = to, o->from = (void *)(uintptr_t)from, o->size = size;
    return 0;
}
VISIBLE int cuMemcpyDtoDAsync_v2(ptr to, ptr from, size_t size, void *stream)
{
    ENTER(1);
    if (!is_stream(stream)) return 400;
    if (!inside(to, size) || !inside(from, size)) return 1;
    struct operation *o = push(stream, COPY);
    o->to = (void *)(uintptr_t)to, o->from = (void *)(uintptr_t)from, o->size = size;
    return 0;
}
VISIBLE int cuMemsetD8Async(ptr to, unsigned char byte, size_t size, void *stream)
{
    ENTER(1);
    if (!is_stream(stream)) return 400;
    if (!inside(to, size)) return 1;
    struct operation *o = push(stream, FILL);
    o->to = (void *)(uintptr_t)to, o->byte = byte, o->size = size;
    return 0;
}
VISIBLE int cuPointerGetAttribute(void *data, int attribute, ptr address)
{
    ENTER(1);
    for (int i = 0; i < block_count; i++)
        if (address >= blocks[i].address && address < blocks[i].address + blocks[i].size) {
            switch (attribute) {
            case 1: *(uintptr_t *)data = attributes[254] ? attributes[254] : 1; return 0;
            case 9: *(int *)data = attributes[255]; return 0;
            case 11: *(ptr *)data = blocks[i].address; return 0;
            case 12: *(size_t *)data = blocks[i].size; return 0;
            }
        }
    return 1;
}

VISIBLE int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                               void **values)
{
    int code = called("cuModuleLoadDataEx");
    for (unsigned i = 0; i < count; i++)
        if (code && options[i] == 5) snprintf(values[i], 256, "%s", log_text);
    if (code) return code;
    if (sticky || context_depth < 1) return sticky ? sticky : 201;
    *module = (void *)image;
    return image ? 0 : 1;
}
VISIBLE int cuModuleUnload(void *module) { ENTER(1); return 0; }
VISIBLE int cuModuleGetFunction(void **function, void *module, const char *name)
{
    ENTER(1);
    *function = find_kernel(name);
    return *function ? 0 : 500;
}
VISIBLE int cuFuncGetAttribute(int *value, int attribute, struct kernel *k)
{
    ENTER(1);
    int facts[] = {k->threads, k->shared, 0, k->local, k->registers};
    *value = facts[attribute];
    return 0;
}
VISIBLE int cuFuncGetParamInfo(struct kernel *k, size_t place, size_t *offset, size_t *size)
{
    ENTER(1);
    if (place >= (size_t)k->count) return 1;
    *offset = 0, *size = k->sizes[place];
    return 0;
}
VISIBLE int cuFuncSetAttribute(struct kernel *k, int attribute, int value)
{
    ENTER(1);
    if (attribute != 8 || value + k->shared > 232448) return 1;
    k->dynamic = value;
    return 0;
}
VISIBLE int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks_, struct kernel *k, int threads,
                                                        size_t shared)
{
    ENTER(1);
    int by_registers = 65536 / (k->registers * threads), by_threads = 2048 / threads;
    int by_shared = (int)(233472 / (shared + k->shared + 1024));
    *blocks_ = by_registers < by_threads ? by_registers : by_threads;
    if (by_shared < *blocks_) *blocks_ = by_shared;
    return 0;
}
VISIBLE int cuLaunchKernel(struct kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared, void *stream,
                           void **arguments, void **extra)
{
    ENTER(1);
    if (!is_stream(stream)) return 400;
    if (extra) return 1;
    if (bx * by * bz > (unsigned)k->threads) return 701;
    if (shared + k->shared > 49152 && shared > (unsigned)k->dynamic) return 1;
    size_t size = 1;
    for (int i = 0; i < k->count; i++) size += k->sizes[i];
    struct operation *o = push(stream, LAUNCH);
    char *at = o->arguments = malloc(size);
    for (int i = 0; i < k->count; i++) memcpy(at, arguments[i], k->sizes[i]), at += k->sizes[i];
    o->kernel = k;
    uint32_t shape[7] = {gx, gy, gz, bx, by, bz, shared};
    memcpy(o->shape, shape, sizeof shape);
    return 0;
}

VISIBLE int cuStreamCreate(void **stream, unsigned flags)
{
    ENTER(1);
    for (uintptr_t i = 16; i < STREAMS; i++)
        if (!streams[i].open) {
            streams[i].open = 1;
            *stream = (void *)i;
            return 0;
        }
    return 2;
}
VISIBLE int cuStreamDestroy_v2(void *stream)
{
    ENTER(1);
    struct stream *s = stream_at(stream);
    if (!s || !s->open) return 400;
    s->open = 2; /* its handle is not given out again, and what it has begun still runs */
    return 0;
}
VISIBLE int cuStreamSynchronize(void *stream)
{
    ENTER(1);
    if (!is_stream(stream)) return 400;
    struct stream *s = stream_at(stream);
    run_until(s, s->count);
    return sticky;
}
VISIBLE int cuStreamQuery(void *stream)
{
    ENTER(1);
    struct stream *s = stream_at(stream);
    return s->done < s->count ? 600 : 0;
}
VISIBLE int cuStreamWaitEvent(void *stream, struct event *event, unsigned flags)
{
    ENTER(1);
    if (!is_stream(stream)) return 400;
    if (!event->stream || flags) return 0;
    struct operation *o = push(stream, WAIT);
    o->on = event->stream, o->position = event->position;
    return 0;
}
VISIBLE int cuEventCreate(struct event **event, unsigned flags)
{
    ENTER(1);
    *event = calloc(1, sizeof **event);
    (*event)->timing = !(flags & 2);
    return 0;
}
VISIBLE int cuEventRecord(struct event *event, void *stream)
{
    ENTER(1);
    if (!is_stream(stream)) return 400;
    push(stream, RECORD);
    event->stream = stream_at(stream), event->position = event->stream->count;
    return 0;
}
VISIBLE int cuEventQuery(struct event *event)
{
    ENTER(1);
    return event->stream && event->stream->done < event->position ? 600 : 0;
}
VISIBLE int cuEventSynchronize(struct event *event)
{
    ENTER(1);
    if (event->stream) run_until(event->stream, event->position);
    return sticky;
}
VISIBLE int cuEventElapsedTime(float *milliseconds, struct event *start, struct event *end)
{
    ENTER(1);
    if (!start->timing || !end->timing) return 400;
    if (!end->stream || end->stream->done < end->position) return 600;
    *milliseconds = 1.5f;
    return 0;
}
VISIBLE int cuEventDestroy_v2(struct event *event) { ENTER(1); free(event); return 0; }
