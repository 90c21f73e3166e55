#include "few.h"
#include "taco_cuda.h"

namespace taco_program {

static void few(int64_t *s_vals, const int32_t *b_vals, const int32_t *c_vals, int64_t n_i)
{
    taco::Memory taco_memory;
    int64_t *t_cell = taco_memory.allocate<int64_t>(1, false, "t_cell");
    int64_t *t_sum = taco_memory.allocate<int64_t>(1, false, "t_sum");
    taco::launch(::few_1, "few_1", 1, 1, t_cell, t_sum);
    taco::launch(::few_2, "few_2", n_i, 256, b_vals, c_vals, t_sum, n_i);
    taco::launch(::few_3, "few_3", 1, 1, s_vals, t_cell, t_sum);
}

} // namespace taco_program

extern "C" int32_t few(
    int64_t *s_vals,
    int64_t s_vals_length,
    const int32_t *b_vals,
    int64_t b_vals_length,
    const int32_t *c_vals,
    int64_t c_vals_length,
    int64_t n_i)
{
    return taco::run([&] {
        taco::Memory taco_memory;
        int64_t *s_vals_there = taco_memory.allocate<int64_t>(s_vals_length, false, "s_vals");
        const int32_t *b_vals_there = taco_memory.copy<int32_t>(b_vals, b_vals_length, "b_vals");
        const int32_t *c_vals_there = taco_memory.copy<int32_t>(c_vals, c_vals_length, "c_vals");
        taco_program::few(s_vals_there, b_vals_there, c_vals_there, n_i);
        taco::finish("few");
        taco::fetch(s_vals, s_vals_there, s_vals_length, "s_vals");
    });
}

extern "C" int32_t few_on_device(
    int64_t *s_vals,
    const int32_t *b_vals,
    const int32_t *c_vals,
    int64_t n_i)
{
    return taco::run([&] {
        taco_program::few(s_vals, b_vals, c_vals, n_i);
    });
}

extern "C" const char *few_error(void)
{
    return taco::message();
}
