/* The integer channel under every local mechanism: a wave of heavier codes.
 * docs/design.md, The kernel. */
#include "eldp.h"

static uint16_t pick(const eldp_channel *wave, uint32_t index, uint64_t u)
{
    if (u < wave->near_total) {
        return (uint16_t)(index + u / wave->most);
    }
    const uint64_t k = (u - wave->near_total) / wave->least;
    return (uint16_t)(k < index ? k : k + 2 * wave->c + 1);
}

eldp_status eldp_wave_init(eldp_channel *wave, uint32_t d, uint32_t c, uint64_t r_num,
                           uint64_t r_den)
{
    wave->pick = NULL;
    if (d < 2 || d > ELDP_MAX_SIZE) {
        return ELDP_D;
    }
    if (c > (ELDP_MAX_SIZE - d) / 2) {
        return ELDP_C;
    }
    if (r_den < 1) {
        return ELDP_R_DEN;
    }
    const uint64_t width = 2 * (uint64_t)c + 1;
    if (r_num <= r_den || r_num > UINT64_MAX / width
        || r_den > (UINT64_MAX - width * r_num) / (d - 1)) {
        return ELDP_R_NUM;
    }
    wave->d = d;
    wave->c = c;
    wave->code_count = d + 2 * c;
    wave->near_total = width * r_num;
    wave->total = wave->near_total + (d - 1) * r_den;
    wave->most = r_num;
    wave->least = r_den;
    wave->weights = NULL;
    wave->pick = pick;
    return ELDP_OK;
}

eldp_status eldp_sample(const eldp_channel *channel, uint32_t index, const eldp_entropy *entropy,
                        uint16_t *code)
{
    uint64_t u;
    if (channel->pick == NULL) {
        return ELDP_CHANNELS;
    }
    if (index >= channel->d) {
        return ELDP_VALUE;
    }
    const eldp_status status = eldp_draw(entropy, channel->total, &u);
    if (status == ELDP_OK) {
        *code = channel->pick(channel, index, u);
    }
    return status;
}
