/* Threads as fibers: each has a stack, and the processor's registers are switched between them. */

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
