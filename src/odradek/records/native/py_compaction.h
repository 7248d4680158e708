/* Compaction's face to Python: offset maps as byte arrays, chunks of batches in, what stays of them out.
 *
 * twins/compaction.py describes every function. A cleaner runs beside the event loop: whatever may take
 * long is done without the interpreter's lock.
 */
#ifndef ODRADEK_PY_COMPACTION_H
#define ODRADEK_PY_COMPACTION_H

#include "objects.h"

#include "compaction.h"

#define LEAST_GIL_FREE_BYTES (16 << 10)

static PyObject *
kernel_offset_map(PyObject *module, PyObject *number)
{
    Py_ssize_t slots;
    if (!as_size(number, PY_SSIZE_T_MAX / SLOT_BYTES, &slots)) {
        return NULL;
    }
    PyObject *map = PyByteArray_FromStringAndSize(NULL, slots * SLOT_BYTES);
    if (map != NULL && slots > 0) {
        void *place = PyByteArray_AsString(map);
        Py_BEGIN_ALLOW_THREADS
        memset(place, 0, (size_t)slots * SLOT_BYTES);
        Py_END_ALLOW_THREADS
    }
    return map;
}

/* A map and its secret from two arguments; both buffers are to be released, also after a failure. */
static int
take_map(PyObject *slots, PyObject *secret, int flags, Py_buffer views[2], int *taken, struct offset_map *map)
{
    if (PyObject_GetBuffer(slots, &views[0], flags) < 0) {
        return 0;
    }
    *taken = 1;
    if (PyObject_GetBuffer(secret, &views[1], PyBUF_SIMPLE) < 0) {
        return 0;
    }
    *taken = 2;
    if (views[0].len % SLOT_BYTES || views[1].len != SECRET_BYTES) {
        PyErr_Format(PyExc_ValueError, "%zd bytes are no map, or %zd bytes no secret", views[0].len, views[1].len);
        return 0;
    }
    const uint8_t *key = views[1].buf;
    *map = (struct offset_map){
        .slots = views[0].buf, .count = (size_t)views[0].len / SLOT_BYTES, .k0 = le64(key), .k1 = le64(key + 8)};
    return 1;
}

static PyObject *
kernel_newest_offset(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer views[2], key;
    struct offset_map map;
    int taken = 0;
    PyObject *result = NULL;
    if (!check_args("newest_offset", nargs, 3, 3)) {
        return NULL;
    }
    if (take_map(args[0], args[1], PyBUF_SIMPLE, views, &taken, &map) &&
        PyObject_GetBuffer(args[2], &key, PyBUF_SIMPLE) == 0) {
        struct sought sought;
        seek(&map, key.buf, (size_t)key.len, &sought);
        result = PyLong_FromLongLong(newest_offset(&map, &sought));
        PyBuffer_Release(&key);
    }
    release_all(views, taken);
    return result;
}

static PyObject *
kernel_map_batches(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer data, views[2];
    struct offset_map map;
    Py_ssize_t start;
    long long start_offset, used, most;
    int taken = 0;
    PyObject *result = NULL;
    if (!check_args("map_batches", nargs, 7, 7) || !as_int64(args[2], &start_offset) ||
        !as_int64(args[5], &used) || !as_int64(args[6], &most) ||
        PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    if (as_size(args[1], data.len, &start) && take_map(args[3], args[4], PyBUF_WRITABLE, views, &taken, &map)) {
        const uint8_t *bytes = data.buf;
        size_t position = (size_t)start;
        int64_t latest = -1;
        int finding;
        map.used = used;
        map.most = most;
        if (data.len - start >= LEAST_GIL_FREE_BYTES) {
            Py_BEGIN_ALLOW_THREADS
            finding = map_batches(bytes, bytes + data.len, &position, start_offset, &map, &latest);
            Py_END_ALLOW_THREADS
        }
        else {
            finding = map_batches(bytes, bytes + data.len, &position, start_offset, &map, &latest);
        }
        const int64_t fields[] = {(int64_t)position, finding, map.used, latest};
        result = int_tuple(fields, 4);
    }
    release_all(views, taken);
    PyBuffer_Release(&data);
    return result;
}

static PyObject *
kernel_map_records(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer data, views[2];
    struct offset_map map;
    long long count, base_offset, start_offset, used, most;
    int taken = 0;
    PyObject *result = NULL;
    if (!check_args("map_records", nargs, 8, 8) || !as_int64(args[1], &count) ||
        !as_int64(args[2], &base_offset) || !as_int64(args[3], &start_offset) || !as_int64(args[6], &used) ||
        !as_int64(args[7], &most) || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    if (take_map(args[4], args[5], PyBUF_WRITABLE, views, &taken, &map)) {
        const uint8_t *bytes = data.buf;
        int finding;
        map.used = used;
        map.most = most;
        if (data.len >= LEAST_GIL_FREE_BYTES) {
            Py_BEGIN_ALLOW_THREADS
            finding = map_records(bytes, bytes + data.len, count, base_offset, start_offset, &map);
            Py_END_ALLOW_THREADS
        }
        else {
            finding = map_records(bytes, bytes + data.len, count, base_offset, start_offset, &map);
        }
        if (finding == MALFORMED) {
            PyErr_Format(PyExc_ValueError, "the records are malformed, or are not %lld", count);
        }
        else {
            const int64_t fields[] = {map.used, finding == FULL};
            result = int_tuple(fields, 2);
        }
    }
    release_all(views, taken);
    PyBuffer_Release(&data);
    return result;
}

/* (slots, secret, latest offset, now, horizon, last offsets to keep) as the rules; three buffers to release. */
static int
take_rules(PyObject *given, Py_buffer views[3], int *taken, struct retention *rules)
{
    PyObject *items = as_tuple(given, 6);
    if (items == NULL) {
        return 0;
    }
    long long latest, now, horizon;
    int good = take_map(PyTuple_GetItem(items, 0), PyTuple_GetItem(items, 1), PyBUF_SIMPLE, views, taken,
                        &rules->map) &&
               as_int64(PyTuple_GetItem(items, 2), &latest) && as_int64(PyTuple_GetItem(items, 3), &now) &&
               as_int64(PyTuple_GetItem(items, 4), &horizon) &&
               PyObject_GetBuffer(PyTuple_GetItem(items, 5), &views[2], PyBUF_SIMPLE) == 0;
    Py_DECREF(items);
    if (good) {
        *taken = 3;
        rules->latest_offset = latest;
        rules->now_ms = now;
        rules->horizon_ms = horizon;
        rules->keep_empty = views[2].buf;
        rules->keep_empty_count = (size_t)views[2].len / sizeof(int64_t);
    }
    return good;
}

static PyObject *
kernel_retain_batches(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer data, out, views[3];
    struct retention rules;
    Py_ssize_t start, filled;
    int taken = 0;
    PyObject *result = NULL;
    if (!check_args("retain_batches", nargs, 6, 6)) {
        return NULL;
    }
    int one = PyObject_IsTrue(args[5]);
    if (one < 0 || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    if (PyObject_GetBuffer(args[2], &out, PyBUF_WRITABLE) < 0) {
        PyBuffer_Release(&data);
        return NULL;
    }
    if (as_size(args[1], data.len, &start) && as_size(args[3], out.len, &filled) &&
        take_rules(args[4], views, &taken, &rules)) {
        const uint8_t *bytes = data.buf;
        uint8_t *room = out.buf, *place = room + filled;
        size_t position = (size_t)start;
        int finding;
        if (data.len - start >= LEAST_GIL_FREE_BYTES && !one) {
            Py_BEGIN_ALLOW_THREADS
            finding = retain_batches(bytes, bytes + data.len, &position, &rules, one, &place, room + out.len);
            Py_END_ALLOW_THREADS
        }
        else {
            finding = retain_batches(bytes, bytes + data.len, &position, &rules, one, &place, room + out.len);
        }
        if (finding < 0) {
            PyErr_NoMemory();
        }
        else {
            const int64_t fields[] = {(int64_t)position, finding, place - room};
            result = int_tuple(fields, 3);
        }
    }
    release_all(views, taken);
    PyBuffer_Release(&out);
    PyBuffer_Release(&data);
    return result;
}

/* Judges records and writes those that stay into fresh memory; OK, MALFORMED, or -1 without memory. */
static int
filter_records(const uint8_t *p, size_t size, int64_t base_offset, int64_t base_timestamp, int64_t stamp,
               const struct retention *rules, struct survivors *batch, uint8_t **written, size_t *written_size)
{
    struct scratch scratch = {NULL, 0};
    if (!can_hold(batch->count, size)) {
        return MALFORMED;
    }
    int finding = make_flags(&scratch, batch->count)
                      ? judge(p, p + size, base_offset, base_timestamp, stamp, rules, scratch.flags, batch)
                      : -1;
    if (finding == OK && batch->kept > 0 && batch->rewritten) {
        *written = malloc(size + (size_t)batch->count * RECORD_GROWTH_BYTES);
        if (*written == NULL) {
            finding = -1;
        }
        else {
            *written_size = (size_t)(write_survivors(p, p + size, base_timestamp, stamp, scratch.flags, batch,
                                                     *written) -
                                     *written);
        }
    }
    free(scratch.flags);
    return finding;
}

static PyObject *
kernel_retain_records(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer data, views[3];
    struct retention rules;
    long long count, base_offset, base_timestamp, stamp, attributes;
    int taken = 0;
    PyObject *result = NULL;
    if (!check_args("retain_records", nargs, 7, 7) || !as_int64(args[1], &count) ||
        !as_int64(args[2], &base_offset) || !as_int64(args[3], &base_timestamp) || !as_int64(args[4], &stamp) ||
        !as_int64(args[5], &attributes) || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    if (take_rules(args[6], views, &taken, &rules)) {
        struct survivors batch = {.count = count, .attributes = (int)attributes};
        const uint8_t *bytes = data.buf;
        size_t size = (size_t)data.len, written_size = 0;
        uint8_t *written = NULL;
        int finding;
        if (data.len >= LEAST_GIL_FREE_BYTES) {
            Py_BEGIN_ALLOW_THREADS
            finding = filter_records(bytes, size, base_offset, base_timestamp, stamp, &rules, &batch, &written,
                                     &written_size);
            Py_END_ALLOW_THREADS
        }
        else {
            finding = filter_records(bytes, size, base_offset, base_timestamp, stamp, &rules, &batch, &written,
                                     &written_size);
        }
        if (finding < 0) {
            PyErr_NoMemory();
        }
        else if (finding != OK) {
            PyErr_Format(PyExc_ValueError, "the records are malformed, or are not %lld", count);
        }
        else if (batch.kept > 0 && !batch.rewritten) {
            result = Py_None;
            Py_INCREF(result);
        }
        else {
            PyObject *records = PyByteArray_FromStringAndSize((const char *)written, (Py_ssize_t)written_size);
            if (records != NULL) {
                result = Py_BuildValue("LiLLN", (long long)batch.kept, batch.attributes,
                                       (long long)batch.base_timestamp, (long long)batch.max_timestamp, records);
            }
        }
        free(written);
    }
    release_all(views, taken);
    PyBuffer_Release(&data);
    return result;
}

static PyObject *
kernel_index_batches(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer data;
    struct index_state state;
    long long numbers[5];
    if (!check_args("index_batches", nargs, 6, 6)) {
        return NULL;
    }
    for (int i = 0; i < 5; i++) {
        if (!as_int64(args[i + 1], &numbers[i])) {
            return NULL;
        }
    }
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    state = (struct index_state){numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
    const uint8_t *cursor = data.buf, *end = cursor + data.len;
    int64_t entry[4];
    PyObject *entries = PyList_New(0);
    while (entries != NULL && next_index_entry(&cursor, end, &state, entry)) {
        if (!append_new(entries, int_tuple(entry, 4))) {
            Py_CLEAR(entries);
        }
    }
    PyBuffer_Release(&data);
    if (entries == NULL) {
        return NULL;
    }
    return Py_BuildValue("NLLLL", entries, (long long)state.position, (long long)state.since,
                         (long long)state.largest, (long long)state.largest_offset);
}

#endif
