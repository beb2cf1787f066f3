/* OUE: one bit a category, a draw for each. */
#include "eldp.h"

eldp_status eldp_oue_init(eldp_oue *oue, uint32_t size, uint64_t r_num, uint64_t r_den)
{
    oue->size = 0;
    if (size < 2 || size > UINT32_C(1) << 31) {
        return ELDP_SIZE;
    }
    if (r_den < 1) {
        return ELDP_R_DEN;
    }
    if (r_num <= r_den || r_num > UINT64_MAX / 2 || r_den > UINT64_MAX / 2 - r_num) {
        return ELDP_R_NUM;
    }
    oue->r_num = r_num;
    oue->r_den = r_den;
    oue->size = size;
    return ELDP_OK;
}

eldp_status eldp_oue_report(const eldp_oue *oue, int64_t value, const eldp_entropy *entropy,
                            uint8_t *bits, size_t capacity)
{
    if (oue->size == 0) {
        return ELDP_CHANNELS;
    }
    if (value < 0 || value >= (int64_t)oue->size) {
        return ELDP_VALUE;
    }
    const size_t size = ELDP_OUE_BYTES(oue->size);
    if (capacity < size) {
        return ELDP_STORAGE;
    }
    const uint64_t own = oue->r_num + oue->r_den;
    eldp_wipe(bits, size);
    for (uint32_t item = 0; item < oue->size; item++) {
        uint64_t u;
        const eldp_status status = eldp_draw(entropy, 2 * own, &u);
        if (status != ELDP_OK) {
            eldp_wipe(bits, size);
            return status;
        }
        const bool set = u < (item == (uint32_t)value ? own : 2 * oue->r_den);
        bits[item >> 3] |= (uint8_t)(set << (item & 7));
    }
    return ELDP_OK;
}
