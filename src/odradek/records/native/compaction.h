/* Compaction of batches of magic 2: keys into an offset map, and the records that stay into an output.
 *
 * Batches that need more than their own bytes to be judged (compressed, of transactions, of magic 0 or 1) end
 * a run over a chunk; the caller handles them and continues after them. Nothing here knows Python.
 */
#ifndef ODRADEK_COMPACTION_H
#define ODRADEK_COMPACTION_H

#include "offset_map.h"
#include "read.h"
#include "write.h"

#define TRANSACTIONAL_FLAG 0x10
#define DELETE_HORIZON_FLAG 0x40
#define CODEC_MASK 0x07
/* A record whose time counts from the delete horizon may grow by a time delta of 10 bytes and a longer length. */
#define RECORD_GROWTH_BYTES 14

static inline void
put_be16(uint8_t *p, uint16_t value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static inline void
put_be32(uint8_t *p, uint32_t value)
{
    put_be16(p, (uint16_t)(value >> 16));
    put_be16(p + 2, (uint16_t)value);
}

static inline void
put_be64(uint8_t *p, uint64_t value)
{
    put_be32(p, (uint32_t)(value >> 32));
    put_be32(p + 4, (uint32_t)value);
}

/* ---- keys ---- */

/* Some records read ahead, whose slots are on their way. */
#define AHEAD 16

struct ahead {
    struct record records[AHEAD];
    struct sought sought[AHEAD];
    int count, malformed;
};

static void
read_ahead(const uint8_t **cursor, const uint8_t *end, int64_t left, const struct offset_map *map,
           struct ahead *ahead)
{
    ahead->count = 0;
    ahead->malformed = 0;
    while (ahead->count < AHEAD && ahead->count < left) {
        struct record *r = &ahead->records[ahead->count];
        if (!read_record(cursor, end, r)) {
            ahead->malformed = 1;
            return;
        }
        if (r->key_length >= 0) {
            seek(map, r->key, (size_t)r->key_length, &ahead->sought[ahead->count]);
        }
        ahead->count++;
    }
}

/* Puts the keys of records from an offset on; OK, FULL, or MALFORMED. */
static int
map_records(const uint8_t *p, const uint8_t *end, int64_t count, int64_t base_offset, int64_t start_offset,
            struct offset_map *map)
{
    struct ahead ahead;
    for (int64_t i = 0; i < count; i += ahead.count) {
        read_ahead(&p, end, count - i, map, &ahead);
        for (int j = 0; j < ahead.count; j++) {
            const struct record *r = &ahead.records[j];
            int64_t offset = wrapping_add(base_offset, r->offset_delta);
            if (r->key_length >= 0 && offset >= start_offset && !put_offset(map, &ahead.sought[j], offset)) {
                return FULL;
            }
        }
        if (ahead.malformed) {
            return MALFORMED;
        }
    }
    return p == end ? OK : MALFORMED;
}

/* Whether a batch of magic 2 stands at p that can be judged by its own bytes: OK, or why not. */
static int
locate_plain(const uint8_t *p, const uint8_t *end, size_t *size, int transactional_too)
{
    int finding = locate(p, end, size);
    if (finding != OK) {
        return finding;
    }
    if (!crc_holds(p, *size)) {
        return BAD_CRC;
    }
    int flags = be_int16(p + 21);
    if (flags & CONTROL_FLAG || (flags & TRANSACTIONAL_FLAG && !transactional_too)) {
        return TRANSACTIONAL;
    }
    return flags & CODEC_MASK ? COMPRESSED : OK;
}

static int
map_batches(const uint8_t *data, const uint8_t *end, size_t *position, int64_t start_offset,
            struct offset_map *map, int64_t *latest)
{
    const uint8_t *p = data + *position;
    int finding = OK;
    while (p < end) {
        size_t size = 0;
        finding = locate_plain(p, end, &size, 0);
        if (finding == OK || finding == COMPRESSED || finding == TRANSACTIONAL) {
            int64_t last_offset = wrapping_add(be_int64(p), be_int32(p + 23));
            if (last_offset < start_offset) {
                finding = OK;
            }
            else if (finding == OK) {
                finding = map_records(p + HEADER_BYTES, p + size, be_int32(p + 57), be_int64(p), start_offset, map);
                if (finding == OK) {
                    *latest = last_offset;
                }
            }
        }
        if (finding != OK) {
            break;
        }
        p += size;
    }
    *position = (size_t)(p - data);
    return finding;
}

/* ---- records that stay ---- */

struct retention {
    struct offset_map map;
    int64_t latest_offset; /* above it nothing was looked at: everything stays */
    int64_t now_ms;
    int64_t horizon_ms; /* of tombstones that are seen here for the first time */
    const uint8_t *keep_empty; /* last offsets, in the machine's order, of batches that stay without records */
    size_t keep_empty_count;
};

/* What of a batch stays, and the header fields that follow from it. */
struct survivors {
    int64_t count, kept, base_timestamp, max_timestamp;
    int attributes;
    int rewritten;
};

static inline int
stays(const struct retention *rules, const struct record *r, const struct sought *sought, int64_t offset,
      int keep_tombstones)
{
    if (offset > rules->latest_offset) {
        return 1;
    }
    return r->key_length >= 0 && (r->value_length >= 0 || keep_tombstones) &&
           offset >= newest_offset(&rules->map, sought);
}

static inline int64_t
time_of(const struct survivors *batch, int64_t base_timestamp, int64_t stamp, int64_t delta)
{
    return batch->attributes & LOG_APPEND_TIME_FLAG ? stamp : wrapping_add(base_timestamp, delta);
}

/* Marks the records that stay in `flags`, a byte each, and finds the new header; OK or MALFORMED. */
static int
judge(const uint8_t *p, const uint8_t *end, int64_t base_offset, int64_t base_timestamp, int64_t stamp,
      const struct retention *rules, uint8_t *flags, struct survivors *batch)
{
    int has_horizon = (batch->attributes & DELETE_HORIZON_FLAG) != 0;
    int keep_tombstones = !has_horizon || rules->now_ms < base_timestamp;
    int tombstones = 0;
    struct ahead ahead;
    batch->kept = 0;
    batch->max_timestamp = batch->attributes & LOG_APPEND_TIME_FLAG ? stamp : NO_TIMESTAMP;
    for (int64_t i = 0; i < batch->count; i += ahead.count) {
        read_ahead(&p, end, batch->count - i, &rules->map, &ahead);
        if (ahead.malformed) {
            return MALFORMED;
        }
        for (int j = 0; j < ahead.count; j++) {
            const struct record *r = &ahead.records[j];
            int64_t offset = wrapping_add(base_offset, r->offset_delta);
            flags[i + j] = (uint8_t)stays(rules, r, &ahead.sought[j], offset, keep_tombstones);
            if (!flags[i + j]) {
                continue;
            }
            int64_t timestamp = time_of(batch, base_timestamp, stamp, r->timestamp_delta);
            if (batch->kept++ == 0) {
                batch->base_timestamp = timestamp;
            }
            if (timestamp > batch->max_timestamp) {
                batch->max_timestamp = timestamp;
            }
            tombstones |= r->value_length < 0;
        }
    }
    batch->rewritten = batch->kept < batch->count;
    if (has_horizon) {
        batch->base_timestamp = base_timestamp;
    }
    else if (tombstones) {
        batch->base_timestamp = rules->horizon_ms;
        batch->attributes |= DELETE_HORIZON_FLAG;
        batch->rewritten = 1;
    }
    return p == end ? OK : MALFORMED;
}

/* Writes the marked records with times from the new base on; there is room for their growth. */
static uint8_t *
write_survivors(const uint8_t *p, const uint8_t *end, int64_t base_timestamp, int64_t stamp,
                const uint8_t *flags, const struct survivors *batch, uint8_t *place)
{
    struct record r;
    for (int64_t i = 0; i < batch->count; i++) {
        if (!read_record(&p, end, &r)) {
            break;
        }
        if (!flags[i]) {
            continue;
        }
        int64_t timestamp = time_of(batch, base_timestamp, stamp, r.timestamp_delta);
        int64_t delta = (int64_t)((uint64_t)timestamp - (uint64_t)batch->base_timestamp);
        size_t rest = (size_t)(r.end - r.after_timestamp);
        place = write_varint(place, (int64_t)(1 + varint_size(delta) + rest));
        *place++ = 0; /* attributes */
        place = write_varint(place, delta);
        memcpy(place, r.after_timestamp, rest);
        place += rest;
    }
    return place;
}

static void
seal_batch(uint8_t *batch, size_t size)
{
    put_be32(batch + 8, (uint32_t)(size - LOG_OVERHEAD));
    put_be32(batch + 17, crc32c(0, batch + CRC_START, size - CRC_START));
}

/* A batch without records, in place of one whose last offset and sequence are still needed. */
static void
write_empty(const uint8_t *from, uint8_t *place)
{
    memcpy(place, from, HEADER_BYTES);
    put_be16(place + 21, (uint16_t)(be_int16(from + 21) & (LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG)));
    put_be64(place + 27, (uint64_t)(int64_t)NO_TIMESTAMP);
    put_be32(place + 57, 0);
    seal_batch(place, HEADER_BYTES);
}

static int
is_kept_empty(const struct retention *rules, int64_t last_offset)
{
    size_t low = 0, high = rules->keep_empty_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int64_t value;
        memcpy(&value, rules->keep_empty + middle * sizeof(value), sizeof(value));
        if (value == last_offset) {
            return 1;
        }
        if (value < last_offset) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return 0;
}

/* A byte for every record of the largest batch so far. */
struct scratch {
    uint8_t *flags;
    size_t room;
};

static int
make_flags(struct scratch *scratch, int64_t count)
{
    if ((size_t)count > scratch->room) {
        uint8_t *flags = realloc(scratch->flags, (size_t)count);
        if (flags == NULL) {
            return 0;
        }
        scratch->flags = flags;
        scratch->room = (size_t)count;
    }
    return 1;
}

/* Whether a batch can hold as many records as it says, so that memory may be asked for by that number. */
static int
can_hold(int64_t count, size_t bytes)
{
    return count >= 0 && (uint64_t)count <= bytes / RECORD_MIN_BYTES;
}

/* Judges one plain batch and writes what stays of it; OK, MALFORMED, NO_ROOM, or -1 without memory. */
static int
retain_batch(const uint8_t *p, size_t size, const struct retention *rules, struct scratch *scratch,
             uint8_t **place, const uint8_t *end)
{
    struct survivors batch = {.count = be_int32(p + 57), .attributes = be_int16(p + 21)};
    int64_t base_offset = be_int64(p), base_timestamp = be_int64(p + 27), stamp = be_int64(p + 35);
    const uint8_t *records = p + HEADER_BYTES, *records_end = p + size;
    if (!can_hold(batch.count, size - HEADER_BYTES)) {
        return MALFORMED;
    }
    if ((size_t)(end - *place) < size + (size_t)batch.count * RECORD_GROWTH_BYTES) {
        return NO_ROOM;
    }
    if (!make_flags(scratch, batch.count)) {
        return -1;
    }
    int finding =
        judge(records, records_end, base_offset, base_timestamp, stamp, rules, scratch->flags, &batch);
    if (finding != OK) {
        return finding;
    }
    if (batch.kept == 0) {
        if (is_kept_empty(rules, wrapping_add(base_offset, be_int32(p + 23)))) {
            write_empty(p, *place);
            *place += HEADER_BYTES;
        }
    }
    else if (!batch.rewritten) {
        memcpy(*place, p, size);
        *place += size;
    }
    else {
        uint8_t *start = *place;
        memcpy(start, p, HEADER_BYTES);
        uint8_t *after = write_survivors(records, records_end, base_timestamp, stamp, scratch->flags, &batch,
                                         start + HEADER_BYTES);
        put_be16(start + 21, (uint16_t)batch.attributes);
        put_be64(start + 27, (uint64_t)batch.base_timestamp);
        put_be64(start + 35, (uint64_t)batch.max_timestamp);
        put_be32(start + 57, (uint32_t)batch.kept);
        seal_batch(start, (size_t)(after - start));
        *place = after;
    }
    return OK;
}

/* Goes over the plain batches of a chunk, or over one that may be of a transaction. */
static int
retain_batches(const uint8_t *data, const uint8_t *end, size_t *position, const struct retention *rules, int one,
               uint8_t **place, const uint8_t *room_end)
{
    struct scratch scratch = {NULL, 0};
    const uint8_t *p = data + *position;
    int finding = OK;
    while (p < end) {
        size_t size = 0;
        finding = locate_plain(p, end, &size, one);
        if (finding == OK) {
            finding = retain_batch(p, size, rules, &scratch, place, room_end);
        }
        if (finding != OK) {
            break;
        }
        p += size;
        if (one) {
            break;
        }
    }
    free(scratch.flags);
    *position = (size_t)(p - data);
    return finding;
}

/* ---- indexes ---- */

struct index_state {
    int64_t position, interval, since, largest, largest_offset;
};

/* The next entry of a segment's indexes that whole batches of magic 2 give rise to: (last offset, position,
 * largest timestamp so far, its offset). 0 at the end of the batches. */
static int
next_index_entry(const uint8_t **cursor, const uint8_t *end, struct index_state *state, int64_t entry[4])
{
    size_t size = 0;
    while (*cursor < end && locate(*cursor, end, &size) == OK) {
        const uint8_t *p = *cursor;
        int64_t last_offset = wrapping_add(be_int64(p), be_int32(p + 23)), timestamp = be_int64(p + 35);
        int64_t position = state->position;
        if (timestamp > state->largest) {
            state->largest = timestamp;
            state->largest_offset = last_offset;
        }
        *cursor = p + size;
        state->position += (int64_t)size;
        if (state->since > state->interval) {
            state->since = (int64_t)size;
            entry[0] = last_offset;
            entry[1] = position;
            entry[2] = state->largest;
            entry[3] = state->largest_offset;
            return 1;
        }
        state->since += (int64_t)size;
    }
    return 0;
}

#endif
