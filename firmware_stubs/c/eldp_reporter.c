/* Stream or survey report, by a coin of its own (docs/design.md, Privacy model, Messages). */
#include "eldp.h"

eldp_status eldp_reporter_init(eldp_reporter *made, const eldp_randomizer *stream,
                               const eldp_randomizer *survey, uint64_t share_num,
                               uint64_t share_den)
{
    made->share_den = 0;
    if (share_den < 1 || share_den > UINT64_C(1) << 32 || share_num > share_den) {
        return ELDP_SHARE;
    }
    if (stream->channel_count == 0 || survey->channel_count == 0) {
        return ELDP_CHANNELS;
    }
    if (stream->code_count + survey->code_count > ELDP_MAX_SIZE) {
        return ELDP_SIZE;
    }
    made->stream = stream;
    made->survey = survey;
    made->share_num = share_num;
    made->share_den = share_den;
    return ELDP_OK;
}

eldp_status eldp_report(const eldp_reporter *reporter, int64_t value, const eldp_entropy *entropy,
                        uint16_t *code)
{
    uint64_t coin;
    uint16_t drawn;
    if (reporter->share_den == 0) {
        return ELDP_CHANNELS;
    }
    eldp_status status = eldp_draw(entropy, reporter->share_den, &coin);
    if (status != ELDP_OK) {
        return status;
    }
    if (coin >= reporter->share_num) {
        return eldp_perturb(reporter->stream, value, entropy, code);
    }
    status = eldp_perturb(reporter->survey, value, entropy, &drawn);
    if (status == ELDP_OK) {
        *code = (uint16_t)(reporter->stream->code_count + drawn);
    }
    return status;
}
