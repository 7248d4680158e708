/* Records of magic 2 into Apache Arrow's columns: offsets, bytes end to end, bitmaps of what is not null.
 *
 * One pass measures, the other fills what was allocated after it. The second checks everything again, for
 * without the interpreter's lock the bytes may change in between. Nothing here knows Python. */
#ifndef ODRADEK_COLUMNS_H
#define ODRADEK_COLUMNS_H

#include "read.h"

#define MEASURED (-1)
#define TOO_LARGE (-2)

/* The records of one batch; append_time stands for every timestamp where it is not negative. */
struct section {
    const uint8_t *start, *end;
    int64_t count, base_offset, base_timestamp, append_time;
};

/* Which records of which sections are wanted. */
struct reading {
    const struct section *sections;
    int64_t count, first_offset, last_offset;
    int with_headers;
};

/* How much a column holds. */
struct extent {
    int64_t items, bytes, nulls;
};

struct extents {
    struct extent keys, values, lists, names, contents;
};

static inline void
extend(struct extent *extent, int32_t length)
{
    extent->items++;
    if (length < 0) {
        extent->nulls++;
    }
    else {
        extent->bytes += length;
    }
}

static int
measure_headers(const struct record *r, struct extents *extents)
{
    const uint8_t *p = r->headers, *start;
    int32_t name, content;
    for (int32_t i = 0; i < r->header_count; i++) {
        if (!read_span(&p, r->end, &start, &name) || name < 0 || !read_span(&p, r->end, &start, &content)) {
            return 0;
        }
        extend(&extents->names, name);
        extend(&extents->contents, content);
    }
    return 1;
}

static int
measure_section(const struct section *section, const struct reading *reading, struct extents *extents)
{
    const uint8_t *p = section->start;
    struct record r;
    for (int64_t i = 0; i < section->count; i++) {
        if (!read_record(&p, section->end, &r)) {
            return 0;
        }
        int64_t offset = wrapping_add(section->base_offset, r.offset_delta);
        if (offset < reading->first_offset || offset > reading->last_offset) {
            continue;
        }
        extend(&extents->keys, r.key_length);
        extend(&extents->values, r.value_length);
        if (reading->with_headers) {
            extend(&extents->lists, r.header_count > 0 ? 0 : -1);
            if (!measure_headers(&r, extents)) {
                return 0;
            }
        }
    }
    return p == section->end;
}

/* MEASURED, TOO_LARGE for 32-bit offsets, or the number of the section whose records are malformed. */
static int64_t
measure_columns(const struct reading *reading, struct extents *extents)
{
    for (int64_t i = 0; i < reading->count; i++) {
        if (!measure_section(&reading->sections[i], reading, extents)) {
            return i;
        }
        if (extents->keys.bytes > INT32_MAX || extents->values.bytes > INT32_MAX ||
            extents->names.bytes > INT32_MAX || extents->names.items > INT32_MAX ||
            extents->contents.bytes > INT32_MAX) {
            return TOO_LARGE;
        }
    }
    return MEASURED;
}

/* A column to be filled: items + 1 offsets, bytes, and a bitmap of zeros where anything was null. */
struct filling {
    struct extent extent;
    int32_t *offsets;
    uint8_t *bytes, *validity;
    int64_t items, size;
};

struct fillings {
    int64_t *offsets, *timestamps;
    struct filling keys, values, lists, names, contents;
};

static inline int64_t
as_microseconds(int64_t ms)
{
    return ms > INT64_MAX / 1000 ? INT64_MAX : ms < INT64_MIN / 1000 ? INT64_MIN : ms * 1000;
}

/* One more item; 0 where it is more than was measured. */
static inline int
fill_item(struct filling *filling, const uint8_t *bytes, int32_t length)
{
    int64_t i = filling->items;
    if (i >= filling->extent.items) {
        return 0;
    }
    if (length >= 0) {
        if (length > filling->extent.bytes - filling->size) {
            return 0;
        }
        if (length > 0) {
            memcpy(filling->bytes + filling->size, bytes, (size_t)length);
            filling->size += length;
        }
        if (filling->validity != NULL) {
            filling->validity[i >> 3] |= (uint8_t)(1 << (i & 7));
        }
    }
    else if (filling->validity == NULL) {
        return 0;
    }
    filling->offsets[++filling->items] = (int32_t)filling->size;
    return 1;
}

static int
fill_headers(const struct record *r, struct fillings *to)
{
    const uint8_t *p = r->headers, *start;
    int32_t length;
    for (int32_t i = 0; i < r->header_count; i++) {
        if (!read_span(&p, r->end, &start, &length) || length < 0 || !fill_item(&to->names, start, length) ||
            !read_span(&p, r->end, &start, &length) || !fill_item(&to->contents, start, length)) {
            return 0;
        }
    }
    /* The list's own offsets count headers, of which it has no bytes. */
    int64_t i = to->lists.items;
    if (!fill_item(&to->lists, r->headers, r->header_count > 0 ? 0 : -1)) {
        return 0;
    }
    to->lists.offsets[i + 1] = (int32_t)to->names.items;
    return 1;
}

static int
fill_section(const struct section *section, const struct reading *reading, struct fillings *to)
{
    const uint8_t *p = section->start;
    struct record r;
    for (int64_t i = 0; i < section->count; i++) {
        if (!read_record(&p, section->end, &r)) {
            return 0;
        }
        int64_t offset = wrapping_add(section->base_offset, r.offset_delta);
        if (offset < reading->first_offset || offset > reading->last_offset) {
            continue;
        }
        int64_t row = to->keys.items;
        if (!fill_item(&to->keys, r.key, r.key_length) || !fill_item(&to->values, r.value, r.value_length) ||
            (reading->with_headers && !fill_headers(&r, to))) {
            return 0;
        }
        to->offsets[row] = offset;
        to->timestamps[row] = as_microseconds(section->append_time >= 0
                                                  ? section->append_time
                                                  : wrapping_add(section->base_timestamp, r.timestamp_delta));
    }
    return 1;
}

static int
is_filled(const struct filling *filling)
{
    return filling->items == filling->extent.items && filling->size == filling->extent.bytes;
}

/* 0 where the records are no longer those that were measured. */
static int
fill_columns(const struct reading *reading, struct fillings *to)
{
    for (int64_t i = 0; i < reading->count; i++) {
        if (!fill_section(&reading->sections[i], reading, to)) {
            return 0;
        }
    }
    return is_filled(&to->keys) && is_filled(&to->values) && is_filled(&to->lists) && is_filled(&to->names) &&
           is_filled(&to->contents);
}

#endif
