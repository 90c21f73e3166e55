/* Independent kernels that threads share, one kernel a thread at a time: the part that speaks to Python.
 *
 * together(threads, kernel0, (argument, …), kernel1, (argument, …), …)
 *
 * All arguments are opened first; the interpreter lock is released while the kernels run. What runs them
 * is a kernel itself (`together.py`), whose callable is the `self` of `together`: it is linked to OpenMP,
 * which the host must not load before it is told how long to wait (`taco_open_patient`). */

extern PyObject *PyCFunction_GetSelf(PyObject *);

typedef struct {
    const taco_callable *callable;
    taco_argument *arguments;
    taco_holder *holders;
    int64_t budget;
} taco_open_call;

static const taco_callable *taco_callable_of(PyObject *function)
{
    PyObject *capsule = PyCFunction_GetSelf(function);
    return capsule == NULL ? NULL : PyCapsule_GetPointer(capsule, "taco_callable");
}

/* Open the arguments of one kernel, a tuple, in memory that `taco_shut_call` frees. */
static int taco_open_call_of(taco_open_call *call, PyObject *function, PyObject *given)
{
    const taco_callable *c = call->callable = taco_callable_of(function);
    if (c == NULL)
        return 1;
    if (PyTuple_Size(given) != c->count || c->growing > 0) {
        PyErr_Format(PyExc_TypeError, "Expected %zd arguments and no growing array for %s, found %zd", c->count,
                     c->method.ml_name, PyTuple_Size(given));
        return 1;
    }
    PyObject *args[c->count + 1];
    for (Py_ssize_t i = 0; i < c->count; i++)
        args[i] = PyTuple_GetItem(given, i);
    call->budget = -1;
    call->arguments = malloc(((size_t)c->count + 1) * sizeof *call->arguments);
    call->holders = malloc(((size_t)c->count + 1) * sizeof *call->holders);
    if (call->arguments == NULL || call->holders == NULL)
        PyErr_NoMemory();
    else if (taco_open_all(c, call->arguments, call->holders, &call->budget, args) == 0)
        return 0;
    free(call->arguments);
    free(call->holders);
    return 1;
}

static void taco_shut_call(taco_open_call *call, int failed)
{
    taco_shut(call->callable->parameters, call->holders, call->callable->count, failed);
    free(call->arguments);
    free(call->holders);
}

/* Run calls that are open; whether one failed, with the exception of the first that did. */
static int taco_run_open(const taco_callable *runner, taco_open_call *calls, Py_ssize_t count, int64_t threads)
{
    taco_job jobs[count];
    for (Py_ssize_t i = 0; i < count; i++) {
        const taco_callable *c = calls[i].callable;
        jobs[i] = (taco_job){.function = c->function, .status = -1, .arguments = calls[i].arguments};
        memcpy(&jobs[i].entry, &c->entry, sizeof c->entry);
    }
    taco_argument arguments[3] = {{.pointer = jobs}, {.integer = count}, {.integer = taco_forked ? 1 : threads}};
    void *thread = PyEval_SaveThread();
    taco_invoke(runner->entry, runner->function, arguments);
    PyEval_RestoreThread(thread);
    for (Py_ssize_t i = 0; i < count; i++)
        if (jobs[i].status != 0)
            return taco_result(calls[i].callable, calls[i].holders, jobs[i].status) == NULL;
    return 0;
}

static PyObject *taco_call_together(PyObject *self, PyObject *const *args, Py_ssize_t found)
{
    const taco_callable *runner = PyCapsule_GetPointer(self, "taco_callable");
    if (runner == NULL)
        return NULL;
    if (found < 3 || found % 2 == 0)
        return PyErr_Format(PyExc_TypeError, "Expected a number of threads, then kernels and tuples in turn");
    const int64_t threads = PyLong_AsLongLong(args[0]);
    if (threads == -1 && PyErr_Occurred() != NULL)
        return NULL;
    const Py_ssize_t count = found / 2;
    taco_open_call calls[count];
    Py_ssize_t open = 0;
    while (open < count && taco_open_call_of(calls + open, args[2 * open + 1], args[2 * open + 2]) == 0)
        open++;
    const int failed = open < count || taco_run_open(runner, calls, count, threads < 1 ? 1 : threads);
    for (Py_ssize_t i = 0; i < open; i++)
        taco_shut_call(calls + i, failed);
    if (failed)
        return NULL;
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

/* `together` over the callable of the kernel that runs jobs. Called with the interpreter lock held. */
TACO_EXPORT PyObject *taco_bind_together(PyObject *runner)
{
    static PyMethodDef method = {"together", (PyCFunction)(void (*)(void))taco_call_together, METH_FASTCALL, NULL};
    PyObject *capsule = taco_callable_of(runner) == NULL ? NULL : PyCFunction_GetSelf(runner);
    return capsule == NULL ? NULL : PyCFunction_NewEx(&method, capsule, NULL);
}
