/* The batch on the wire, frames v1 and v2: as edge_ldp/device/frame.py lays it out.
 * docs/design.md, Messages. */
#include "eldp.h"

/* Write a number, little-endian; return the place after it. */
static uint8_t *put(uint8_t *at, uint32_t number, int size)
{
    for (; size > 0; size--, number >>= 8) {
        *at++ = (uint8_t)(number & 0xFF);
    }
    return at;
}

eldp_status eldp_frame_encode(uint8_t stream, uint32_t series, uint32_t batch, uint32_t epoch,
                              uint32_t tag, const uint32_t *slots, const uint16_t *codes,
                              size_t count, uint8_t *bytes, size_t capacity)
{
    const size_t head = series ? ELDP_FRAME_HEAD_BYTES : ELDP_FRAME_V1_HEAD_BYTES;
    if (!series && tag) {
        return ELDP_SERIES;
    }
    if (count < 1 || count > ELDP_FRAME_MAX_REPORTS) {
        return ELDP_SLOTS;
    }
    for (size_t at = 1; at < count; at++) { /* rising, so slots[at] - slots[0] does not wrap */
        if (slots[at] <= slots[at - 1] || slots[at] - slots[0] > 0xFFFF) {
            return ELDP_SLOTS;
        }
    }
    if (capacity < head + ELDP_FRAME_PAIR_BYTES * count) {
        return ELDP_STORAGE;
    }
    bytes = put(bytes, 'L' | 'D' << 8, 2);
    bytes = put(bytes, series ? 2 : 1, 2); /* version, flags 0 */
    bytes = put(bytes, stream, 1);
    bytes = put(bytes, series, series ? 4 : 0);
    bytes = put(bytes, batch, 4);
    bytes = put(bytes, epoch, 4);
    bytes = put(bytes, tag, series ? 4 : 0);
    bytes = put(bytes, slots[0], 4);
    bytes = put(bytes, (uint32_t)count, 2);
    for (size_t at = 0; at < count; at++) {
        bytes = put(bytes, slots[at] - slots[0], 2);
        bytes = put(bytes, codes[at], 2);
    }
    return ELDP_OK;
}
