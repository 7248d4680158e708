/* The record kernel: validate, scan, walk and build record batches of magic 2 over plain bytes.
 *
 * The twin of kernel_py.py, which describes every function; the two must give the same answers. Nothing here
 * knows compression, configuration or Kafka's error codes. Every read is checked against the end of its buffer
 * first. Work on more than GIL_FREE_BYTES runs without the interpreter's lock.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_crc32c.h"

enum finding {
    OK,
    COMPRESSED,
    LEGACY,
    BAD_LENGTH,
    BAD_MAGIC,
    BAD_CRC,
    BAD_COUNT,
    MALFORMED,
    BAD_OFFSET_DELTA,
    NO_KEY,
    BAD_TIMESTAMP,
    PARTIAL,
};

enum column {
    OFFSET_DELTA,
    TIMESTAMP_DELTA,
    KEY_POSITION,
    KEY_LENGTH,
    VALUE_POSITION,
    VALUE_LENGTH,
    HEADERS_POSITION,
    HEADERS_LENGTH,
    HEADER_COUNT,
    COLUMNS,
};

#define HEADER_BYTES 61
#define LOG_OVERHEAD 12
#define CRC_START 21
#define LEGACY_MIN_SIZE 14
#define NO_TIMESTAMP (-1)
#define RECORD_MIN_BYTES 7
#define GIL_FREE_BYTES (256 << 10)

/* ---- numbers ---- */

static inline uint32_t
be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline int32_t
be_int32(const uint8_t *p)
{
    return (int32_t)be32(p);
}

static inline int64_t
be_int64(const uint8_t *p)
{
    return (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4));
}

static inline int16_t
be_int16(const uint8_t *p)
{
    return (int16_t)((uint16_t)p[0] << 8 | p[1]);
}

/* A base-128 number of at most `most` bytes; 0 where it runs past the end or is too long. */
static inline int
read_base128(const uint8_t **cursor, const uint8_t *end, int most, uint64_t *value)
{
    const uint8_t *p = *cursor;
    if (p < end && *p < 0x80) {
        *value = *p;
        *cursor = p + 1;
        return 1;
    }
    uint64_t raw = 0;
    for (int i = 0; i < most && p < end; i++) {
        uint8_t byte = *p++;
        raw |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            *value = raw;
            *cursor = p;
            return 1;
        }
    }
    return 0;
}

static inline int
read_varint(const uint8_t **cursor, const uint8_t *end, int32_t *value)
{
    uint64_t wide;
    if (!read_base128(cursor, end, 5, &wide)) {
        return 0;
    }
    uint32_t raw = (uint32_t)wide;
    *value = (int32_t)(raw >> 1 ^ (0u - (raw & 1)));
    return 1;
}

static inline int
read_varlong(const uint8_t **cursor, const uint8_t *end, int64_t *value)
{
    uint64_t raw;
    if (!read_base128(cursor, end, 10, &raw)) {
        return 0;
    }
    *value = (int64_t)(raw >> 1 ^ (0ull - (raw & 1)));
    return 1;
}

static inline int64_t
wrapping_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* ---- records ---- */

struct record {
    int64_t timestamp_delta;
    const uint8_t *key, *value, *headers, *end;
    int32_t offset_delta, key_length, value_length, header_count;
};

/* A length-prefixed byte string; every negative length is null. */
static inline int
read_span(const uint8_t **cursor, const uint8_t *end, const uint8_t **start, int32_t *length)
{
    if (!read_varint(cursor, end, length)) {
        return 0;
    }
    *start = *cursor;
    if (*length < 0) {
        *length = -1;
        return 1;
    }
    if (*length > end - *cursor) {
        return 0;
    }
    *cursor += *length;
    return 1;
}

static int
headers_fill(const uint8_t *p, const uint8_t *end, int32_t count)
{
    const uint8_t *start;
    int32_t length;
    if (count < 0 || count > end - p) {
        return 0;
    }
    for (int32_t i = 0; i < count; i++) {
        if (!read_span(&p, end, &start, &length) || length < 0 || !read_span(&p, end, &start, &length)) {
            return 0;
        }
    }
    return p == end;
}

static inline int
read_record(const uint8_t **cursor, const uint8_t *end, struct record *r)
{
    const uint8_t *p = *cursor;
    int32_t size;
    if (!read_varint(&p, end, &size) || size < 1 || size > end - p) {
        return 0;
    }
    r->end = p + size;
    p++; /* attributes: no bit has a meaning */
    if (!read_varlong(&p, r->end, &r->timestamp_delta) || !read_varint(&p, r->end, &r->offset_delta) ||
        !read_span(&p, r->end, &r->key, &r->key_length) ||
        !read_span(&p, r->end, &r->value, &r->value_length) || !read_varint(&p, r->end, &r->header_count)) {
        return 0;
    }
    r->headers = p;
    *cursor = r->end;
    return r->header_count == 0 ? p == r->end : headers_fill(p, r->end, r->header_count);
}

struct bounds {
    long long min_timestamp, max_timestamp;
    int need_keys;
};

struct verdict {
    int finding;
    int64_t index, largest;
};

static struct verdict
examine(const uint8_t *p, const uint8_t *end, int64_t count, int64_t base_timestamp, const struct bounds *bounds)
{
    struct verdict verdict = {OK, -1, NO_TIMESTAMP};
    struct record r;
    for (int64_t index = 0; index < count; index++) {
        if (!read_record(&p, end, &r)) {
            verdict.finding = MALFORMED;
            verdict.index = index;
            return verdict;
        }
        int64_t timestamp = wrapping_add(base_timestamp, r.timestamp_delta);
        if (timestamp > verdict.largest) {
            verdict.largest = timestamp;
        }
        int finding = OK;
        if (r.offset_delta != index) {
            finding = BAD_OFFSET_DELTA;
        }
        else if (bounds->need_keys && r.key_length < 0) {
            finding = NO_KEY;
        }
        else if ((timestamp < bounds->min_timestamp || timestamp > bounds->max_timestamp) &&
                 timestamp != NO_TIMESTAMP) {
            finding = BAD_TIMESTAMP;
        }
        if (finding != OK && verdict.finding == OK) {
            verdict.finding = finding;
            verdict.index = index;
        }
    }
    if (p != end) {
        verdict.finding = MALFORMED;
        verdict.index = count;
    }
    return verdict;
}

/* ---- batches ---- */

/* Whether a whole batch of magic 2 stands at p: OK and its size, LEGACY and its size, or what is wrong. */
static int
locate(const uint8_t *p, const uint8_t *end, size_t *size)
{
    size_t left = (size_t)(end - p);
    if (left < LOG_OVERHEAD + 5) {
        return PARTIAL;
    }
    int32_t length = be_int32(p + 8);
    uint8_t magic = p[16];
    if (length < LEGACY_MIN_SIZE) {
        return BAD_LENGTH;
    }
    if (magic > 2) {
        return BAD_MAGIC;
    }
    if ((size_t)length > left - LOG_OVERHEAD) {
        return PARTIAL;
    }
    *size = (size_t)length + LOG_OVERHEAD;
    if (magic < 2) {
        return LEGACY;
    }
    return *size >= HEADER_BYTES ? OK : BAD_LENGTH;
}

static int
crc_holds(const uint8_t *batch, size_t size)
{
    return crc32c(0, batch + CRC_START, size - CRC_START) == be32(batch + 17);
}

static struct verdict
examine_batch(const uint8_t *batch, size_t size, const struct bounds *bounds)
{
    struct verdict verdict = {OK, -1, NO_TIMESTAMP};
    int32_t count = be_int32(batch + 57);
    if (!crc_holds(batch, size)) {
        verdict.finding = BAD_CRC;
    }
    else if (count <= 0 || be_int32(batch + 23) != count - 1) {
        verdict.finding = BAD_COUNT;
    }
    else if (batch[22] & 7) {
        verdict.finding = COMPRESSED;
    }
    else {
        return examine(batch + HEADER_BYTES, batch + size, count, be_int64(batch + 27), bounds);
    }
    return verdict;
}

/* Batches found, in an array that starts on the stack. */
struct batch {
    Py_ssize_t set;
    size_t position;
    struct verdict verdict;
    int has_meta;
};

struct batches {
    struct batch *items, first[8];
    size_t count, room;
};

static struct batch *
add_batch(struct batches *found)
{
    if (found->count == found->room) {
        size_t room = found->room * 4;
        struct batch *items = found->items == found->first ? NULL : found->items;
        items = realloc(items, room * sizeof(struct batch));
        if (items == NULL) {
            return NULL;
        }
        if (found->items == found->first) {
            memcpy(items, found->first, sizeof(found->first));
        }
        found->items = items;
        found->room = room;
    }
    return &found->items[found->count++];
}

static void
batches_init(struct batches *found)
{
    found->items = found->first;
    found->count = 0;
    found->room = sizeof(found->first) / sizeof(found->first[0]);
}

static void
batches_free(struct batches *found)
{
    if (found->items != found->first) {
        free(found->items);
    }
}

static int
validate_set(const uint8_t *data, const uint8_t *end, Py_ssize_t set, const struct bounds *bounds,
             struct batches *found)
{
    const uint8_t *p = data;
    for (;;) {
        size_t size = 0;
        int finding = locate(p, end, &size);
        if (finding == PARTIAL) {
            return 1;
        }
        struct batch *batch = add_batch(found);
        if (batch == NULL) {
            return 0;
        }
        batch->set = set;
        batch->position = (size_t)(p - data);
        batch->has_meta = finding == OK;
        if (finding == OK) {
            batch->verdict = examine_batch(p, size, bounds);
        }
        else {
            batch->verdict = (struct verdict){finding, -1, NO_TIMESTAMP};
            if (finding != LEGACY) {
                return 1;
            }
        }
        p += size;
    }
}

/* ---- Python objects ---- */

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
        if (!validate_set(data, data + views[i].len, i, bounds, found)) {
            return 0;
        }
    }
    return 1;
}

static PyObject *
findings_of(const struct batches *found, const Py_buffer *views, Py_ssize_t count, PyTypeObject *type)
{
    PyObject *result = PyList_New(count);
    if (result == NULL) {
        return NULL;
    }
    size_t next = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *set = PyList_New(0);
        if (set == NULL || PyList_SetItem(result, i, set) < 0) {
            Py_DECREF(result);
            return NULL;
        }
        for (; next < found->count && found->items[next].set == i; next++) {
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
    if (!check_args("validate", nargs, 5, 5) || !is_meta_type(args[1]) ||
        !as_int64(args[2], &bounds.min_timestamp) || !as_int64(args[3], &bounds.max_timestamp)) {
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
    result = whole ? findings_of(&found, views, count, (PyTypeObject *)args[1]) : PyErr_NoMemory();
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

static int
scan(const uint8_t *data, const uint8_t *end, size_t *position, struct batches *found)
{
    const uint8_t *p = data + *position;
    int finding = OK;
    while (p < end) {
        size_t size = 0;
        finding = locate(p, end, &size);
        if (finding == OK && !crc_holds(p, size)) {
            finding = BAD_CRC;
        }
        if (finding != OK) {
            break;
        }
        struct batch *batch = add_batch(found);
        if (batch == NULL) {
            return -1;
        }
        batch->position = (size_t)(p - data);
        p += size;
    }
    *position = (size_t)(p - data);
    return finding;
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

/* ---- walk ---- */

/* Fills the columns; gives the index of the malformed record, `count` where bytes are left over, or -1. */
static int64_t
walk(const uint8_t *data, const uint8_t *p, const uint8_t *end, int64_t count, int64_t *columns)
{
    struct record r;
    for (int64_t i = 0; i < count; i++) {
        if (!read_record(&p, end, &r)) {
            return i;
        }
        columns[OFFSET_DELTA * count + i] = r.offset_delta;
        columns[TIMESTAMP_DELTA * count + i] = r.timestamp_delta;
        columns[KEY_POSITION * count + i] = r.key - data;
        columns[KEY_LENGTH * count + i] = r.key_length;
        columns[VALUE_POSITION * count + i] = r.value - data;
        columns[VALUE_LENGTH * count + i] = r.value_length;
        columns[HEADERS_POSITION * count + i] = r.headers - data;
        columns[HEADERS_LENGTH * count + i] = r.end - r.headers;
        columns[HEADER_COUNT * count + i] = r.header_count;
    }
    return p == end ? -1 : count;
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

/* ---- build ---- */

/* Bytes that grow; `failed` once memory ran out. */
struct output {
    uint8_t *bytes;
    size_t size, room;
    int failed;
};

static uint8_t *
grow(struct output *out, size_t more)
{
    if (out->failed || more > PY_SSIZE_T_MAX - out->size) {
        out->failed = 1;
        return NULL;
    }
    if (out->size + more > out->room) {
        size_t room = (out->size + more) + (out->size + more) / 2 + 256;
        uint8_t *bytes = realloc(out->bytes, room);
        if (bytes == NULL) {
            out->failed = 1;
            return NULL;
        }
        out->bytes = bytes;
        out->room = room;
    }
    uint8_t *place = out->bytes + out->size;
    out->size += more;
    return place;
}

static void
put_bytes(struct output *out, const void *bytes, size_t length)
{
    uint8_t *place = grow(out, length);
    if (place != NULL && length > 0) {
        memcpy(place, bytes, length);
    }
}

static size_t
varint_size(int64_t value)
{
    uint64_t raw = (uint64_t)value << 1 ^ (0ull - ((uint64_t)value >> 63));
    size_t size = 1;
    while (raw > 0x7F) {
        raw >>= 7;
        size++;
    }
    return size;
}

static void
put_varint(struct output *out, int64_t value)
{
    uint8_t *place = grow(out, varint_size(value));
    if (place == NULL) {
        return;
    }
    uint64_t raw = (uint64_t)value << 1 ^ (0ull - ((uint64_t)value >> 63));
    while (raw > 0x7F) {
        *place++ = (uint8_t)(raw | 0x80);
        raw >>= 7;
    }
    *place = (uint8_t)raw;
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

static void
put_room(struct output *out, Py_ssize_t room)
{
    uint8_t *place = grow(out, (size_t)room);
    if (place != NULL && room > 0) {
        memset(place, 0, (size_t)room);
    }
}

static int
span_fits(const Py_buffer *buffer, int64_t position, int64_t length)
{
    return length < 0 || (position >= 0 && position <= buffer->len && length <= buffer->len - position);
}

static size_t
span_size(int64_t length)
{
    return length < 0 ? 1 : varint_size(length) + (size_t)length;
}

static void
put_span(struct output *out, const Py_buffer *buffer, int64_t position, int64_t length)
{
    put_varint(out, length < 0 ? -1 : length);
    if (length > 0) {
        put_bytes(out, (const uint8_t *)buffer->buf + position, (size_t)length);
    }
}

/* Writes what the columns describe; 0 where a span leaves its buffer or a number is out of range. */
static int
build(const int64_t *columns, Py_ssize_t count, const Py_buffer *keys, const Py_buffer *values,
      const Py_buffer *headers, struct output *out)
{
    for (Py_ssize_t i = 0; i < count && !out->failed; i++) {
        int64_t row[COLUMNS];
        for (int c = 0; c < COLUMNS; c++) {
            memcpy(&row[c], &columns[c * count + i], sizeof(int64_t));
        }
        if (row[OFFSET_DELTA] < INT32_MIN || row[OFFSET_DELTA] > INT32_MAX || row[HEADER_COUNT] < 0 ||
            row[HEADER_COUNT] > INT32_MAX || row[HEADERS_LENGTH] < 0 ||
            !span_fits(keys, row[KEY_POSITION], row[KEY_LENGTH]) ||
            !span_fits(values, row[VALUE_POSITION], row[VALUE_LENGTH]) ||
            !span_fits(headers, row[HEADERS_POSITION], row[HEADERS_LENGTH])) {
            return 0;
        }
        size_t size = 1 + varint_size(row[TIMESTAMP_DELTA]) + varint_size(row[OFFSET_DELTA]) +
                      span_size(row[KEY_LENGTH]) + span_size(row[VALUE_LENGTH]) +
                      varint_size(row[HEADER_COUNT]) + (size_t)row[HEADERS_LENGTH];
        if (size > INT32_MAX) {
            return 0;
        }
        put_varint(out, (int64_t)size);
        put_bytes(out, "", 1);
        put_varint(out, row[TIMESTAMP_DELTA]);
        put_varint(out, row[OFFSET_DELTA]);
        put_span(out, keys, row[KEY_POSITION], row[KEY_LENGTH]);
        put_span(out, values, row[VALUE_POSITION], row[VALUE_LENGTH]);
        put_varint(out, row[HEADER_COUNT]);
        if (row[HEADERS_LENGTH] > 0) {
            put_bytes(out, (const uint8_t *)headers->buf + row[HEADERS_POSITION], (size_t)row[HEADERS_LENGTH]);
        }
    }
    return 1;
}

static PyObject *
kernel_build(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_ssize_t room = 0;
    if (!check_args("build", nargs, 4, 5) || (nargs > 4 && !as_size(args[4], PY_SSIZE_T_MAX / 2, &room))) {
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
    Py_ssize_t count = buffers[0].len / row_bytes;
    struct output out = {NULL, 0, 0, 0};
    int sound;
    Py_BEGIN_ALLOW_THREADS
    put_room(&out, room);
    sound = build(buffers[0].buf, count, &buffers[1], &buffers[2], &buffers[3], &out);
    Py_END_ALLOW_THREADS
    if (sound) {
        result = as_bytearray(&out);
    }
    else {
        free(out.bytes);
        PyErr_SetString(PyExc_ValueError, "a span leaves its buffer, or a number is out of range");
    }
done:
    while (taken > 0) {
        PyBuffer_Release(&buffers[--taken]);
    }
    return result;
}

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
    put_room(&out, room);
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

static PyMethodDef methods[] = {
    {"crc32c", (PyCFunction)(void (*)(void))kernel_crc32c, METH_FASTCALL, NULL},
    {"validate", (PyCFunction)(void (*)(void))kernel_validate, METH_FASTCALL, NULL},
    {"check_records", (PyCFunction)(void (*)(void))kernel_check_records, METH_FASTCALL, NULL},
    {"scan_segment", (PyCFunction)(void (*)(void))kernel_scan_segment, METH_FASTCALL, NULL},
    {"walk", (PyCFunction)(void (*)(void))kernel_walk, METH_FASTCALL, NULL},
    {"build", (PyCFunction)(void (*)(void))kernel_build, METH_FASTCALL, NULL},
    {"encode", (PyCFunction)(void (*)(void))kernel_encode, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_kernel",
    .m_doc = "The native record kernel; kernel_py.py describes its functions.",
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
