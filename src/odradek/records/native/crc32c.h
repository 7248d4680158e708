/* CRC-32C (Castagnoli) for the record kernel: the SSE4.2 instruction where the processor has it, eight tables
 * otherwise, chosen once at run time. Nothing here knows Python or records. */
#ifndef ODRADEK_CRC32C_H
#define ODRADEK_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define ODRADEK_CRC_X86 1
#include <nmmintrin.h>
#endif

#define CRC_POLYNOMIAL 0x82F63B78u /* reflected */

/* The instruction takes three cycles but starts one every cycle, so three stretches run side by side and are
 * joined by advancing a CRC over the zeros that stand for the stretches after it. */
#define CRC_LONG 1024
#define CRC_SHORT 128

static uint32_t crc_table[8][256];
static uint32_t crc_over_long[4][256];
static uint32_t crc_over_short[4][256];
static uint32_t (*crc_update)(uint32_t, const uint8_t *, size_t);

static inline uint64_t
load_le64(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

static uint32_t
crc_update_tables(uint32_t crc, const uint8_t *p, size_t n)
{
    while (n >= 8) {
        uint64_t word = load_le64(p) ^ crc;
        crc = crc_table[7][word & 0xFF] ^ crc_table[6][word >> 8 & 0xFF] ^ crc_table[5][word >> 16 & 0xFF] ^
              crc_table[4][word >> 24 & 0xFF] ^ crc_table[3][word >> 32 & 0xFF] ^
              crc_table[2][word >> 40 & 0xFF] ^ crc_table[1][word >> 48 & 0xFF] ^ crc_table[0][word >> 56];
        p += 8;
        n -= 8;
    }
    while (n--) {
        crc = crc >> 8 ^ crc_table[0][(crc ^ *p++) & 0xFF];
    }
    return crc;
}

static inline uint32_t
crc_advance(const uint32_t over[4][256], uint32_t crc)
{
    return over[0][crc & 0xFF] ^ over[1][crc >> 8 & 0xFF] ^ over[2][crc >> 16 & 0xFF] ^ over[3][crc >> 24];
}

#ifdef ODRADEK_CRC_X86
static inline uint64_t
load_64(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

__attribute__((target("sse4.2"))) static inline uint32_t
crc_three(uint32_t crc, const uint8_t *p, size_t stretch, const uint32_t over[4][256])
{
    uint64_t a = crc, b = 0, c = 0;
    const uint8_t *end = p + stretch;
    do {
        a = _mm_crc32_u64(a, load_64(p));
        b = _mm_crc32_u64(b, load_64(p + stretch));
        c = _mm_crc32_u64(c, load_64(p + 2 * stretch));
        p += 8;
    } while (p < end);
    return crc_advance(over, crc_advance(over, (uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
}

__attribute__((target("sse4.2"))) static uint32_t
crc_update_sse42(uint32_t crc, const uint8_t *p, size_t n)
{
    while (n >= 3 * CRC_LONG) {
        crc = crc_three(crc, p, CRC_LONG, crc_over_long);
        p += 3 * CRC_LONG;
        n -= 3 * CRC_LONG;
    }
    while (n >= 3 * CRC_SHORT) {
        crc = crc_three(crc, p, CRC_SHORT, crc_over_short);
        p += 3 * CRC_SHORT;
        n -= 3 * CRC_SHORT;
    }
    uint64_t wide = crc;
    while (n >= 8) {
        wide = _mm_crc32_u64(wide, load_64(p));
        p += 8;
        n -= 8;
    }
    crc = (uint32_t)wide;
    while (n--) {
        crc = _mm_crc32_u8(crc, *p++);
    }
    return crc;
}
#endif

/* The effect of `zeros` zero bytes on every value of each byte of a CRC. A CRC is linear: bits suffice. */
static void
crc_fill_over(uint32_t over[4][256], size_t zeros)
{
    uint32_t of_bit[32];
    for (int bit = 0; bit < 32; bit++) {
        uint32_t crc = 1u << bit;
        for (size_t i = 0; i < zeros; i++) {
            crc = crc >> 8 ^ crc_table[0][crc & 0xFF];
        }
        of_bit[bit] = crc;
    }
    for (int byte = 0; byte < 4; byte++) {
        for (int value = 0; value < 256; value++) {
            uint32_t crc = 0;
            for (int bit = 0; bit < 8; bit++) {
                if (value >> bit & 1) {
                    crc ^= of_bit[8 * byte + bit];
                }
            }
            over[byte][value] = crc;
        }
    }
}

static void
crc_init(void)
{
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t crc = value;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? crc >> 1 ^ CRC_POLYNOMIAL : crc >> 1;
        }
        crc_table[0][value] = crc;
    }
    for (int k = 1; k < 8; k++) {
        for (int value = 0; value < 256; value++) {
            uint32_t crc = crc_table[k - 1][value];
            crc_table[k][value] = crc >> 8 ^ crc_table[0][crc & 0xFF];
        }
    }
    crc_fill_over(crc_over_long, CRC_LONG);
    crc_fill_over(crc_over_short, CRC_SHORT);
    crc_update = crc_update_tables;
#ifdef ODRADEK_CRC_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.2")) {
        crc_update = crc_update_sse42;
    }
#endif
}

static inline uint32_t
crc32c(uint32_t value, const uint8_t *p, size_t n)
{
    return ~crc_update(~value, p, n);
}

#endif
