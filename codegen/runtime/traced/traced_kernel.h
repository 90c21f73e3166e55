/* Read before the runtime header and a kernel's text, where accesses are followed: what the compiler does not
 * call out by itself. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* mremap */
#endif
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void taco_trace_streamed(const void *place, size_t bytes);
void *taco_trace_copy(void *to, const void *from, size_t bytes);
void *taco_trace_fill(void *to, int byte, size_t bytes);

#define TACO_STREAMED(place, bytes) taco_trace_streamed(place, bytes)
#undef memcpy
#undef memmove
#undef memset
#define memcpy(to, from, bytes) taco_trace_copy(to, from, bytes)
#define memmove(to, from, bytes) taco_trace_copy(to, from, bytes)
#define memset(to, byte, bytes) taco_trace_fill(to, byte, bytes)
