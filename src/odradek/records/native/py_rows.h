/* Writing rows of columns, the face to Python: Arrow's buffers in, places, orders and records out.
 *
 * twins/columns.py describes every function.
 */
#ifndef ODRADEK_PY_ROWS_H
#define ODRADEK_PY_ROWS_H

#include "objects.h"

#include "rows.h"

#define COLUMN_FIELDS 3
#define HEADER_COLUMN_FIELDS 7
#define MOST_TABLE_BUFFERS (1 + 2 * COLUMN_FIELDS + HEADER_COLUMN_FIELDS)
#define ROW_BYTES 16 /* about what a row costs beside its bytes */

static int
take_buffer(PyObject *object, Py_buffer *views, int *taken)
{
    if (PyObject_GetBuffer(object, &views[*taken], PyBUF_SIMPLE) < 0) {
        return 0;
    }
    ++*taken;
    return 1;
}

/* A column of offsets, bytes (none for lists) and validity or None; its buffers are to be released. */
static int
take_column(PyObject *offsets, PyObject *bytes, PyObject *validity, Py_buffer *views, int *taken,
            struct arrow_column *column)
{
    if (!take_buffer(offsets, views, taken)) {
        return 0;
    }
    const Py_buffer *view = &views[*taken - 1];
    int64_t numbers = view->len / (int64_t)sizeof(int32_t);
    *column = (struct arrow_column){
        .offsets = view->buf, .elements = numbers > 0 ? numbers - 1 : 0, .present = 1};
    if (bytes != NULL) {
        if (!take_buffer(bytes, views, taken)) {
            return 0;
        }
        column->bytes = views[*taken - 1].buf;
        column->size = views[*taken - 1].len;
    }
    if (validity != NULL && validity != Py_None) {
        if (!take_buffer(validity, views, taken)) {
            return 0;
        }
        view = &views[*taken - 1];
        /* An empty buffer may be at no address, as if there were no bitmap: then there are no elements either. */
        column->validity = view->buf;
        if (view->len < (column->elements + 7) / 8) {
            column->elements = view->len * 8;
        }
    }
    return 1;
}

/* (offsets, bytes, validity or None) as a column; all null where it is None. */
static int
take_column_tuple(PyObject *given, Py_buffer *views, int *taken, struct arrow_column *column)
{
    if (given == Py_None) {
        return 1;
    }
    PyObject *items = as_tuple(given, COLUMN_FIELDS);
    if (items == NULL) {
        return 0;
    }
    int good = take_column(PyTuple_GetItem(items, 0), PyTuple_GetItem(items, 1), PyTuple_GetItem(items, 2), views,
                           taken, column);
    Py_DECREF(items);
    return good;
}

static int
take_header_columns(PyObject *given, Py_buffer *views, int *taken, struct table *table)
{
    if (given == Py_None) {
        return 1;
    }
    PyObject *items = as_tuple(given, HEADER_COLUMN_FIELDS);
    if (items == NULL) {
        return 0;
    }
    int good =
        take_column(PyTuple_GetItem(items, 0), NULL, PyTuple_GetItem(items, 1), views, taken, &table->lists) &&
        take_column(PyTuple_GetItem(items, 2), PyTuple_GetItem(items, 3), NULL, views, taken, &table->names) &&
        take_column(PyTuple_GetItem(items, 4), PyTuple_GetItem(items, 5), PyTuple_GetItem(items, 6), views, taken,
                    &table->contents);
    Py_DECREF(items);
    table->lists.size = table->names.elements < table->contents.elements ? table->names.elements
                                                                         : table->contents.elements;
    return good;
}

static PyObject *
kernel_murmur2(PyObject *module, PyObject *object)
{
    Py_buffer data;
    if (PyObject_GetBuffer(object, &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    uint32_t hash = murmur2(data.buf, (size_t)data.len);
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(hash);
}

static int
as_partition_count(PyObject *number, Py_ssize_t *value)
{
    if (!as_size(number, INT32_MAX, value)) {
        return 0;
    }
    if (*value == 0) {
        PyErr_SetString(PyExc_ValueError, "there are no partitions");
    }
    return *value > 0;
}

static PyObject *
kernel_place_keys(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_ssize_t first, rows, partition_count;
    if (!check_args("place_keys", nargs, 6, 6) || !as_size(args[3], INT32_MAX, &first) ||
        !as_size(args[4], INT32_MAX, &rows) || !as_partition_count(args[5], &partition_count)) {
        return NULL;
    }
    Py_buffer views[COLUMN_FIELDS];
    int taken = 0;
    PyObject *result = NULL;
    struct arrow_column keys;
    if (take_column(args[0], args[1], args[2], views, &taken, &keys)) {
        /* What is allocated must not depend on a number of rows that the column cannot have. */
        int placed = rows <= keys.elements;
        if (placed) {
            result = PyBytes_FromStringAndSize(NULL, rows * (Py_ssize_t)sizeof(int32_t));
        }
        if (result != NULL) {
            uint8_t *places = (uint8_t *)PyBytes_AsString(result);
            PyThreadState *state = leave_lock(rows * (int64_t)ROW_BYTES);
            placed = place_keys(&keys, first, rows, (int32_t)partition_count, places);
            take_lock(state);
        }
        if (!placed) {
            Py_CLEAR(result);
            PyErr_Format(PyExc_ValueError, "the column does not have %zd keys from %zd on", rows, first);
        }
    }
    release_all(views, taken);
    return result;
}

static PyObject *
kernel_group_rows(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_ssize_t partition_count;
    Py_buffer places;
    if (!check_args("group_rows", nargs, 2, 2) || !as_partition_count(args[1], &partition_count) ||
        PyObject_GetBuffer(args[0], &places, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    PyObject *result = NULL;
    int64_t rows = places.len / (int64_t)sizeof(int32_t);
    if (places.len % (Py_ssize_t)sizeof(int32_t) || rows > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%zd bytes are no 32-bit places", places.len);
        goto done;
    }
    int32_t *ends = PyMem_Malloc((size_t)partition_count * sizeof(int32_t));
    result = PyTuple_New(2);
    uint8_t *starts = NULL, *order = NULL;
    if (ends == NULL) {
        PyErr_NoMemory();
    }
    else if (result != NULL) {
        starts = add_bytes(result, 0, ((int64_t)partition_count + 1) * (int64_t)sizeof(int32_t));
        order = starts == NULL ? NULL : add_bytes(result, 1, places.len);
    }
    if (order == NULL) {
        Py_CLEAR(result);
    }
    else {
        PyThreadState *state = leave_lock(rows * (int64_t)ROW_BYTES);
        int grouped = group_rows(places.buf, rows, (int32_t)partition_count, starts, order, ends);
        take_lock(state);
        if (!grouped) {
            Py_CLEAR(result);
            PyErr_Format(PyExc_ValueError, "a place is not one of %zd partitions", partition_count);
        }
    }
    PyMem_Free(ends);
done:
    PyBuffer_Release(&places);
    return result;
}

/* The columns and the order of build_columns, and about how many bytes they hold. */
static int
take_table(PyObject *const *args, Py_buffer *views, int *taken, struct table *table, int64_t *bytes)
{
    if (args[0] != Py_None) {
        if (!take_buffer(args[0], views, taken)) {
            return 0;
        }
        table->order = views[0].buf;
    }
    if (!take_column_tuple(args[4], views, taken, &table->keys) ||
        !take_column_tuple(args[5], views, taken, &table->values) ||
        !take_header_columns(args[6], views, taken, table)) {
        return 0;
    }
    *bytes = table->keys.size + table->values.size + table->names.size + table->contents.size;
    return 1;
}

/* The records of rows start to stop, as far as they go; `work` is how many bytes they may come to. */
static PyObject *
build_table(const struct table *table, int64_t start, int64_t stop, int64_t limit, Py_ssize_t room, int64_t work)
{
    int64_t next;
    size_t size;
    PyThreadState *state = leave_lock(work);
    int good = measure_rows(table, start, stop, limit, &next, &size);
    take_lock(state);
    PyObject *records = NULL;
    if (good) {
        records = PyByteArray_FromStringAndSize(NULL, room + (Py_ssize_t)size);
        if (records == NULL) {
            return NULL;
        }
        uint8_t *place = (uint8_t *)PyByteArray_AsString(records);
        state = leave_lock((int64_t)size);
        memset(place, 0, (size_t)room);
        good = write_rows(table, start, next, place + room, place + room + size);
        take_lock(state);
    }
    if (!good) {
        Py_XDECREF(records);
        PyErr_SetString(PyExc_ValueError, "a row is not in its columns, or is too large for a record");
        return NULL;
    }
    return Py_BuildValue("(NL)", records, (long long)next);
}

static PyObject *
kernel_build_columns(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_ssize_t start, stop, first, room;
    long long timestamp_delta, limit;
    if (!check_args("build_columns", nargs, 10, 10) || !as_size(args[2], INT32_MAX, &stop) ||
        !as_size(args[1], stop, &start) || !as_size(args[3], INT32_MAX, &first) ||
        !as_int64(args[7], &timestamp_delta) || !as_int64(args[8], &limit) ||
        !as_size(args[9], PY_SSIZE_T_MAX / 4, &room)) {
        return NULL;
    }
    Py_buffer views[MOST_TABLE_BUFFERS];
    int taken = 0;
    PyObject *result = NULL;
    struct table table;
    memset(&table, 0, sizeof(table));
    table.first = first;
    table.timestamp_delta = timestamp_delta;
    int64_t bytes;
    if (take_table(args, views, &taken, &table, &bytes)) {
        int64_t work = bytes + (stop - start) * (int64_t)ROW_BYTES;
        if (args[0] != Py_None && stop > views[0].len / (Py_ssize_t)sizeof(int32_t)) {
            PyErr_Format(PyExc_ValueError, "%zd bytes are not the order of %zd rows", views[0].len, stop);
        }
        else {
            result = build_table(&table, start, stop, limit, room, work < limit ? work : limit);
        }
    }
    release_all(views, taken);
    return result;
}

#endif
