/* Reading batches and records of magic 2 from plain bytes: where they are, whether they are sound, what they
 * hold. Every read is checked against the end of the buffer first. Nothing here knows Python. */
#ifndef ODRADEK_READ_H
#define ODRADEK_READ_H

#include <stdlib.h>

#include "crc32c.h"

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
    TRANSACTIONAL,
    FULL,
    NO_ROOM,
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
#define LOG_APPEND_TIME_FLAG 0x08
#define CONTROL_FLAG 0x20
#define RECORD_MIN_BYTES 7

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
    if (end - p >= 2) { /* nearly every number has one byte or two */
        if (p[0] < 0x80) {
            *value = p[0];
            *cursor = p + 1;
            return 1;
        }
        if (p[1] < 0x80) {
            *value = (uint64_t)(p[0] & 0x7F) | (uint64_t)p[1] << 7;
            *cursor = p + 2;
            return 1;
        }
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
    const uint8_t *after_timestamp, *key, *value, *headers, *end;
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
    if (!read_varlong(&p, r->end, &r->timestamp_delta)) {
        return 0;
    }
    r->after_timestamp = p;
    if (!read_varint(&p, r->end, &r->offset_delta) || !read_span(&p, r->end, &r->key, &r->key_length) ||
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

static inline int
outside(const struct record *r, int64_t timestamp, const struct bounds *bounds)
{
    if (bounds->need_keys && r->key_length < 0) {
        return NO_KEY;
    }
    if ((timestamp < bounds->min_timestamp || timestamp > bounds->max_timestamp) && timestamp != NO_TIMESTAMP) {
        return BAD_TIMESTAMP;
    }
    return OK;
}

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
        int finding = r.offset_delta != index ? BAD_OFFSET_DELTA : outside(&r, timestamp, bounds);
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

/* A record that lacks a key, or whose time is out of bounds. */
struct outsider {
    int64_t finding, index, offset_delta, timestamp;
};

/* Counts all outsiders and keeps the first `room`; gives the index of a malformed record, or -1. */
static int64_t
find_outsiders(const uint8_t *p, const uint8_t *end, int64_t count, int64_t base_timestamp,
               int64_t least_delta, const struct bounds *bounds, struct outsider *first, int64_t room,
               int64_t *no_keys, int64_t *bad_timestamps)
{
    struct record r;
    for (int64_t index = 0; index < count; index++) {
        if (!read_record(&p, end, &r)) {
            return index;
        }
        int64_t timestamp = wrapping_add(base_timestamp, r.timestamp_delta);
        int finding = outside(&r, timestamp, bounds);
        if (finding == OK || r.offset_delta < least_delta) {
            continue;
        }
        int64_t found = *no_keys + *bad_timestamps;
        if (found < room) {
            first[found] = (struct outsider){finding, index, r.offset_delta, timestamp};
        }
        *(finding == NO_KEY ? no_keys : bad_timestamps) += 1;
    }
    return p == end ? -1 : count < 0 ? 0 : count;
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
    size_t set;
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
validate_set(const uint8_t *data, const uint8_t *end, size_t set, const struct bounds *bounds,
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

#endif
