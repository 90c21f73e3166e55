/* Counting: what warps ask of global memory. */

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
