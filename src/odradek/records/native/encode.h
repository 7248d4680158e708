/* Python's records to the bytes of a batch's records: what encode() does with each of them.
 *
 * Columns are built in write.h, without the interpreter; here every field is an object.
 */
#ifndef ODRADEK_ENCODE_H
#define ODRADEK_ENCODE_H

#include "objects.h"
#include "write.h"

/* A key, a value or a header's value: bytes-like or None. */
static int
put_object(struct output *out, PyObject *object)
{
    if (object == Py_None) {
        put_varint(out, -1);
        return 1;
    }
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) < 0) {
        return 0;
    }
    put_varint(out, view.len);
    put_bytes(out, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return 1;
}

static int
put_header(struct output *out, PyObject *item)
{
    PyObject *header = as_tuple(item, 2);
    if (header == NULL) {
        return 0;
    }
    Py_ssize_t length;
    const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(header, 0), &length);
    int done = 0;
    if (name != NULL) {
        put_varint(out, length);
        put_bytes(out, name, (size_t)length);
        done = put_object(out, PyTuple_GetItem(header, 1));
    }
    Py_DECREF(header);
    return done;
}

static int
put_record(struct output *out, PyObject *item, Py_ssize_t index, long long base_timestamp)
{
    PyObject *headers = NULL;
    int done = 0;
    PyObject *record = as_tuple(item, 4);
    long long timestamp;
    if (record == NULL || !as_int64(PyTuple_GetItem(record, 0), &timestamp)) {
        goto out;
    }
    out->size = 0;
    put_bytes(out, "", 1);
    put_varint(out, (int64_t)((uint64_t)timestamp - (uint64_t)base_timestamp));
    put_varint(out, index);
    if (!put_object(out, PyTuple_GetItem(record, 1)) || !put_object(out, PyTuple_GetItem(record, 2))) {
        goto out;
    }
    headers = as_tuple(PyTuple_GetItem(record, 3), -1);
    if (headers == NULL) {
        goto out;
    }
    Py_ssize_t count = PyTuple_Size(headers);
    put_varint(out, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!put_header(out, PyTuple_GetItem(headers, i))) {
            goto out;
        }
    }
    done = 1;
out:
    Py_XDECREF(headers);
    Py_XDECREF(record);
    return done;
}

static PyObject *
as_bytearray(struct output *out)
{
    PyObject *result;
    if (out->failed) {
        result = PyErr_NoMemory();
    }
    else {
        result = PyByteArray_FromStringAndSize((const char *)out->bytes, (Py_ssize_t)out->size);
    }
    free(out->bytes);
    return result;
}

#endif
