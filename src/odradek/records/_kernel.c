/* The record kernel's face to Python: arguments in, native/read.h and native/write.h at work, objects out.
 *
 * The twin of twins/kernel.py, which describes every function; the two must give the same answers. Nothing here
 * knows compression, configuration or Kafka's error codes. Work on more than GIL_FREE_BYTES runs without the
 * interpreter's lock. The functions of compaction stand in native/py_compaction.h, those of columns in
 * native/py_columns.h and native/py_rows.h.
 */
#include "native/py_compaction.h"
#include "native/encode.h"
#include "native/objects.h"
#include "native/py_columns.h"
#include "native/py_rows.h"
#include "native/read.h"
#include "native/write.h"

#define MOST_OUTSIDERS (1 << 16)

static PyObject *
kernel_crc32c(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer data;
    unsigned long value = 0;
    if (!check_args("crc32c", nargs, 1, 2)) {
        return NULL;
    }
    if (nargs > 1) {
        value = PyLong_AsUnsignedLong(args[1]);
        if (value == (unsigned long)-1 && PyErr_Occurred()) {
            return NULL;
        }
    }
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    uint32_t crc = (uint32_t)value;
    if (data.len >= GIL_FREE_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        crc = crc32c(crc, data.buf, (size_t)data.len);
        Py_END_ALLOW_THREADS
    }
    else {
        crc = crc32c(crc, data.buf, (size_t)data.len);
    }
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(crc);
}

static int
validate_all(const Py_buffer *views, Py_ssize_t count, const struct bounds *bounds, struct batches *found)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        const uint8_t *data = views[i].buf;
        if (!validate_set(data, data + views[i].len, (size_t)i, bounds, found)) {
            return 0;
        }
    }
    return 1;
}

/* Whether a set is one sound batch in a writable buffer that may be appended as it came. */
static int
is_plain(const struct batch *batch, const Py_buffer *view, long long plain_bytes)
{
    const uint8_t *p = view->buf;
    return batch->verdict.finding == OK && batch->position == 0 && !view->readonly &&
           view->len == be_int32(p + 8) + (int64_t)LOG_OVERHEAD && view->len <= plain_bytes &&
           be_int64(p) == 0 && !(be_int16(p + 21) & (LOG_APPEND_TIME_FLAG | CONTROL_FLAG)) &&
           (be_int64(p + 43) < 0 || be_int32(p + 53) >= 0) && batch->verdict.largest == be_int64(p + 35);
}

static PyObject *
findings_of(const struct batches *found, const Py_buffer *views, Py_ssize_t count, PyTypeObject *type,
            long long plain_bytes)
{
    PyObject *result = PyList_New(count);
    if (result == NULL) {
        return NULL;
    }
    size_t next = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (next < found->count && found->items[next].set == (size_t)i &&
            is_plain(&found->items[next], &views[i], plain_bytes)) {
            PyObject *meta = make_meta(type, views[i].buf, 0);
            if (meta == NULL || PyList_SetItem(result, i, meta) < 0) {
                Py_DECREF(result);
                return NULL;
            }
            next++;
            continue;
        }
        PyObject *set = PyList_New(0);
        if (set == NULL || PyList_SetItem(result, i, set) < 0) {
            Py_DECREF(result);
            return NULL;
        }
        for (; next < found->count && found->items[next].set == (size_t)i; next++) {
            if (!append_new(set, make_finding(&found->items[next], type, views[i].buf))) {
                Py_DECREF(result);
                return NULL;
            }
        }
    }
    return result;
}

static PyObject *
kernel_validate(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    struct bounds bounds;
    long long plain_bytes = -1;
    if (!check_args("validate", nargs, 5, 6) || !is_meta_type(args[1]) ||
        !as_int64(args[2], &bounds.min_timestamp) || !as_int64(args[3], &bounds.max_timestamp) ||
        (nargs > 5 && !as_int64(args[5], &plain_bytes))) {
        return NULL;
    }
    bounds.need_keys = PyObject_IsTrue(args[4]);
    Py_ssize_t count = PySequence_Size(args[0]);
    if (bounds.need_keys < 0 || count < 0) {
        return NULL;
    }
    Py_buffer few[8];
    Py_buffer *views = few;
    if (count > 8) {
        views = PyMem_Malloc((size_t)count * sizeof(Py_buffer));
        if (views == NULL) {
            return PyErr_NoMemory();
        }
    }
    PyObject *result = NULL;
    struct batches found;
    batches_init(&found);
    Py_ssize_t taken = 0;
    Py_ssize_t total = 0;
    for (; taken < count; taken++) {
        PyObject *set = PySequence_GetItem(args[0], taken);
        if (set == NULL) {
            goto done;
        }
        int failed = PyObject_GetBuffer(set, &views[taken], PyBUF_SIMPLE);
        Py_DECREF(set);
        if (failed) {
            goto done;
        }
        total += views[taken].len;
    }
    int whole;
    if (total >= GIL_FREE_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        whole = validate_all(views, count, &bounds, &found);
        Py_END_ALLOW_THREADS
    }
    else {
        whole = validate_all(views, count, &bounds, &found);
    }
    result = whole ? findings_of(&found, views, count, (PyTypeObject *)args[1], plain_bytes) : PyErr_NoMemory();
done:
    batches_free(&found);
    while (taken > 0) {
        PyBuffer_Release(&views[--taken]);
    }
    if (views != few) {
        PyMem_Free(views);
    }
    return result;
}

static PyObject *
kernel_check_records(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    struct bounds bounds;
    long long count, base_timestamp;
    if (!check_args("check_records", nargs, 6, 7) || !as_int64(args[1], &count) ||
        !as_int64(args[2], &base_timestamp) || !as_int64(args[3], &bounds.min_timestamp) ||
        !as_int64(args[4], &bounds.max_timestamp)) {
        return NULL;
    }
    bounds.need_keys = PyObject_IsTrue(args[5]);
    Py_buffer data;
    if (bounds.need_keys < 0 || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    Py_ssize_t position = 0;
    if (nargs > 6 && !as_size(args[6], data.len, &position)) {
        PyBuffer_Release(&data);
        return NULL;
    }
    const uint8_t *start = data.buf;
    const uint8_t *end = start + data.len;
    struct verdict verdict;
    if (data.len >= GIL_FREE_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        verdict = examine(start + position, end, count, base_timestamp, &bounds);
        Py_END_ALLOW_THREADS
    }
    else {
        verdict = examine(start + position, end, count, base_timestamp, &bounds);
    }
    PyBuffer_Release(&data);
    const int64_t fields[] = {verdict.finding, verdict.index, verdict.largest};
    return int_tuple(fields, 3);
}

/* The amounts and the first outsiders, as find_outsiders found them. */
static PyObject *
outsiders_of(const struct outsider *first, int64_t room, int64_t no_keys, int64_t bad_timestamps)
{
    int64_t kept = no_keys + bad_timestamps < room ? no_keys + bad_timestamps : room;
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list != NULL && i < kept; i++) {
        if (!append_new(list, int_tuple((const int64_t *)&first[i], 4))) {
            Py_CLEAR(list);
        }
    }
    return list == NULL ? NULL : Py_BuildValue("LLN", (long long)no_keys, (long long)bad_timestamps, list);
}

static PyObject *
kernel_find_outsiders(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    struct bounds bounds;
    long long count, base_timestamp, least_delta = INT32_MIN;
    Py_ssize_t room;
    if (!check_args("find_outsiders", nargs, 7, 8) || !as_int64(args[1], &count) ||
        !as_int64(args[2], &base_timestamp) || !as_int64(args[3], &bounds.min_timestamp) ||
        !as_int64(args[4], &bounds.max_timestamp) || !as_size(args[6], MOST_OUTSIDERS, &room) ||
        (nargs > 7 && !as_int64(args[7], &least_delta))) {
        return NULL;
    }
    bounds.need_keys = PyObject_IsTrue(args[5]);
    Py_buffer data;
    if (bounds.need_keys < 0 || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    struct outsider *first = PyMem_Malloc(((size_t)room + 1) * sizeof(struct outsider));
    if (first == NULL) {
        PyBuffer_Release(&data);
        return PyErr_NoMemory();
    }
    const uint8_t *start = data.buf;
    const uint8_t *end = start + data.len;
    int64_t no_keys = 0, bad_timestamps = 0, malformed;
    if (data.len >= GIL_FREE_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        malformed = find_outsiders(start, end, count, base_timestamp, least_delta, &bounds, first, room, &no_keys,
                                   &bad_timestamps);
        Py_END_ALLOW_THREADS
    }
    else {
        malformed = find_outsiders(start, end, count, base_timestamp, least_delta, &bounds, first, room, &no_keys,
                                   &bad_timestamps);
    }
    PyBuffer_Release(&data);
    PyObject *result = NULL;
    if (malformed >= 0) {
        PyErr_Format(PyExc_ValueError, "record %lld of %lld is malformed", (long long)malformed, count);
    }
    else {
        result = outsiders_of(first, room, no_keys, bad_timestamps);
    }
    PyMem_Free(first);
    return result;
}

static PyObject *
kernel_scan_segment(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (!check_args("scan_segment", nargs, 2, 3) || !is_meta_type(args[1])) {
        return NULL;
    }
    Py_buffer data;
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    PyObject *metas = NULL, *result = NULL;
    struct batches found;
    batches_init(&found);
    Py_ssize_t start = 0;
    if (nargs > 2 && !as_size(args[2], data.len, &start)) {
        goto done;
    }
    const uint8_t *bytes = data.buf;
    size_t position = (size_t)start;
    int finding;
    Py_BEGIN_ALLOW_THREADS
    finding = scan(bytes, bytes + data.len, &position, &found);
    Py_END_ALLOW_THREADS
    if (finding < 0) {
        PyErr_NoMemory();
        goto done;
    }
    metas = PyList_New(0);
    for (size_t i = 0; metas != NULL && i < found.count; i++) {
        size_t at = found.items[i].position;
        if (!append_new(metas, make_meta((PyTypeObject *)args[1], bytes + at, at))) {
            Py_CLEAR(metas);
        }
    }
    if (metas != NULL) {
        result = Py_BuildValue("(Nni)", metas, (Py_ssize_t)position, finding);
    }
done:
    batches_free(&found);
    PyBuffer_Release(&data);
    return result;
}

static PyObject *
kernel_walk(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    long long count;
    if (!check_args("walk", nargs, 2, 3) || !as_int64(args[1], &count)) {
        return NULL;
    }
    Py_buffer data;
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    PyObject *spans = NULL;
    Py_ssize_t position = 0;
    if (nargs > 2 && !as_size(args[2], data.len, &position)) {
        goto done;
    }
    /* What is allocated for the columns must not depend on a count that the bytes cannot hold. */
    if (count < 0 || count > (data.len - position) / RECORD_MIN_BYTES) {
        PyErr_Format(PyExc_ValueError, "%zd bytes cannot hold %lld records", data.len - position, count);
        goto done;
    }
    spans = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * COLUMNS * sizeof(int64_t)));
    if (spans == NULL) {
        goto done;
    }
    const uint8_t *start = data.buf;
    int64_t *columns = (int64_t *)PyBytes_AsString(spans);
    int64_t malformed;
    if (data.len >= GIL_FREE_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        malformed = walk(start, start + position, start + data.len, count, columns);
        Py_END_ALLOW_THREADS
    }
    else {
        malformed = walk(start, start + position, start + data.len, count, columns);
    }
    if (malformed >= 0) {
        Py_CLEAR(spans);
        PyErr_Format(PyExc_ValueError, "record %lld of %lld is malformed, or bytes follow the last record",
                     (long long)malformed, count);
    }
done:
    PyBuffer_Release(&data);
    return spans;
}

static PyObject *
kernel_build(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_ssize_t room = 0;
    if (!check_args("build", nargs, 4, 5) || (nargs > 4 && !as_size(args[4], PY_SSIZE_T_MAX / 4, &room))) {
        return NULL;
    }
    Py_buffer buffers[4];
    PyObject *result = NULL;
    int taken = 0;
    for (; taken < 4; taken++) {
        if (PyObject_GetBuffer(args[taken], &buffers[taken], PyBUF_SIMPLE) < 0) {
            goto done;
        }
    }
    Py_ssize_t row_bytes = (Py_ssize_t)(COLUMNS * sizeof(int64_t));
    if (buffers[0].len % row_bytes) {
        PyErr_Format(PyExc_ValueError, "%zd bytes are not %d columns", buffers[0].len, COLUMNS);
        goto done;
    }
    struct sources from = {
        .columns = buffers[0].buf,
        .count = buffers[0].len / row_bytes,
        .keys = {buffers[1].buf, buffers[1].len},
        .values = {buffers[2].buf, buffers[2].len},
        .headers = {buffers[3].buf, buffers[3].len},
    };
    Py_ssize_t size;
    Py_BEGIN_ALLOW_THREADS
    size = built_size(&from);
    Py_END_ALLOW_THREADS
    int built = 0;
    if (size >= 0) {
        result = PyByteArray_FromStringAndSize(NULL, room + size);
        if (result == NULL) {
            goto done;
        }
        uint8_t *place = (uint8_t *)PyByteArray_AsString(result);
        Py_BEGIN_ALLOW_THREADS
        memset(place, 0, (size_t)room);
        built = build(&from, place + room, place + room + size);
        Py_END_ALLOW_THREADS
    }
    if (!built) {
        Py_CLEAR(result);
        PyErr_SetString(PyExc_ValueError, "a span leaves its buffer, or a number is out of range");
    }
done:
    while (taken > 0) {
        PyBuffer_Release(&buffers[--taken]);
    }
    return result;
}

static PyObject *
kernel_encode(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    long long base_timestamp;
    Py_ssize_t room = 0;
    if (!check_args("encode", nargs, 2, 3) || !as_int64(args[1], &base_timestamp) ||
        (nargs > 2 && !as_size(args[2], PY_SSIZE_T_MAX / 2, &room))) {
        return NULL;
    }
    PyObject *records = as_tuple(args[0], -1);
    if (records == NULL) {
        return NULL;
    }
    struct output out = {NULL, 0, 0, 0};
    struct output record = {NULL, 0, 0, 0};
    put_room(&out, (size_t)room);
    Py_ssize_t count = PyTuple_Size(records);
    Py_ssize_t i = 0;
    while (i < count && put_record(&record, PyTuple_GetItem(records, i), i, base_timestamp)) {
        put_varint(&out, (int64_t)record.size);
        put_bytes(&out, record.bytes, record.size);
        i++;
    }
    out.failed |= record.failed;
    free(record.bytes);
    Py_DECREF(records);
    if (i < count) {
        free(out.bytes);
        return NULL;
    }
    return as_bytearray(&out);
}

static PyObject *
kernel_allocate(PyObject *module, PyObject *number)
{
    Py_ssize_t size;
    return as_size(number, PY_SSIZE_T_MAX / 2, &size) ? PyByteArray_FromStringAndSize(NULL, size) : NULL;
}

static PyMethodDef methods[] = {
    {"crc32c", (PyCFunction)(void (*)(void))kernel_crc32c, METH_FASTCALL, NULL},
    {"validate", (PyCFunction)(void (*)(void))kernel_validate, METH_FASTCALL, NULL},
    {"check_records", (PyCFunction)(void (*)(void))kernel_check_records, METH_FASTCALL, NULL},
    {"find_outsiders", (PyCFunction)(void (*)(void))kernel_find_outsiders, METH_FASTCALL, NULL},
    {"scan_segment", (PyCFunction)(void (*)(void))kernel_scan_segment, METH_FASTCALL, NULL},
    {"walk", (PyCFunction)(void (*)(void))kernel_walk, METH_FASTCALL, NULL},
    {"build", (PyCFunction)(void (*)(void))kernel_build, METH_FASTCALL, NULL},
    {"encode", (PyCFunction)(void (*)(void))kernel_encode, METH_FASTCALL, NULL},
    {"allocate", kernel_allocate, METH_O, NULL},
    {"offset_map", kernel_offset_map, METH_O, NULL},
    {"newest_offset", (PyCFunction)(void (*)(void))kernel_newest_offset, METH_FASTCALL, NULL},
    {"map_batches", (PyCFunction)(void (*)(void))kernel_map_batches, METH_FASTCALL, NULL},
    {"map_records", (PyCFunction)(void (*)(void))kernel_map_records, METH_FASTCALL, NULL},
    {"retain_batches", (PyCFunction)(void (*)(void))kernel_retain_batches, METH_FASTCALL, NULL},
    {"retain_records", (PyCFunction)(void (*)(void))kernel_retain_records, METH_FASTCALL, NULL},
    {"index_batches", (PyCFunction)(void (*)(void))kernel_index_batches, METH_FASTCALL, NULL},
    {"columns", (PyCFunction)(void (*)(void))kernel_columns, METH_FASTCALL, NULL},
    {"murmur2", kernel_murmur2, METH_O, NULL},
    {"place_keys", (PyCFunction)(void (*)(void))kernel_place_keys, METH_FASTCALL, NULL},
    {"group_rows", (PyCFunction)(void (*)(void))kernel_group_rows, METH_FASTCALL, NULL},
    {"build_columns", (PyCFunction)(void (*)(void))kernel_build_columns, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_kernel",
    .m_doc = "The native record kernel; twins/kernel.py describes its functions.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__kernel(void)
{
    crc_init();
    tuple_new = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    return PyModule_Create(&module);
}
