/* A home's own sums: as edge_ldp/device/sums.py and sums_frame.py have them. docs/methods.md. */
#include "eldp.h"

enum { DAY_S = 86400, MAX_DAYS = 366, MAX_STREAM = 15, MAX_UNIT = 16, MAX_NAME = 63 };

static const int64_t most = INT64_C(1) << 62;

static bool are_cells(uint32_t cells)
{
    static const uint8_t known[] = {1, 2, 3, 4, 6, 8, 12, 24, 48, 96};
    for (size_t at = 0; at < sizeof known; at++) {
        if (known[at] == cells) {
            return true;
        }
    }
    return false;
}

bool eldp_layout_is_one(const eldp_layout *layout)
{
    const uint32_t seconds = layout->slot_seconds;
    if (seconds < 1 || seconds > DAY_S || DAY_S % seconds || layout->days < 1 ||
        layout->days > MAX_DAYS || !are_cells(layout->cells) || DAY_S / seconds % layout->cells) {
        return false;
    }
    if (layout->offset_s >= DAY_S || layout->offset_s % seconds || layout->block < 1 ||
        layout->cells % layout->block) {
        return false;
    }
    return layout->days * (DAY_S / seconds) / layout->cells >= 2;
}

static int64_t floor_of(int64_t number, int64_t by)
{
    return number / by - (number % by < 0);
}

int64_t eldp_layout_period(const eldp_layout *layout, int64_t slot)
{
    const int64_t slots = (int64_t)layout->days * (DAY_S / layout->slot_seconds);
    return floor_of(slot - layout->offset_s / layout->slot_seconds, slots);
}

uint8_t eldp_layout_cell(const eldp_layout *layout, int64_t slot)
{
    const int64_t slots = DAY_S / layout->slot_seconds;
    const int64_t since = slot - layout->offset_s / layout->slot_seconds;
    const int64_t in_day = since - floor_of(since, slots) * slots;
    return (uint8_t)(in_day * layout->cells / slots);
}

eldp_status eldp_sums_release(const eldp_layout *layout, uint64_t scale, const uint64_t *sums,
                              const eldp_entropy *entropy, int64_t *y)
{
    if (!eldp_layout_is_one(layout)) {
        return ELDP_LAYOUT;
    }
    for (size_t at = 0; at < layout->cells; at++) {
        if (sums[at] > (uint64_t)most) {
            return ELDP_VALUE;
        }
    }
    for (size_t at = 0; at < layout->cells; at += layout->block) {
        const eldp_status status = eldp_laplace(scale, layout->block, entropy, y + at);
        if (status != ELDP_OK) { /* nothing leaves, not even a noise */
            eldp_wipe(y, layout->cells * sizeof *y);
            return status;
        }
    }
    for (size_t at = 0; at < layout->cells; at++) {
        y[at] += (int64_t)sums[at];
    }
    return ELDP_OK;
}

static uint8_t *put(uint8_t *at, uint64_t number, int size)
{
    for (; size > 0; size--, number >>= 8) {
        *at++ = (uint8_t)(number & 0xFF);
    }
    return at;
}

/* The length of a text of so many letters that may stand there, or 0. */
static size_t length_of(const char *text, size_t longest, const char *letters)
{
    size_t size = 0;
    for (; text[size] != '\0'; size++) {
        const char *at = letters;
        while (*at != '\0' && *at != text[size]) {
            at++;
        }
        if (*at == '\0' || size == longest) {
            return 0;
        }
    }
    return size;
}

static bool is_carried(const eldp_sums *sums)
{
    const uint64_t slots_a_day = DAY_S / sums->layout.slot_seconds;
    const uint64_t slots = sums->layout.days * slots_a_day;
    if (sums->stream > MAX_STREAM || sums->series < 1 || sums->batch < 1 ||
        ((uint64_t)sums->period + 1) * slots + slots_a_day > UINT64_C(1) << 32) {
        return false;
    }
    if (sums->low < -most || sums->low > most || sums->span < 1 ||
        sums->span >= UINT64_C(1) << 47 || sums->scale < 1 || sums->scale >= ELDP_MAX_SCALE) {
        return false;
    }
    for (size_t at = 0; at < sums->layout.cells; at++) {
        if (sums->n[at] > slots / sums->layout.cells || sums->y[at] < -most || sums->y[at] > most) {
            return false;
        }
    }
    return true;
}

eldp_status eldp_sums_encode(const eldp_sums *sums, uint8_t *bytes, size_t capacity, size_t *size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ%/";
    static const char small[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    const eldp_layout *layout = &sums->layout;
    if (!eldp_layout_is_one(layout)) {
        return ELDP_LAYOUT;
    }
    const size_t unit = length_of(sums->unit, MAX_UNIT, letters);
    const size_t name = length_of(sums->name, MAX_NAME, small);
    if (!unit || !name || sums->name[0] == '_' || sums->name[0] == '-' || !is_carried(sums)) {
        return ELDP_FRAME;
    }
    const size_t whole =
        ELDP_SUMS_HEAD_BYTES + unit + name + ELDP_SUMS_CELL_BYTES * (size_t)layout->cells;
    if (capacity < whole) {
        return ELDP_STORAGE;
    }
    bytes = put(bytes, 'L' | 'S' << 8, 2);
    bytes = put(bytes, 1, 2); /* version, flags 0 */
    bytes = put(bytes, sums->stream, 1);
    bytes = put(bytes, sums->series, 4);
    bytes = put(bytes, sums->batch, 4);
    bytes = put(bytes, sums->period, 4);
    bytes = put(bytes, layout->slot_seconds, 4);
    bytes = put(bytes, layout->days, 2);
    bytes = put(bytes, layout->cells, 1);
    bytes = put(bytes, layout->block, 1);
    bytes = put(bytes, layout->offset_s, 4);
    bytes = put(bytes, (uint64_t)sums->low, 8);
    bytes = put(bytes, sums->span, 8);
    bytes = put(bytes, sums->scale, 8);
    bytes = put(bytes, unit, 1);
    bytes = put(bytes, name, 1);
    for (size_t at = 0; at < unit; at++) {
        *bytes++ = (uint8_t)sums->unit[at];
    }
    for (size_t at = 0; at < name; at++) {
        *bytes++ = (uint8_t)sums->name[at];
    }
    for (size_t at = 0; at < layout->cells; at++) {
        bytes = put(bytes, sums->n[at], 4);
        bytes = put(bytes, (uint64_t)sums->y[at], 8);
    }
    *size = whole;
    return ELDP_OK;
}
