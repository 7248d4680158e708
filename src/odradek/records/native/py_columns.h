/* Reading columns, the face to Python: sections of records in, a tuple of Arrow's buffers out.
 *
 * twins/columns.py describes the function.
 */
#ifndef ODRADEK_PY_COLUMNS_H
#define ODRADEK_PY_COLUMNS_H

#include "objects.h"

#include "columns.h"

#define PART_FIELDS 7
#define ROW_FIELDS 10
#define HEADER_FIELDS 7

/* The sections of a list of parts, and the buffers they are in. */
struct parts {
    struct section *sections;
    Py_buffer *views;
    Py_ssize_t count, taken;
    int64_t bytes;
};

static void
release_parts(struct parts *parts)
{
    while (parts->taken > 0) {
        PyBuffer_Release(&parts->views[--parts->taken]);
    }
    PyMem_Free(parts->views);
    PyMem_Free(parts->sections);
}

/* One part as a section; parts that follow each other in one buffer, as in a fetch, share its view. */
static int
take_part(struct parts *parts, PyObject *item, PyObject **last, struct section *section)
{
    long long numbers[PART_FIELDS - 1];
    PyObject *part = as_tuple(item, PART_FIELDS);
    if (part == NULL) {
        return 0;
    }
    int good = 1;
    for (int i = 0; good && i < PART_FIELDS - 1; i++) {
        good = as_int64(PyTuple_GetItem(part, i + 1), &numbers[i]);
    }
    PyObject *data = PyTuple_GetItem(part, 0);
    if (good && data != *last) {
        good = PyObject_GetBuffer(data, &parts->views[parts->taken], PyBUF_SIMPLE) == 0;
        if (good) {
            parts->taken++;
            Py_INCREF(data);
            Py_XDECREF(*last);
            *last = data;
        }
    }
    Py_DECREF(part);
    if (!good) {
        return 0;
    }
    const Py_buffer *view = &parts->views[parts->taken - 1];
    if (numbers[0] < 0 || numbers[0] > numbers[1] || numbers[1] > view->len || numbers[2] < 0) {
        PyErr_Format(PyExc_ValueError, "%lld records at %lld to %lld are not in %zd bytes", numbers[2], numbers[0],
                     numbers[1], view->len);
        return 0;
    }
    const uint8_t *bytes = view->buf;
    *section = (struct section){bytes + numbers[0], bytes + numbers[1], numbers[2],
                                numbers[3],         numbers[4],         numbers[5]};
    parts->bytes += numbers[1] - numbers[0];
    return 1;
}

/* What is taken is to be released also after a failure. */
static int
take_parts(PyObject *given, struct parts *parts)
{
    PyObject *items = as_tuple(given, -1);
    if (items == NULL) {
        return 0;
    }
    Py_ssize_t count = PyTuple_Size(items);
    parts->views = PyMem_Calloc((size_t)count + 1, sizeof(Py_buffer));
    parts->sections = PyMem_Calloc((size_t)count + 1, sizeof(struct section));
    int good = parts->views != NULL && parts->sections != NULL;
    if (!good) {
        PyErr_NoMemory();
    }
    PyObject *last = NULL;
    for (; good && parts->count < count; parts->count += good) {
        good = take_part(parts, PyTuple_GetItem(items, parts->count), &last, &parts->sections[parts->count]);
    }
    Py_XDECREF(last);
    Py_DECREF(items);
    return good;
}

/* A bitmap of zeros into a tuple where anything is null, None otherwise. */
static int
add_validity(PyObject *tuple, Py_ssize_t at, struct filling *filling)
{
    filling->validity = NULL;
    if (filling->extent.nulls == 0) {
        Py_INCREF(Py_None);
        return PyTuple_SetItem(tuple, at, Py_None) == 0;
    }
    int64_t size = (filling->extent.items + 7) / 8;
    filling->validity = add_bytes(tuple, at, size);
    if (filling->validity == NULL) {
        return 0;
    }
    memset(filling->validity, 0, (size_t)size);
    return 1;
}

/* Offsets and, where a column has its own, bytes. */
static int
add_column(PyObject *tuple, Py_ssize_t at, int has_bytes, const struct extent *extent, struct filling *filling)
{
    filling->extent = *extent;
    filling->offsets = add_bytes(tuple, at, (extent->items + 1) * (int64_t)sizeof(int32_t));
    if (filling->offsets == NULL) {
        return 0;
    }
    filling->offsets[0] = 0;
    if (has_bytes) {
        filling->bytes = add_bytes(tuple, at + 1, extent->bytes);
    }
    return !has_bytes || filling->bytes != NULL;
}

/* The tuple that columns() gives, its buffers still to be filled. */
static PyObject *
make_columns(const struct extents *extents, int with_headers, struct fillings *to)
{
    PyObject *headers = Py_None;
    PyObject *result = PyTuple_New(ROW_FIELDS);
    if (result == NULL) {
        return NULL;
    }
    int64_t rows = extents->keys.items;
    PyObject *number = PyLong_FromLongLong(rows);
    if (number == NULL || PyTuple_SetItem(result, 0, number) < 0 ||
        (to->offsets = add_bytes(result, 1, rows * (int64_t)sizeof(int64_t))) == NULL ||
        (to->timestamps = add_bytes(result, 2, rows * (int64_t)sizeof(int64_t))) == NULL ||
        !add_column(result, 3, 1, &extents->keys, &to->keys) || !add_validity(result, 5, &to->keys) ||
        !add_column(result, 6, 1, &extents->values, &to->values) || !add_validity(result, 8, &to->values)) {
        goto failed;
    }
    if (!with_headers) {
        Py_INCREF(headers);
        PyTuple_SetItem(result, 9, headers);
        return result;
    }
    headers = PyTuple_New(HEADER_FIELDS);
    if (headers == NULL || PyTuple_SetItem(result, 9, headers) < 0 ||
        !add_column(headers, 0, 0, &extents->lists, &to->lists) || !add_validity(headers, 1, &to->lists) ||
        !add_column(headers, 2, 1, &extents->names, &to->names) ||
        !add_column(headers, 4, 1, &extents->contents, &to->contents) ||
        !add_validity(headers, 6, &to->contents)) {
        goto failed;
    }
    return result;
failed:
    Py_DECREF(result);
    return NULL;
}

static PyObject *
kernel_columns(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    long long first_offset, last_offset;
    if (!check_args("columns", nargs, 4, 4) || !as_int64(args[1], &first_offset) ||
        !as_int64(args[2], &last_offset)) {
        return NULL;
    }
    int with_headers = PyObject_IsTrue(args[3]);
    if (with_headers < 0) {
        return NULL;
    }
    PyObject *result = NULL;
    struct parts parts = {NULL, NULL, 0, 0, 0};
    if (take_parts(args[0], &parts)) {
        struct reading reading = {parts.sections, parts.count, first_offset, last_offset, with_headers};
        struct extents extents;
        struct fillings to;
        memset(&extents, 0, sizeof(extents));
        memset(&to, 0, sizeof(to));
        PyThreadState *state = leave_lock(parts.bytes);
        int64_t found = measure_columns(&reading, &extents);
        take_lock(state);
        if (found == TOO_LARGE) {
            PyErr_Format(PyExc_ValueError, "a column is larger than %d bytes or headers", INT32_MAX);
        }
        else if (found != MEASURED) {
            PyErr_Format(PyExc_ValueError, "the records of part %lld are malformed, or are not %lld",
                         (long long)found, (long long)parts.sections[found].count);
        }
        else {
            result = make_columns(&extents, with_headers, &to);
        }
        if (result != NULL) {
            state = leave_lock(parts.bytes);
            int filled = fill_columns(&reading, &to);
            take_lock(state);
            if (!filled) {
                Py_CLEAR(result);
                PyErr_SetString(PyExc_ValueError, "the records changed while they were read");
            }
        }
    }
    release_parts(&parts);
    return result;
}

#endif
