/* Frames; their bytes end where the buffer ends, so that a sanitizer sees one byte too many. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "script.h"

/* the example: ../stream_device.c */
eldp_status stream_device(const eldp_entropy *entropy, const int64_t readings[8], uint32_t series,
                          uint32_t batch, uint32_t first_slot, uint8_t frame[ELDP_FRAME_BYTES(8)]);

enum { MAX_BYTES = 1 << 13 };

static uint8_t buffer[MAX_BYTES];

void run_encode(void)
{
    static uint32_t slots[ELDP_FRAME_MAX_REPORTS + 1];
    static uint16_t codes[ELDP_FRAME_MAX_REPORTS + 1];
    const uint8_t stream = (uint8_t)script_index(256);
    const uint32_t series = script_unsigned32();
    const uint32_t batch = script_unsigned32();
    const uint32_t epoch = script_unsigned32();
    const uint32_t tag = script_unsigned32();
    const size_t capacity = script_index(MAX_BYTES);
    const size_t count = script_index(ELDP_FRAME_MAX_REPORTS + 2);
    for (size_t at = 0; at < count; at++) {
        slots[at] = script_unsigned32();
        codes[at] = (uint16_t)script_index(ELDP_MAX_SIZE);
    }
    uint8_t *bytes = buffer + MAX_BYTES - capacity;
    memset(bytes, PLANTED, capacity);
    const eldp_status status =
        eldp_frame_encode(stream, series, batch, epoch, tag, slots, codes, count, bytes, capacity);
    if (status == ELDP_OK) {
        print_hex(bytes, ELDP_FRAME_BYTES(count) - (series ? 0 : 8));
    } else {
        print_refusal(status, bytes, capacity, false);
    }
}

void run_device(void)
{
    int64_t readings[8];
    uint8_t frame[ELDP_FRAME_BYTES(8)];
    const uint32_t series = script_unsigned32();
    const uint32_t batch = script_unsigned32();
    const uint32_t first_slot = script_unsigned32();
    for (size_t at = 0; at < 8; at++) {
        readings[at] = script_signed();
    }
    memset(frame, PLANTED, sizeof frame);
    const eldp_status status = stream_device(&entropy, readings, series, batch, first_slot, frame);
    if (status == ELDP_OK) {
        print_hex(frame, sizeof frame);
    } else {
        print_refusal(status, frame, sizeof frame, false);
    }
}

void run_decode(void)
{
    eldp_frame frame;
    size_t offset = 0;
    const size_t size = script_hex(buffer, sizeof buffer);
    uint8_t *bytes = buffer + MAX_BYTES - size;
    memmove(bytes, buffer, size);
    memset(&frame, PLANTED, sizeof frame);
    const eldp_status status = eldp_frame_decode(bytes, size, &frame, &offset);
    if (status != ELDP_OK) {
        print_refusal(status, &frame, sizeof frame, false);
        printf(" ");
        print_unsigned(offset);
        return;
    }
    const uint32_t head[] = {frame.stream, frame.series, frame.batch,
                             frame.epoch,  frame.tag,    frame.count};
    print_numbers(head, sizeof head / sizeof *head);
    for (size_t at = 0; at < frame.count; at++) {
        const uint32_t pair[] = {eldp_frame_slot(&frame, at), eldp_frame_code(&frame, at)};
        printf(" ");
        print_numbers(pair, 2);
    }
}
