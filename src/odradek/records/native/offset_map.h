/* The newest offset of every key, by a 128-bit keyed hash: what a compaction decides by. Nothing here knows
 * Python, batches or records.
 *
 * A slot has 24 bytes: the hash in 16, then the offset plus one in 8, in the machine's order; an offset plus
 * one of 0 is an empty slot. Slots are probed one after the other from the one that the hash falls on.
 */
#ifndef ODRADEK_OFFSET_MAP_H
#define ODRADEK_OFFSET_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SLOT_BYTES 24
#define SECRET_BYTES 16

struct offset_map {
    uint8_t *slots;
    size_t count;
    uint64_t k0, k1;
    int64_t used, most;
};

static inline uint64_t
le64(const uint8_t *p)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) {
        value = value << 8 | p[i];
    }
    return value;
}

#define ROTL64(x, b) ((x) << (b) | (x) >> (64 - (b)))
#define SIP_ROUND                                                                                              \
    do {                                                                                                       \
        v0 += v1;                                                                                              \
        v1 = ROTL64(v1, 13) ^ v0;                                                                              \
        v0 = ROTL64(v0, 32);                                                                                   \
        v2 += v3;                                                                                              \
        v3 = ROTL64(v3, 16) ^ v2;                                                                              \
        v0 += v3;                                                                                              \
        v3 = ROTL64(v3, 21) ^ v0;                                                                              \
        v2 += v1;                                                                                              \
        v1 = ROTL64(v1, 17) ^ v2;                                                                              \
        v2 = ROTL64(v2, 32);                                                                                   \
    } while (0)

/* SipHash-2-4 with 128 bits: without the secret nobody can make two keys meet. */
static void
siphash(const struct offset_map *map, const uint8_t *data, size_t size, uint64_t hash[2])
{
    uint64_t v0 = map->k0 ^ 0x736f6d6570736575ull;
    uint64_t v1 = map->k1 ^ 0x646f72616e646f6dull ^ 0xee;
    uint64_t v2 = map->k0 ^ 0x6c7967656e657261ull;
    uint64_t v3 = map->k1 ^ 0x7465646279746573ull;
    size_t whole = size & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t m = le64(data + i);
        v3 ^= m;
        SIP_ROUND;
        SIP_ROUND;
        v0 ^= m;
    }
    uint64_t last = (uint64_t)size << 56;
    for (size_t i = whole; i < size; i++) {
        last |= (uint64_t)data[i] << 8 * (i - whole);
    }
    v3 ^= last;
    SIP_ROUND;
    SIP_ROUND;
    v0 ^= last;
    v2 ^= 0xee;
    for (int i = 0; i < 4; i++) {
        SIP_ROUND;
    }
    hash[0] = v0 ^ v1 ^ v2 ^ v3;
    v1 ^= 0xdd;
    for (int i = 0; i < 4; i++) {
        SIP_ROUND;
    }
    hash[1] = v0 ^ v1 ^ v2 ^ v3;
}

/* A key's hash and the first of its slots. Slots lie anywhere in a map much larger than the caches: who has
 * several keys asks for all before it looks at the first, and the memory comes meanwhile. */
struct sought {
    uint64_t hash[2];
    size_t first;
};

static inline void
seek(const struct offset_map *map, const uint8_t *key, size_t size, struct sought *sought)
{
    siphash(map, key, size, sought->hash);
    sought->first = map->count == 0 ? 0 : (size_t)(sought->hash[0] % map->count);
#if defined(__GNUC__)
    if (map->count != 0) {
        __builtin_prefetch(map->slots + sought->first * SLOT_BYTES);
        __builtin_prefetch(map->slots + sought->first * SLOT_BYTES + SLOT_BYTES - 1);
    }
#endif
}

/* The slot of a key, or the empty one where it belongs; NULL where the map is full of other keys. */
static uint8_t *
find_slot(const struct offset_map *map, const struct sought *sought, uint64_t *stored)
{
    size_t at = sought->first;
    for (size_t i = 0; i < map->count; i++) {
        uint8_t *slot = map->slots + at * SLOT_BYTES;
        memcpy(stored, slot + 16, sizeof(*stored));
        if (*stored == 0 || memcmp(slot, sought->hash, 16) == 0) {
            return slot;
        }
        at = at + 1 == map->count ? 0 : at + 1;
    }
    return NULL;
}

/* Puts the newest offset of a key; 0 where the map holds as many keys as it may. */
static int
put_offset(struct offset_map *map, const struct sought *sought, int64_t offset)
{
    uint64_t stored;
    if (map->used >= map->most) {
        return 0;
    }
    uint8_t *slot = find_slot(map, sought, &stored);
    if (slot == NULL) {
        return 0;
    }
    if (stored == 0) {
        memcpy(slot, sought->hash, 16);
        map->used++;
    }
    stored = (uint64_t)offset + 1;
    memcpy(slot + 16, &stored, sizeof(stored));
    return 1;
}

/* The newest offset of a key, -1 where the map does not know it. */
static int64_t
newest_offset(const struct offset_map *map, const struct sought *sought)
{
    uint64_t stored;
    const uint8_t *slot = find_slot(map, sought, &stored);
    return slot == NULL || stored == 0 ? -1 : (int64_t)(stored - 1);
}

#endif
