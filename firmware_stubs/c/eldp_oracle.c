/* Frequency oracles whose report is a few integers: GRR, OLH, HRR, HaarHRR ([SW] 2.1, 4.2). */
#include "eldp.h"

/* Whether an odd number of bits is set. */
static uint32_t parity(uint32_t bits)
{
    bits ^= bits >> 16;
    bits ^= bits >> 8;
    bits ^= bits >> 4;
    bits ^= bits >> 2;
    bits ^= bits >> 1;
    return bits & 1;
}

/* The least h with 2^h >= size, for 2 <= size <= 2^31. */
static uint32_t log2_above(uint32_t size)
{
    uint32_t height = 1;
    while (UINT32_C(1) << height < size) {
        height++;
    }
    return height;
}

static eldp_status make_grr(const eldp_oracle *grr, uint32_t value, const eldp_entropy *entropy,
                            uint32_t *report)
{
    uint16_t code;
    const eldp_status status = eldp_sample(&grr->channel, value, entropy, &code);
    if (status == ELDP_OK) {
        report[0] = code;
    }
    return status;
}

static eldp_status make_olh(const eldp_oracle *olh, uint32_t value, const eldp_entropy *entropy,
                            uint32_t *report)
{
    const uint64_t prime = ELDP_HASH_PRIME;
    uint64_t a;
    uint64_t b;
    uint16_t code;
    eldp_status status = eldp_draw(entropy, prime - 1, &a);
    if (status == ELDP_OK) {
        status = eldp_draw(entropy, prime, &b);
    }
    if (status == ELDP_OK) {
        const uint64_t hashed = ((a + 1) * value + b) % prime % olh->channel.d;
        status = eldp_sample(&olh->channel, (uint32_t)hashed, entropy, &code);
    }
    if (status == ELDP_OK) {
        report[0] = (uint32_t)(a + 1);
        report[1] = (uint32_t)b;
        report[2] = code;
    }
    return status;
}

static eldp_status make_hrr(const eldp_oracle *hrr, uint32_t value, const eldp_entropy *entropy,
                            uint32_t *report)
{
    uint64_t row;
    uint16_t bit;
    eldp_status status = eldp_draw(entropy, UINT64_C(1) << hrr->levels, &row);
    if (status == ELDP_OK) {
        status = eldp_sample(&hrr->channel, parity((uint32_t)row & value), entropy, &bit);
    }
    if (status == ELDP_OK) {
        report[0] = (uint32_t)row;
        report[1] = bit;
    }
    return status;
}

static eldp_status make_haar(const eldp_oracle *haar, uint32_t value, const eldp_entropy *entropy,
                             uint32_t *report)
{
    uint64_t level;
    uint64_t row;
    uint16_t bit;
    eldp_status status = eldp_draw(entropy, haar->levels, &level);
    if (status == ELDP_OK) {
        status = eldp_draw(entropy, (UINT64_C(1) << haar->levels) >> (level + 1), &row);
    }
    if (status == ELDP_OK) {
        const uint32_t node = (uint32_t)((uint64_t)value >> (level + 1));
        const uint32_t sign = value >> level & 1;
        status = eldp_sample(&haar->channel, parity((uint32_t)row & node) ^ sign, entropy, &bit);
    }
    if (status == ELDP_OK) {
        report[0] = (uint32_t)level;
        report[1] = (uint32_t)row;
        report[2] = bit;
    }
    return status;
}

eldp_status eldp_grr_init(eldp_oracle *grr, uint32_t size, uint64_t r_num, uint64_t r_den)
{
    grr->make = make_grr;
    grr->size = size;
    grr->numbers = 1;
    grr->levels = 0;
    const eldp_status status = eldp_wave_init(&grr->channel, size, 0, r_num, r_den);
    return status == ELDP_D ? ELDP_SIZE : status;
}

eldp_status eldp_olh_init(eldp_oracle *olh, uint32_t size, uint32_t g, uint64_t r_num,
                          uint64_t r_den)
{
    olh->make = make_olh;
    olh->size = size;
    olh->numbers = 3;
    olh->levels = 0;
    olh->channel.pick = NULL;
    if (size < 2 || size > ELDP_HASH_PRIME) {
        return ELDP_SIZE;
    }
    const eldp_status status = eldp_wave_init(&olh->channel, g, 0, r_num, r_den);
    return status == ELDP_D ? ELDP_G : status;
}

/* What HRR and HaarHRR share: one bit is perturbed. */
static eldp_status init_bit(eldp_oracle *oracle, uint32_t size, uint64_t r_num, uint64_t r_den)
{
    oracle->size = size;
    oracle->channel.pick = NULL;
    if (size < 2 || size > UINT32_C(1) << 31) {
        return ELDP_SIZE;
    }
    oracle->levels = log2_above(size);
    return eldp_wave_init(&oracle->channel, 2, 0, r_num, r_den);
}

eldp_status eldp_hrr_init(eldp_oracle *hrr, uint32_t size, uint64_t r_num, uint64_t r_den)
{
    hrr->make = make_hrr;
    hrr->numbers = 2;
    return init_bit(hrr, size, r_num, r_den);
}

eldp_status eldp_haar_hrr_init(eldp_oracle *haar, uint32_t size, uint64_t r_num, uint64_t r_den)
{
    haar->make = make_haar;
    haar->numbers = 3;
    return init_bit(haar, size, r_num, r_den);
}

eldp_status eldp_oracle_report(const eldp_oracle *oracle, int64_t value,
                               const eldp_entropy *entropy, uint32_t *report)
{
    if (oracle->channel.pick == NULL) {
        return ELDP_CHANNELS;
    }
    if (value < 0 || value >= (int64_t)oracle->size) {
        return ELDP_VALUE;
    }
    return oracle->make(oracle, (uint32_t)value, entropy, report);
}
