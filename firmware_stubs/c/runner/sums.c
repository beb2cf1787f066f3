/* Period sums; a frame's bytes end where the buffer ends, so that a sanitizer sees one too many. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "script.h"

enum { MAX_BYTES = 1 << 11, MAX_TEXT = 80 };

static uint8_t buffer[MAX_BYTES];

static eldp_layout read_layout(void)
{
    eldp_layout layout;
    layout.slot_seconds = script_unsigned32();
    layout.days = (uint16_t)script_index(1 << 16);
    layout.cells = (uint8_t)script_index(1 << 8);
    layout.block = (uint8_t)script_index(1 << 8);
    layout.offset_s = script_unsigned32();
    return layout;
}

/* Read a text as hexadecimal digits: it may hold what no script can say. */
static void read_text(char text[MAX_TEXT])
{
    text[script_hex((uint8_t *)text, MAX_TEXT - 1)] = '\0';
}

void run_layout(void)
{
    const eldp_layout layout = read_layout();
    const int64_t slot = script_signed();
    if (!eldp_layout_is_one(&layout)) {
        printf("none");
        return;
    }
    const int64_t period = eldp_layout_period(&layout, slot);
    printf(period < 0 ? "-" : "");
    print_unsigned((uint64_t)(period < 0 ? -period : period));
    printf(" ");
    print_unsigned(eldp_layout_cell(&layout, slot));
}

void run_release(void)
{
    uint64_t sums[ELDP_MAX_CELLS];
    int64_t y[ELDP_MAX_CELLS];
    const eldp_layout layout = read_layout();
    const uint64_t scale = script_unsigned();
    const size_t count = script_index(ELDP_MAX_CELLS + 1);
    for (size_t at = 0; at < count; at++) {
        sums[at] = script_unsigned();
    }
    memset(y, PLANTED, sizeof y);
    const eldp_status status = eldp_sums_release(&layout, scale, sums, &entropy, y);
    if (status != ELDP_OK) {
        print_refusal(status, y, count * sizeof *y, true);
        return;
    }
    for (size_t at = 0; at < count; at++) {
        printf(at == 0 ? "" : " ");
        printf(y[at] < 0 ? "-" : "");
        print_unsigned((uint64_t)(y[at] < 0 ? -y[at] : y[at]));
    }
}

void run_sums(void)
{
    char unit[MAX_TEXT];
    char name[MAX_TEXT];
    uint32_t n[ELDP_MAX_CELLS];
    int64_t y[ELDP_MAX_CELLS];
    size_t size = 0;
    eldp_sums sums = {.unit = unit, .name = name, .n = n, .y = y};
    sums.stream = (uint8_t)script_index(256);
    sums.series = script_unsigned32();
    sums.batch = script_unsigned32();
    sums.period = script_unsigned32();
    sums.layout = read_layout();
    sums.low = script_signed();
    sums.span = script_unsigned();
    sums.scale = script_unsigned();
    read_text(unit);
    read_text(name);
    const size_t capacity = script_index(MAX_BYTES);
    const size_t count = script_index(ELDP_MAX_CELLS + 1);
    for (size_t at = 0; at < count; at++) {
        n[at] = script_unsigned32();
        y[at] = script_signed();
    }
    uint8_t *bytes = buffer + MAX_BYTES - capacity;
    memset(bytes, PLANTED, capacity);
    const eldp_status status = eldp_sums_encode(&sums, bytes, capacity, &size);
    if (status == ELDP_OK) {
        print_hex(bytes, size);
    } else {
        print_refusal(status, bytes, capacity, false);
    }
}
