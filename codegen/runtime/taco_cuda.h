/* What host programs in CUDA C++ call: memory of a device, copies, launches, and what goes wrong.
 *
 * Memory is a device's own, no managed memory. It is freed where the block ends that it belongs to,
 * however that is left: what fails is thrown as a Failure, which `run` turns into a status.
 */
#ifndef TACO_CUDA_H
#define TACO_CUDA_H

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <tuple>
#include <vector>

namespace taco {

const int32_t OUT_OF_MEMORY = 1, TOO_LONG = 2, UNMET = 3, CUDA_FAILED = 4;
const int64_t WARP = 32, MOST_BLOCKS = 65536; /* threads of larger grids have several iterations each */

struct Failure {
    int32_t status;
};

/* What the last error of CUDA was in this thread, "" where the last call had none. */
inline char *message()
{
    static thread_local char text[256];
    return text;
}

inline void check(cudaError_t error, const char *what, const char *name)
{
    if (error == cudaSuccess)
        return;
    std::snprintf(message(), 256, "%s %s: %s", what, name, cudaGetErrorString(error));
    (void)cudaGetLastError(); /* later calls begin anew, but after a fault in a kernel */
    throw Failure{error == cudaErrorMemoryAllocation ? OUT_OF_MEMORY : CUDA_FAILED};
}

/* Memory for so many elements, in whole words: a byte is updated in the word that it is part of. */
template <typename T>
T *allocated(int64_t size, const char *name)
{
    const size_t bytes = (size_t)std::max<int64_t>(size, 0) * sizeof(T);
    const size_t whole = std::max<size_t>((bytes + 3) / 4 * 4, 4);
    void *data = nullptr;
    check(cudaMalloc(&data, whole), "allocate", name);
    if (whole > bytes) {
        const cudaError_t error = cudaMemset((char *)data + bytes, 0, whole - bytes);
        if (error != cudaSuccess)
            cudaFree(data);
        check(error, "clear", name);
    }
    return (T *)data;
}

/* Arrays that live as long as this does. */
class Memory {
  public:
    Memory() = default;
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;

    ~Memory()
    {
        for (void *each : owned)
            cudaFree(each);
    }

    /* An array of the device, all zero or not initialised. */
    template <typename T>
    T *allocate(int64_t size, bool zero, const char *name)
    {
        owned.reserve(owned.size() + 1); /* what fails fails before there is something to free */
        T *data = allocated<T>(size, name);
        owned.push_back(data);
        if (zero && size > 0)
            check(cudaMemset(data, 0, (size_t)size * sizeof(T)), "clear", name);
        return data;
    }

    /* An array of the host on the device. */
    template <typename T>
    T *copy(const void *array, int64_t size, const char *name)
    {
        T *data = allocate<T>(size, false, name);
        if (size > 0) {
            const size_t bytes = (size_t)size * sizeof(T);
            check(cudaMemcpy(data, array, bytes, cudaMemcpyHostToDevice), "copy", name);
        }
        return data;
    }

  private:
    std::vector<void *> owned;
};

/* An array of the device that is made longer; `length` of its elements are a result. */
template <typename T>
struct Growing {
    const char *name;
    T *data = nullptr;
    int64_t room = 0, length = 0;

    explicit Growing(const char *called) : name(called)
    {
    }

    Growing(const Growing &) = delete;
    Growing &operator=(const Growing &) = delete;

    ~Growing()
    {
        cudaFree(data);
    }

    operator T *() const
    {
        return data;
    }

    /* Make room for `size` elements in all, keeping those that are there. */
    void reserve(int64_t size)
    {
        if (data != nullptr && size <= room)
            return;
        T *longer = allocated<T>(size, name);
        if (room > 0) {
            const size_t bytes = (size_t)room * sizeof(T);
            const cudaError_t error = cudaMemcpy(longer, data, bytes, cudaMemcpyDeviceToDevice);
            if (error != cudaSuccess)
                cudaFree(longer);
            check(error, "copy", name);
        }
        cudaFree(data);
        data = longer;
        room = size;
    }

    void set_length(int64_t size, int64_t limit = INT64_MAX)
    {
        if (size > limit)
            throw Failure{TOO_LONG};
        length = size;
    }
};

/* An array of the device back to the host's. */
template <typename T>
void fetch(void *array, const T *data, int64_t size, const char *name)
{
    if (size > 0) {
        const size_t bytes = (size_t)size * sizeof(T);
        check(cudaMemcpy(array, data, bytes, cudaMemcpyDeviceToHost), "copy", name);
    }
}

/* A result in memory of the host, which `free` frees. */
template <typename T, typename Result>
void fetch(Result *result, const Growing<T> &made)
{
    result->data = std::malloc(std::max<size_t>((size_t)made.length * sizeof(T), 1));
    if (result->data == nullptr)
        throw Failure{OUT_OF_MEMORY};
    fetch(result->data, made.data, made.length, made.name);
    result->length = made.length;
}

/* A result in memory of the device, which `cudaFree` frees. */
template <typename T, typename Result>
void keep(Result *result, Growing<T> &made)
{
    result->data = made.data;
    result->length = made.length;
    made.data = nullptr;
}

template <typename T>
T element(const T *array, int64_t index)
{
    T found;
    check(cudaMemcpy(&found, array + index, sizeof(T), cudaMemcpyDeviceToHost), "read", "an element");
    return found;
}

template <typename T>
T element(const Growing<T> &array, int64_t index)
{
    return element<T>(array.data, index);
}

/* The first place in `array[start:stop]` with an element of at least `value`, else `stop`. */
template <typename T>
int64_t search(const T *array, int64_t start, int64_t stop, int64_t value)
{
    while (start < stop) {
        const int64_t middle = start + (stop - start) / 2;
        if (element(array, middle) < value)
            start = middle + 1;
        else
            stop = middle;
    }
    return start;
}

inline void expect(bool condition)
{
    if (!condition)
        throw Failure{UNMET};
}

/* Begin a kernel by so many threads, nothing where there are none. */
template <typename... Parameters, typename... Given>
void launch(
    void (*kernel)(Parameters...), const char *name, int64_t threads, int64_t block, Given &...given)
{
    if (threads <= 0)
        return;
    const int64_t grid = std::min<int64_t>((threads - 1) / block + 1, MOST_BLOCKS);
    const int64_t width = std::min<int64_t>(block, ((threads - 1) / WARP + 1) * WARP);
    std::tuple<Parameters...> arguments(static_cast<Parameters>(given)...);
    const auto begin = [&](auto &...each) {
        void *places[] = {(void *)&each..., nullptr};
        const dim3 blocks((unsigned)grid), wide((unsigned)width);
        return cudaLaunchKernel((const void *)kernel, blocks, wide, places, 0, nullptr);
    };
    check(std::apply(begin, arguments), "launch", name);
}

/* Wait for all that was begun. */
inline void finish(const char *name)
{
    check(cudaDeviceSynchronize(), "run", name);
}

/* The status of what is done: 0, or why it ended. */
template <typename Act>
int32_t run(Act act)
{
    message()[0] = 0;
    try {
        act();
    } catch (const Failure &failure) {
        return failure.status;
    } catch (const std::bad_alloc &) {
        return OUT_OF_MEMORY;
    }
    return 0;
}

} /* namespace taco */

#endif
