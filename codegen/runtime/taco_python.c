/* The part of the runtime that speaks to Python: a METH_FASTCALL function per kernel function.
 *
 * Arrays come through the buffer protocol, which NumPy exports for any strides and for read-only arrays,
 * at 0.06 us an array where a pointer through cffi or ctypes costs 0.2 to 1.6. Only the element type and
 * writability are checked: what an array must hold is the caller's business.
 *
 * Only Python's stable ABI of 3.11 is used, and what is used of it is declared here: Python.h takes as
 * long to compile as all the rest, and many systems keep it in a package that is not installed.
 */
#include "taco_runtime.h"

typedef struct _object PyObject;
typedef intptr_t Py_ssize_t;
typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);

typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len;
    Py_ssize_t itemsize;
    int readonly;
    int ndim;
    char *format;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    Py_ssize_t *suboffsets;
    void *internal;
} Py_buffer;

typedef struct {
    const char *ml_name;
    PyCFunction ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;

enum { PyBUF_WRITABLE = 0x1, PyBUF_FORMAT = 0x4, PyBUF_STRIDES = 0x18, METH_FASTCALL = 0x80 };

extern PyObject _Py_NoneStruct;
extern PyObject *PyExc_TypeError;
extern PyObject *PyExc_OverflowError;
extern PyObject *PyExc_ValueError;
extern int PyObject_GetBuffer(PyObject *, Py_buffer *, int);
extern void PyBuffer_Release(Py_buffer *);
extern PyObject *PyErr_Format(PyObject *, const char *, ...);
extern PyObject *PyErr_Occurred(void);
extern PyObject *PyErr_NoMemory(void);
extern long long PyLong_AsLongLong(PyObject *);
extern unsigned long long PyLong_AsUnsignedLongLong(PyObject *);
extern PyObject *PyLong_FromLongLong(long long);
extern PyObject *PyNumber_Index(PyObject *);
extern int PyObject_IsTrue(PyObject *);
extern double PyFloat_AsDouble(PyObject *);
extern PyObject PyComplex_Type;
extern PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
extern double PyComplex_RealAsDouble(PyObject *);
extern double PyComplex_ImagAsDouble(PyObject *);
extern PyObject *PyTuple_New(Py_ssize_t);
extern Py_ssize_t PyTuple_Size(PyObject *);
extern PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t);
extern int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *);
extern int PyArg_ParseTuple(PyObject *, const char *, ...);
extern PyObject *PyCapsule_New(void *, const char *, void (*)(PyObject *));
extern void *PyCapsule_GetPointer(PyObject *, const char *);
extern PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *);
extern void Py_IncRef(PyObject *);
extern void Py_DecRef(PyObject *);

enum taco_kind {
    TACO_INPUT,
    TACO_OUTPUT,
    TACO_GROWING,
    TACO_INTEGER,
    TACO_UNSIGNED,
    TACO_REAL,
    TACO_COMPLEX,
    TACO_THREADS,
    TACO_TRUTH
};

typedef struct {
    char *name;
    char *codes; /* the first letters of the buffer formats that mean this element type */
    int kind;
    int itemsize;
} taco_parameter;

/* A function of a kernel with all that a call needs; the `self` of the Python callable, in a capsule. */
typedef struct {
    PyMethodDef method;
    void *entry;
    int function;
    Py_ssize_t count;
    Py_ssize_t growing;
    taco_parameter *parameters;
} taco_callable;

typedef union {
    Py_buffer view;
    taco_buffer buffer;
} taco_holder;

static int taco_open_array(const taco_parameter *p, Py_buffer *view, PyObject *object)
{
    const int writable = p->kind == TACO_OUTPUT ? PyBUF_WRITABLE : 0;
    if (PyObject_GetBuffer(object, view, PyBUF_STRIDES | PyBUF_FORMAT | writable) != 0)
        return 1;
    const char *format = view->format != NULL ? view->format : "B";
    if (view->itemsize == p->itemsize && strchr(p->codes, format[0]) != NULL)
        return 0;
    PyErr_Format(PyExc_TypeError, "Expected %d-byte elements of kind '%s' for %s, found %zd bytes of kind '%s'",
                 p->itemsize, p->codes, p->name, view->itemsize, format);
    PyBuffer_Release(view);
    return 1;
}

/* A growing array is given as (elements to make room for, address of a spare mapping, its bytes, the bytes
 * that all of the call may take together or -1). The spare now belongs to the call: it is unmapped when the
 * call fails. `budget` is the call's, below 0 before one was given. */
static int taco_open_growing(const taco_parameter *p, taco_buffer *buffer, int64_t *budget, PyObject *object)
{
    memset(buffer, 0, sizeof *buffer);
    if (PyTuple_Size(object) != 4) {
        PyErr_Format(PyExc_TypeError, "Expected a tuple of 4 integers for %s", p->name);
        return 1;
    }
    const int64_t room = PyLong_AsLongLong(PyTuple_GetItem(object, 0));
    const int64_t spare = PyLong_AsLongLong(PyTuple_GetItem(object, 1));
    const int64_t spare_bytes = PyLong_AsLongLong(PyTuple_GetItem(object, 2));
    const int64_t most = PyLong_AsLongLong(PyTuple_GetItem(object, 3));
    if (PyErr_Occurred())
        return 1;
    buffer->spare = (void *)(intptr_t)spare;
    buffer->spare_bytes = spare_bytes;
    if (most >= 0) {
        *budget = *budget < 0 ? most : *budget;
        buffer->budget = budget;
    }
    if (taco_grow(buffer, room, (size_t)p->itemsize)) {
        taco_release(buffer);
        PyErr_NoMemory();
        return 1;
    }
    return 0;
}

static int taco_open_unsigned(taco_argument *a, PyObject *object)
{
    PyObject *number = PyNumber_Index(object); /* NumPy's integers are not Python's */
    if (number == NULL)
        return 1;
    a->natural = PyLong_AsUnsignedLongLong(number);
    Py_DecRef(number);
    return a->natural == (uint64_t)-1 && PyErr_Occurred() != NULL;
}

/* Unmap the spare mapping of a growing array that will not be used. */
static void taco_drop_spare(PyObject *object)
{
    if (PyTuple_Size(object) != 4)
        return;
    taco_buffer buffer = {0};
    buffer.spare = (void *)(intptr_t)PyLong_AsLongLong(PyTuple_GetItem(object, 1));
    buffer.spare_bytes = PyLong_AsLongLong(PyTuple_GetItem(object, 2));
    taco_release(&buffer);
}

static int taco_open_complex(taco_argument *a, PyObject *object)
{
    PyObject *number = PyObject_CallFunctionObjArgs(&PyComplex_Type, object, NULL);
    if (number == NULL)
        return 1;
    a->parts[0] = PyComplex_RealAsDouble(number);
    a->parts[1] = PyComplex_ImagAsDouble(number);
    Py_DecRef(number);
    return 0;
}

static int taco_open_threads(taco_argument *a, PyObject *object)
{
    a->integer = PyLong_AsLongLong(object);
    if (a->integer == -1 && PyErr_Occurred() != NULL)
        return 1;
    if (taco_forked || a->integer < 1)
        a->integer = 1;
    return 0;
}

static int taco_open_one(const taco_parameter *p, taco_argument *a, taco_holder *holder, int64_t *budget,
                         PyObject *object)
{
    switch ((enum taco_kind)p->kind) {
    case TACO_INPUT:
    case TACO_OUTPUT:
        if (taco_open_array(p, &holder->view, object))
            return 1;
        a->pointer = holder->view.buf;
        return 0;
    case TACO_GROWING:
        a->buffer = &holder->buffer;
        return taco_open_growing(p, &holder->buffer, budget, object);
    case TACO_INTEGER:
        a->integer = PyLong_AsLongLong(object);
        return a->integer == -1 && PyErr_Occurred() != NULL;
    case TACO_UNSIGNED:
        return taco_open_unsigned(a, object);
    case TACO_REAL:
        a->real = PyFloat_AsDouble(object);
        return a->real == -1.0 && PyErr_Occurred() != NULL;
    case TACO_COMPLEX:
        return taco_open_complex(a, object);
    case TACO_THREADS:
        return taco_open_threads(a, object);
    case TACO_TRUTH:
        a->integer = PyObject_IsTrue(object);
        return a->integer < 0;
    }
    return 1;
}

/* Let go of the first `count` arguments; growing arrays only when the call `failed`. */
static void taco_shut(const taco_parameter *p, taco_holder *holders, Py_ssize_t count, int failed)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (p[i].kind == TACO_INPUT || p[i].kind == TACO_OUTPUT)
            PyBuffer_Release(&holders[i].view);
        else if (p[i].kind == TACO_GROWING && failed)
            taco_release(&holders[i].buffer);
    }
}

/* For each growing array four integers, in one flat tuple: the address, the length, the bytes mapped
 * (0 = from malloc), and the bytes of the spare mapping left over. */
static PyObject *taco_grown(const taco_callable *c, const taco_holder *holders)
{
    PyObject *result = PyTuple_New(4 * c->growing);
    Py_ssize_t k = 0;
    for (Py_ssize_t i = 0; result != NULL && i < c->count; i++) {
        if (c->parameters[i].kind != TACO_GROWING)
            continue;
        const taco_buffer *b = &holders[i].buffer;
        const int64_t facts[4] = {(int64_t)(intptr_t)b->data, b->length, b->mapped, b->spare_bytes};
        for (int j = 0; j < 4; j++) {
            PyObject *fact = PyLong_FromLongLong(facts[j]);
            if (fact == NULL || PyTuple_SetItem(result, k++, fact) != 0) {
                Py_DecRef(result);
                return NULL;
            }
        }
    }
    return result;
}

static PyObject *taco_result(const taco_callable *c, const taco_holder *holders, int32_t status)
{
    if (status == 2)
        return PyErr_Format(PyExc_OverflowError, "%s made more elements than its index type can count",
                            c->method.ml_name);
    if (status == 3)
        return PyErr_Format(PyExc_ValueError, "%s was promised something that does not hold",
                            c->method.ml_name);
    if (status != 0)
        return PyErr_NoMemory();
    if (c->growing > 0)
        return taco_grown(c, holders);
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

/* Open all arguments of a call, or none; on failure the exception is set and spare mappings are gone. */
static int taco_open_all(const taco_callable *c, taco_argument *arguments, taco_holder *holders, int64_t *budget,
                         PyObject *const *args)
{
    for (Py_ssize_t i = 0; i < c->count; i++) {
        if (taco_open_one(c->parameters + i, arguments + i, holders + i, budget, args[i])) {
            taco_shut(c->parameters, holders, i, 1);
            for (Py_ssize_t j = i + 1; j < c->count; j++)
                if (c->parameters[j].kind == TACO_GROWING)
                    taco_drop_spare(args[j]);
            return 1;
        }
    }
    return 0;
}

/* What Python calls. The interpreter lock is released while the kernel runs. */
static PyObject *taco_call_kernel(PyObject *self, PyObject *const *args, Py_ssize_t found)
{
    const taco_callable *c = PyCapsule_GetPointer(self, "taco_callable");
    if (c == NULL)
        return NULL;
    if (found != c->count) {
        PyErr_Format(PyExc_TypeError, "Expected %zd arguments for %s, found %zd", c->count, c->method.ml_name, found);
        return NULL;
    }
    taco_argument arguments[found + 1];
    taco_holder holders[found + 1];
    int64_t budget = -1;
    if (taco_open_all(c, arguments, holders, &budget, args))
        return NULL;
    void *thread = PyEval_SaveThread();
    const int32_t status = taco_invoke(c->entry, c->function, arguments);
    PyEval_RestoreThread(thread);
    PyObject *result = taco_result(c, holders, status);
    taco_shut(c->parameters, holders, found, result == NULL);
    return result;
}

static void taco_free_callable(taco_callable *c)
{
    for (Py_ssize_t i = 0; c->parameters != NULL && i < c->count; i++) {
        free(c->parameters[i].name);
        free(c->parameters[i].codes);
    }
    free(c->parameters);
    free((char *)c->method.ml_name);
    free(c);
}

static void taco_destroy_capsule(PyObject *capsule)
{
    taco_callable *c = PyCapsule_GetPointer(capsule, "taco_callable");
    if (c != NULL)
        taco_free_callable(c);
}

static int taco_read_row(taco_callable *c, taco_parameter *p, PyObject *row)
{
    const char *name, *codes;
    if (!PyArg_ParseTuple(row, "siis", &name, &p->kind, &p->itemsize, &codes))
        return 1;
    p->name = strdup(name);
    p->codes = strdup(codes);
    c->growing += p->kind == TACO_GROWING;
    return p->name == NULL || p->codes == NULL;
}

/* A callable for function number `function` of the kernel whose entry point is at `entry`. `rows` is a
 * tuple with (name, kind, itemsize, codes) of each parameter. Called with the interpreter lock held. */
TACO_EXPORT PyObject *taco_bind(int64_t entry, int function, const char *name, PyObject *rows)
{
    const Py_ssize_t count = PyTuple_Size(rows);
    if (count < 0)
        return NULL;
    taco_callable *c = calloc(1, sizeof *c);
    if (c == NULL)
        return PyErr_NoMemory();
    c->entry = (void *)(intptr_t)entry;
    c->function = function;
    c->count = count;
    c->parameters = calloc((size_t)count + 1, sizeof *c->parameters);
    c->method.ml_name = strdup(name);
    c->method.ml_meth = (PyCFunction)(void (*)(void))taco_call_kernel;
    c->method.ml_flags = METH_FASTCALL;
    int failed = c->parameters == NULL || c->method.ml_name == NULL;
    for (Py_ssize_t i = 0; !failed && i < count; i++)
        failed = taco_read_row(c, c->parameters + i, PyTuple_GetItem(rows, i));
    PyObject *capsule = failed ? NULL : PyCapsule_New(c, "taco_callable", taco_destroy_capsule);
    if (capsule == NULL) {
        taco_free_callable(c);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    PyObject *callable = PyCFunction_NewEx(&c->method, capsule, NULL);
    Py_DecRef(capsule);
    return callable;
}
