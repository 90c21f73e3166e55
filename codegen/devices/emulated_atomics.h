/* Atomics: an access, and what it computes. */

#define BEFORE(needs)                                                                             \
    give_way();                                                                                   \
    access_any((uintptr_t)place, sizeof *place, ATOMIC, needs, true, CALLER)
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
