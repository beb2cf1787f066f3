/* One value in, one code out: encoder, mixture coin and channel, in the fixed order of draws. */
#include "eldp.h"

/* How far a value, clamped to [low, high], lies above low: below 2^48 where a randomizer asks. */
static uint64_t above(int64_t value, int64_t low, int64_t high)
{
    const int64_t clamped = value < low ? low : value > high ? high : value;
    return (uint64_t)clamped - (uint64_t)low;
}

uint32_t eldp_bucket(int64_t value, int64_t low, int64_t high, uint32_t size)
{
    return (uint32_t)(above(value, low, high) * size / (above(high, low, high) + 1));
}

eldp_status eldp_lattice(int64_t value, int64_t low, int64_t high, uint32_t size,
                         const eldp_entropy *entropy, uint32_t *index)
{
    const uint64_t span = above(high, low, high);
    const uint64_t scaled = above(value, low, high) * (size - 1);
    uint64_t coin;
    const eldp_status status = eldp_draw(entropy, span, &coin);
    if (status == ELDP_OK) {
        *index = (uint32_t)(scaled / span) + (coin < scaled % span);
    }
    return status;
}

/* Add up the codes of channels and find their largest d; say whether they can be used together. */
static bool measure(const eldp_channel *channels, size_t count, uint32_t *codes, uint32_t *widest)
{
    *codes = 0;
    *widest = 0;
    for (size_t at = 0; at < count; at++) {
        if (channels[at].pick == NULL) {
            return false;
        }
        *codes += channels[at].code_count;
        *widest = channels[at].d > *widest ? channels[at].d : *widest;
    }
    return *codes <= ELDP_MAX_SIZE;
}

eldp_status eldp_randomizer_init(eldp_randomizer *made, int64_t low, int64_t high,
                                 eldp_encoder encoder, uint64_t coin_num, uint64_t coin_den,
                                 const eldp_channel *channels, size_t channel_count)
{
    uint32_t widest;
    made->channel_count = 0;
    if (low >= high || above(high, low, high) >= UINT64_C(1) << 48) {
        return ELDP_HIGH;
    }
    if (channel_count < 1 || channel_count > 2) {
        return ELDP_CHANNELS;
    }
    if (coin_den < 1 || coin_den > UINT64_C(1) << 32 || coin_num > coin_den
        || (channel_count == 1 && coin_num != coin_den)) {
        return ELDP_COIN;
    }
    if (!measure(channels, channel_count, &made->code_count, &widest)) {
        return ELDP_CHANNELS;
    }
    if (encoder != ELDP_BUCKETS && encoder != ELDP_LATTICE) {
        return ELDP_ENCODER;
    }
    if (encoder == ELDP_BUCKETS && widest > above(high, low, high) + 1) {
        return ELDP_SIZE;
    }
    made->low = low;
    made->high = high;
    made->encoder = encoder;
    made->coin_num = coin_num;
    made->coin_den = coin_den;
    made->channels = channels;
    made->channel_count = channel_count;
    return ELDP_OK;
}

eldp_status eldp_perturb(const eldp_randomizer *randomizer, int64_t value,
                         const eldp_entropy *entropy, uint16_t *code)
{
    const eldp_channel *channel = randomizer->channels;
    const int64_t low = randomizer->low;
    const int64_t high = randomizer->high;
    uint64_t coin = 0;
    uint32_t index = 0;
    uint16_t drawn = 0;
    uint32_t offset = 0;
    eldp_status status = randomizer->channel_count == 0 ? ELDP_CHANNELS : ELDP_OK;
    if (randomizer->channel_count == 2) {
        status = eldp_draw(entropy, randomizer->coin_den, &coin);
        if (coin >= randomizer->coin_num) {
            offset = channel->code_count;
            channel++;
        }
    }
    if (status == ELDP_OK && randomizer->encoder == ELDP_LATTICE) {
        status = eldp_lattice(value, low, high, channel->d, entropy, &index);
    } else if (status == ELDP_OK) {
        index = eldp_bucket(value, low, high, channel->d);
    }
    if (status == ELDP_OK) {
        status = eldp_sample(channel, index, entropy, &drawn);
    }
    if (status == ELDP_OK) {
        *code = (uint16_t)(offset + drawn);
    }
    return status;
}
