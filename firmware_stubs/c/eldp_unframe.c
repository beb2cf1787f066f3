/* Read frames v1 and v2: the same refusals, at the same bytes, as edge_ldp/device/frame.py. */
#include "eldp.h"

static uint32_t get(const uint8_t *at, int size)
{
    uint32_t number = 0;
    while (size-- > 0) {
        number = number << 8 | at[size];
    }
    return number;
}

static eldp_status refuse(eldp_status reason, size_t where, size_t *offset)
{
    *offset = where;
    return reason;
}

/* Check all but the pairs of a frame with a head of so many bytes. */
static eldp_status check_head(const uint8_t *bytes, size_t size, size_t head, size_t *offset)
{
    if (size < head) {
        return refuse(ELDP_SHORT, size, offset);
    }
    if (bytes[0] != 'L' || bytes[1] != 'D') {
        return refuse(ELDP_MAGIC, 0, offset);
    }
    if (bytes[2] != 1 && bytes[2] != 2) {
        return refuse(ELDP_VERSION, 2, offset);
    }
    if (bytes[3] != 0) {
        return refuse(ELDP_FLAGS, 3, offset);
    }
    if (bytes[2] == 2 && !get(bytes + 5, 4)) {
        return refuse(ELDP_SERIES, 5, offset);
    }
    const uint32_t count = get(bytes + head - 2, 2);
    if (count < 1 || count > ELDP_FRAME_MAX_REPORTS) {
        return refuse(ELDP_COUNT, head - 2, offset);
    }
    if (size != head + ELDP_FRAME_PAIR_BYTES * (size_t)count) {
        return refuse(ELDP_LENGTH, size, offset);
    }
    return ELDP_OK;
}

eldp_status eldp_frame_decode(const uint8_t *bytes, size_t size, eldp_frame *frame, size_t *offset)
{
    const bool has_series = size > 2 && bytes[2] == 2;
    const size_t head = has_series ? ELDP_FRAME_HEAD_BYTES : ELDP_FRAME_V1_HEAD_BYTES;
    const eldp_status status = check_head(bytes, size, head, offset);
    if (status != ELDP_OK) {
        return status;
    }
    const uint32_t first_slot = get(bytes + head - 6, 4);
    uint32_t before = 0;
    for (size_t at = head; at < size; at += ELDP_FRAME_PAIR_BYTES) {
        const uint32_t step = get(bytes + at, 2);
        const bool is_first = at == head;
        if ((is_first ? step != 0 : step <= before) || step > UINT32_MAX - first_slot) {
            return refuse(ELDP_ORDER, at, offset);
        }
        before = step;
    }
    frame->stream = bytes[4];
    frame->series = has_series ? get(bytes + 5, 4) : 0;
    frame->batch = get(bytes + (has_series ? 9 : 5), 4);
    frame->epoch = get(bytes + (has_series ? 13 : 9), 4);
    frame->tag = has_series ? get(bytes + 17, 4) : 0;
    frame->first_slot = first_slot;
    frame->count = (uint16_t)get(bytes + head - 2, 2);
    frame->pairs = bytes + head;
    return ELDP_OK;
}

uint32_t eldp_frame_slot(const eldp_frame *frame, size_t at)
{
    return frame->first_slot + get(frame->pairs + at * ELDP_FRAME_PAIR_BYTES, 2);
}

uint16_t eldp_frame_code(const eldp_frame *frame, size_t at)
{
    return (uint16_t)get(frame->pairs + at * ELDP_FRAME_PAIR_BYTES + 2, 2);
}
