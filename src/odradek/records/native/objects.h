/* Python objects in and out: what every function of _kernel.c does with its arguments and answers.
 *
 * Knows a batch's header and verdict as the tuples Python takes them for; no records, no loops over bytes.
 */
#ifndef ODRADEK_OBJECTS_H
#define ODRADEK_OBJECTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "read.h"

/* Work on more than this runs without the interpreter's lock. */
#define GIL_FREE_BYTES (256 << 10)

static newfunc tuple_new;

/* A tuple of numbers; steals nothing, gives NULL with an error set. */
static PyObject *
int_tuple(const int64_t *values, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(values[i]);
        if (number == NULL || PyTuple_SetItem(tuple, i, number) < 0) {
            Py_CLEAR(tuple);
        }
    }
    return tuple;
}

/* The header of a batch as an instance of a tuple type, in the order of header.BatchMeta. */
static PyObject *
make_meta(PyTypeObject *type, const uint8_t *p, size_t position)
{
    const int64_t fields[] = {
        (int64_t)position, be_int32(p + 8) + (int64_t)LOG_OVERHEAD,
        be_int64(p),       be_int32(p + 23),
        be_int32(p + 12),  be_int16(p + 21),
        be_int64(p + 27),  be_int64(p + 35),
        be_int64(p + 43),  be_int16(p + 51),
        be_int32(p + 53),  be_int32(p + 57),
        be32(p + 17),      p[16],
    };
    PyObject *values = int_tuple(fields, sizeof(fields) / sizeof(fields[0]));
    if (values == NULL) {
        return NULL;
    }
    PyObject *meta = NULL;
    PyObject *args = PyTuple_New(1);
    if (args == NULL || PyTuple_SetItem(args, 0, values) < 0) {
        if (args == NULL) {
            Py_DECREF(values);
        }
    }
    else {
        meta = tuple_new(type, args, NULL);
    }
    Py_XDECREF(args);
    return meta;
}

static int
is_meta_type(PyObject *type)
{
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type)) {
        return 1;
    }
    PyErr_SetString(PyExc_TypeError, "meta must be a tuple type");
    return 0;
}

static PyObject *
make_finding(const struct batch *batch, PyTypeObject *type, const uint8_t *data)
{
    PyObject *meta = Py_None;
    if (batch->has_meta) {
        meta = make_meta(type, data + batch->position, batch->position);
        if (meta == NULL) {
            return NULL;
        }
    }
    else {
        Py_INCREF(meta);
    }
    PyObject *finding = PyTuple_New(4);
    PyObject *numbers[] = {PyLong_FromLong(batch->verdict.finding), PyLong_FromLongLong(batch->verdict.index),
                           PyLong_FromLongLong(batch->verdict.largest), meta};
    int failed = finding == NULL;
    for (int i = 0; i < 4; i++) {
        if (failed || numbers[i] == NULL) {
            failed = 1;
            Py_XDECREF(numbers[i]);
        }
        else {
            PyTuple_SetItem(finding, i, numbers[i]);
        }
    }
    if (failed) {
        Py_CLEAR(finding);
    }
    return finding;
}

static int
append_new(PyObject *list, PyObject *item)
{
    if (item == NULL) {
        return 0;
    }
    int failed = PyList_Append(list, item);
    Py_DECREF(item);
    return !failed;
}

static int
check_args(const char *name, Py_ssize_t given, Py_ssize_t least, Py_ssize_t most)
{
    if (given < least || given > most) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd to %zd arguments (%zd given)", name, least, most, given);
        return 0;
    }
    return 1;
}

static int
as_int64(PyObject *number, long long *value)
{
    *value = PyLong_AsLongLong(number);
    return *value != -1 || !PyErr_Occurred();
}

/* A position or an amount of room: not negative, not beyond `most`. */
static int
as_size(PyObject *number, Py_ssize_t most, Py_ssize_t *value)
{
    *value = PyLong_AsSsize_t(number);
    if (*value == -1 && PyErr_Occurred()) {
        return 0;
    }
    if (*value < 0 || *value > most) {
        PyErr_Format(PyExc_ValueError, "%zd is not between 0 and %zd", *value, most);
        return 0;
    }
    return 1;
}

/* Any sequence as a tuple of a known length, so that its items can be borrowed. */
static PyObject *
as_tuple(PyObject *sequence, Py_ssize_t length)
{
    PyObject *tuple = PySequence_Tuple(sequence);
    if (tuple != NULL && length >= 0 && PyTuple_Size(tuple) != length) {
        PyErr_Format(PyExc_ValueError, "expected %zd items, got %zd", length, PyTuple_Size(tuple));
        Py_CLEAR(tuple);
    }
    return tuple;
}

/* New bytes into a tuple; where they begin, NULL with an error set. */
static void *
add_bytes(PyObject *tuple, Py_ssize_t at, int64_t size)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes == NULL || PyTuple_SetItem(tuple, at, bytes) < 0) {
        return NULL;
    }
    return PyBytes_AsString(bytes);
}

static void
release_all(Py_buffer *views, int taken)
{
    while (taken > 0) {
        PyBuffer_Release(&views[--taken]);
    }
}

/* Gives up the interpreter's lock where there is enough to do; take_lock takes what this gave. */
static PyThreadState *
leave_lock(int64_t work_bytes)
{
    return work_bytes >= GIL_FREE_BYTES ? PyEval_SaveThread() : NULL;
}

static void
take_lock(PyThreadState *state)
{
    if (state != NULL) {
        PyEval_RestoreThread(state);
    }
}

#endif
