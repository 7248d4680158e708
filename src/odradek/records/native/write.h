/* Writing records of magic 2: from the columns of a walk, and into bytes that grow. Nothing here knows Python. */
#ifndef ODRADEK_WRITE_H
#define ODRADEK_WRITE_H

#include "read.h"

/* Bytes that grow; `failed` once memory ran out. */
struct output {
    uint8_t *bytes;
    size_t size, room;
    int failed;
};

static uint8_t *
grow(struct output *out, size_t more)
{
    if (out->failed || more > PTRDIFF_MAX - out->size) {
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

static inline uint64_t
zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (0ull - ((uint64_t)value >> 63));
}

static inline size_t
varint_size(int64_t value)
{
    uint64_t raw = zigzag(value);
    size_t size = 1;
    while (raw > 0x7F) {
        raw >>= 7;
        size++;
    }
    return size;
}

/* Writes where there is room for it; gives the place after it. */
static inline uint8_t *
write_varint(uint8_t *place, int64_t value)
{
    uint64_t raw = zigzag(value);
    while (raw > 0x7F) {
        *place++ = (uint8_t)(raw | 0x80);
        raw >>= 7;
    }
    *place++ = (uint8_t)raw;
    return place;
}

struct span_source {
    const uint8_t *bytes;
    int64_t size;
};

static inline uint8_t *
write_span(uint8_t *place, const struct span_source *buffer, int64_t position, int64_t length)
{
    place = write_varint(place, length < 0 ? -1 : length);
    if (length > 0) {
        memcpy(place, buffer->bytes + position, (size_t)length);
        place += length;
    }
    return place;
}

static void
put_varint(struct output *out, int64_t value)
{
    uint8_t *place = grow(out, varint_size(value));
    if (place != NULL) {
        write_varint(place, value);
    }
}

static void
put_room(struct output *out, size_t room)
{
    uint8_t *place = grow(out, room);
    if (place != NULL && room > 0) {
        memset(place, 0, room);
    }
}

static int
span_fits(const struct span_source *buffer, int64_t position, int64_t length)
{
    return length < 0 || (position >= 0 && position <= buffer->size && length <= buffer->size - position);
}

static size_t
span_size(int64_t length)
{
    return length < 0 ? 1 : varint_size(length) + (size_t)length;
}

struct sources {
    const int64_t *columns;
    ptrdiff_t count;
    struct span_source keys, values, headers;
};

/* Row i and the size of its record without the length in front; 0 where it describes none. */
static inline size_t
read_row(const struct sources *from, ptrdiff_t i, int64_t row[COLUMNS])
{
    for (int c = 0; c < COLUMNS; c++) {
        memcpy(&row[c], &from->columns[c * from->count + i], sizeof(int64_t));
    }
    if (row[OFFSET_DELTA] < INT32_MIN || row[OFFSET_DELTA] > INT32_MAX || row[HEADER_COUNT] < 0 ||
        row[HEADER_COUNT] > INT32_MAX || row[HEADERS_LENGTH] < 0 ||
        !span_fits(&from->keys, row[KEY_POSITION], row[KEY_LENGTH]) ||
        !span_fits(&from->values, row[VALUE_POSITION], row[VALUE_LENGTH]) ||
        !span_fits(&from->headers, row[HEADERS_POSITION], row[HEADERS_LENGTH])) {
        return 0;
    }
    size_t size = 1 + varint_size(row[TIMESTAMP_DELTA]) + varint_size(row[OFFSET_DELTA]) +
                  span_size(row[KEY_LENGTH]) + span_size(row[VALUE_LENGTH]) +
                  varint_size(row[HEADER_COUNT]) + (size_t)row[HEADERS_LENGTH];
    return size > INT32_MAX ? 0 : size;
}

/* How many bytes the records take; -1 where a row describes none. */
static ptrdiff_t
built_size(const struct sources *from)
{
    size_t total = 0;
    for (ptrdiff_t i = 0; i < from->count; i++) {
        int64_t row[COLUMNS];
        size_t size = read_row(from, i, row);
        if (size == 0) {
            return -1;
        }
        total += varint_size((int64_t)size) + size;
        if (total > PTRDIFF_MAX / 2) {
            return -1;
        }
    }
    return (ptrdiff_t)total;
}

/* Writes the records between place and end; 0 where the columns changed meanwhile and no longer fit. */
static int
build(const struct sources *from, uint8_t *place, const uint8_t *end)
{
    for (ptrdiff_t i = 0; i < from->count; i++) {
        int64_t row[COLUMNS];
        size_t size = read_row(from, i, row);
        if (size == 0 || varint_size((int64_t)size) + size > (size_t)(end - place)) {
            return 0;
        }
        place = write_varint(place, (int64_t)size);
        *place++ = 0; /* attributes */
        place = write_varint(place, row[TIMESTAMP_DELTA]);
        place = write_varint(place, row[OFFSET_DELTA]);
        place = write_span(place, &from->keys, row[KEY_POSITION], row[KEY_LENGTH]);
        place = write_span(place, &from->values, row[VALUE_POSITION], row[VALUE_LENGTH]);
        place = write_varint(place, row[HEADER_COUNT]);
        if (row[HEADERS_LENGTH] > 0) {
            memcpy(place, from->headers.bytes + row[HEADERS_POSITION],
                   (size_t)row[HEADERS_LENGTH]);
            place += row[HEADERS_LENGTH];
        }
    }
    return place == end;
}

#endif
