/* Rows of Apache Arrow's columns into records of magic 2, and to their partitions.
 *
 * What comes in is trusted in nothing: every offset, bit and row number is checked against its buffer before it
 * is followed, in the pass that measures and again in the one that writes. Nothing here knows Python. */
#ifndef ODRADEK_ROWS_H
#define ODRADEK_ROWS_H

#include "write.h"

#define MURMUR_SEED 0x9747B28Cu
#define MURMUR_M 0x5BD1E995u

/* ---- columns ---- */

/* A column of byte strings, or of lists, whose `size` counts the items of the list. Where it is not `present`
 * everything in it is null; without a bitmap nothing is. */
struct arrow_column {
    const uint8_t *offsets, *bytes, *validity;
    int64_t elements, size;
    int present;
};

/* Buffers need not be aligned to what they hold. */
static inline int32_t
int32_at(const uint8_t *numbers, int64_t i)
{
    int32_t value;
    memcpy(&value, numbers + i * 4, sizeof(value));
    return value;
}

static inline void
set_int32(uint8_t *numbers, int64_t i, int32_t value)
{
    memcpy(numbers + i * 4, &value, sizeof(value));
}

/* Where an element is, -1 as the length of a null; 0 where the column does not have it. */
static inline int
locate_element(const struct arrow_column *column, int64_t i, int32_t *start, int32_t *length)
{
    if (!column->present) {
        *start = 0;
        *length = -1;
        return 1;
    }
    if (i < 0 || i >= column->elements) {
        return 0;
    }
    int32_t first = int32_at(column->offsets, i), last = int32_at(column->offsets, i + 1);
    if (first < 0 || last < first || last > column->size) {
        return 0;
    }
    *start = first;
    *length = column->validity != NULL && !(column->validity[i >> 3] >> (i & 7) & 1) ? -1 : last - first;
    return 1;
}

/* ---- partitions ---- */

static inline uint32_t
le32(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* The hash that Kafka's Java client takes of keys. */
static uint32_t
murmur2(const uint8_t *p, size_t size)
{
    uint32_t h = MURMUR_SEED ^ (uint32_t)size;
    for (; size >= 4; p += 4, size -= 4) {
        uint32_t k = le32(p) * MURMUR_M;
        h = h * MURMUR_M ^ (k ^ k >> 24) * MURMUR_M;
    }
    if (size > 0) {
        for (size_t i = 0; i < size; i++) {
            h ^= (uint32_t)p[i] << (8 * i);
        }
        h *= MURMUR_M;
    }
    h = (h ^ h >> 13) * MURMUR_M;
    return h ^ h >> 15;
}

/* The partition of each key, -1 without one; 0 where the column does not have the rows. */
static int
place_keys(const struct arrow_column *keys, int64_t first, int64_t rows, int32_t partition_count, uint8_t *places)
{
    for (int64_t i = 0; i < rows; i++) {
        int32_t start, length;
        if (!locate_element(keys, first + i, &start, &length)) {
            return 0;
        }
        int32_t place = -1;
        if (length >= 0) {
            uint32_t hash = murmur2(length > 0 ? keys->bytes + start : NULL, (size_t)length);
            place = (int32_t)((hash & 0x7FFFFFFF) % (uint32_t)partition_count);
        }
        set_int32(places, i, place);
    }
    return 1;
}

/* A stable counting sort; `ends` is for partition_count numbers. 0 where a place is no partition, or where the
 * places changed between counting and sorting. */
static int
group_rows(const uint8_t *places, int64_t rows, int32_t partition_count, uint8_t *starts, uint8_t *order,
           int32_t *ends)
{
    memset(ends, 0, (size_t)partition_count * sizeof(int32_t));
    for (int64_t i = 0; i < rows; i++) {
        int32_t place = int32_at(places, i);
        if (place < 0 || place >= partition_count) {
            return 0;
        }
        ends[place]++;
    }
    int32_t sum = 0;
    for (int32_t p = 0; p < partition_count; p++) {
        int32_t amount = ends[p];
        set_int32(starts, p, sum);
        ends[p] = sum;
        sum += amount;
    }
    set_int32(starts, partition_count, sum);
    for (int64_t i = 0; i < rows; i++) {
        int32_t place = int32_at(places, i);
        if (place < 0 || place >= partition_count || ends[place] >= int32_at(starts, (int64_t)place + 1)) {
            return 0;
        }
        set_int32(order, ends[place]++, (int32_t)i);
    }
    return 1;
}

/* ---- records ---- */

/* Columns of the same length; row r is element first + r of each. Without an order the rows are numbered
 * through. */
struct table {
    struct arrow_column keys, values, lists, names, contents;
    const uint8_t *order;
    int64_t first, timestamp_delta;
};

/* A row that its columns have; sizes are of what will be written, `size` without the length in front. */
struct row {
    const uint8_t *key, *value;
    int32_t key_length, value_length, header, header_count;
    size_t size;
};

static inline int
take_element(const struct arrow_column *column, int64_t i, const uint8_t **bytes, int32_t *length)
{
    int32_t start;
    if (!locate_element(column, i, &start, length)) {
        return 0;
    }
    *bytes = *length > 0 ? column->bytes + start : NULL;
    return 1;
}

static int
measure_row_headers(const struct table *from, const struct row *row, size_t *size)
{
    const uint8_t *bytes;
    int32_t name, content;
    for (int32_t i = 0; i < row->header_count; i++) {
        if (!take_element(&from->names, (int64_t)row->header + i, &bytes, &name) ||
            !take_element(&from->contents, (int64_t)row->header + i, &bytes, &content)) {
            return 0;
        }
        *size += span_size(name) + span_size(content);
    }
    return 1;
}

/* Number i of the rows, or of the order, as a record at an offset delta; 0 where there is none such. */
static inline int
measure_row(const struct table *from, int64_t i, int64_t offset_delta, struct row *row)
{
    int64_t number = from->order == NULL ? i : int32_at(from->order, i);
    int64_t element = from->first + number;
    if (number < 0 || !take_element(&from->keys, element, &row->key, &row->key_length) ||
        !take_element(&from->values, element, &row->value, &row->value_length) ||
        !locate_element(&from->lists, element, &row->header, &row->header_count)) {
        return 0;
    }
    if (row->header_count < 0) {
        row->header_count = 0;
    }
    row->size = 1 + varint_size(from->timestamp_delta) + varint_size(offset_delta) + span_size(row->key_length) +
                span_size(row->value_length) + varint_size(row->header_count);
    return (row->header_count == 0 || measure_row_headers(from, row, &row->size)) && row->size <= INT32_MAX;
}

/* How far the records of rows start to stop go within a limit, one at least, and how many bytes they take; 0
 * where a row cannot be written. */
static int
measure_rows(const struct table *from, int64_t start, int64_t stop, int64_t limit, int64_t *next, size_t *total)
{
    struct row row;
    *total = 0;
    for (*next = start; *next < stop; ++*next) {
        if (!measure_row(from, *next, *next - start, &row)) {
            return 0;
        }
        size_t size = varint_size((int64_t)row.size) + row.size;
        if (*next > start && (limit < 0 || *total + size > (uint64_t)limit)) {
            return 1;
        }
        *total += size;
        if (*total > PTRDIFF_MAX / 2) {
            return 0;
        }
    }
    return 1;
}

static inline uint8_t *
write_string(uint8_t *place, const uint8_t *bytes, int32_t length)
{
    place = write_varint(place, length);
    if (length > 0) {
        memcpy(place, bytes, (size_t)length);
        place += length;
    }
    return place;
}

/* The place after the headers; NULL where they no longer end at `end`. */
static uint8_t *
write_row_headers(const struct table *from, const struct row *row, uint8_t *place, const uint8_t *end)
{
    const uint8_t *name, *content;
    int32_t name_length, content_length;
    for (int32_t i = 0; i < row->header_count; i++) {
        if (!take_element(&from->names, (int64_t)row->header + i, &name, &name_length) ||
            !take_element(&from->contents, (int64_t)row->header + i, &content, &content_length) ||
            span_size(name_length) + span_size(content_length) > (size_t)(end - place)) {
            return NULL;
        }
        place = write_string(place, name, name_length);
        place = write_string(place, content, content_length);
    }
    return place == end ? place : NULL;
}

/* Writes the records between place and end; 0 where the columns changed meanwhile and no longer fit. */
static int
write_rows(const struct table *from, int64_t start, int64_t stop, uint8_t *place, const uint8_t *end)
{
    struct row row;
    for (int64_t i = start; i < stop; i++) {
        if (!measure_row(from, i, i - start, &row) ||
            varint_size((int64_t)row.size) + row.size > (size_t)(end - place)) {
            return 0;
        }
        place = write_varint(place, (int64_t)row.size);
        const uint8_t *row_end = place + row.size;
        *place++ = 0; /* attributes */
        place = write_varint(place, from->timestamp_delta);
        place = write_varint(place, i - start);
        place = write_string(place, row.key, row.key_length);
        place = write_string(place, row.value, row.value_length);
        place = write_varint(place, row.header_count);
        if (row.header_count > 0) {
            place = write_row_headers(from, &row, place, row_end);
            if (place == NULL) {
                return 0;
            }
        }
    }
    return place == end;
}

#endif
