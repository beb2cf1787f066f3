/* Channels by explicit weights: one draw, then a walk over the input's weights.
 * docs/design.md, The kernel. */
#include "eldp.h"

/* Return the first code whose running sum exceeds u. Always goes through all weights. */
static uint32_t first_above(const uint64_t *weights, size_t count, uint64_t u)
{
    uint64_t sum = 0;
    uint32_t passed = 0;
    for (size_t at = 0; at < count; at++) {
        sum += weights[at];
        passed += u >= sum;
    }
    return passed;
}

/* Give the sum of weights, each `least` or more; say whether it is below 2^64. */
static bool add_up(const uint64_t *weights, size_t count, uint64_t least, uint64_t *sum)
{
    *sum = 0;
    for (size_t at = 0; at < count; at++) {
        if (weights[at] < least || weights[at] > UINT64_MAX - *sum) {
            return false;
        }
        *sum += weights[at];
    }
    return true;
}

static uint16_t pick_profile(const eldp_channel *profile, uint32_t index, uint64_t u)
{
    const uint32_t width = 2 * profile->c + 1;
    if (u < profile->near_total) {
        return (uint16_t)(index + first_above(profile->weights, width, u));
    }
    const uint64_t k = (u - profile->near_total) / profile->least;
    return (uint16_t)(k < index ? k : k + width);
}

eldp_status eldp_profile_init(eldp_channel *profile, uint32_t d, const uint64_t *weights,
                              size_t count, uint64_t r_den)
{
    uint64_t near_total;
    profile->pick = NULL;
    if (count % 2 == 0) {
        return ELDP_WEIGHTS;
    }
    if (d < 2 || d > ELDP_MAX_SIZE) {
        return ELDP_D;
    }
    if (count / 2 > (ELDP_MAX_SIZE - d) / 2) {
        return ELDP_C;
    }
    if (r_den < 1) {
        return ELDP_R_DEN;
    }
    if (!add_up(weights, count, r_den, &near_total)
        || r_den > (UINT64_MAX - near_total) / (d - 1)) {
        return ELDP_WEIGHTS;
    }
    profile->most = r_den;
    for (size_t at = 0; at < count; at++) {
        profile->most = weights[at] > profile->most ? weights[at] : profile->most;
    }
    if (profile->most == r_den) {
        return ELDP_WEIGHTS;
    }
    profile->d = d;
    profile->c = (uint32_t)(count / 2);
    profile->code_count = d + 2 * profile->c;
    profile->near_total = near_total;
    profile->total = near_total + (d - 1) * r_den;
    profile->least = r_den;
    profile->weights = weights;
    profile->pick = pick_profile;
    return ELDP_OK;
}

static uint16_t pick_table(const eldp_channel *table, uint32_t index, uint64_t u)
{
    const uint64_t *row = table->weights + (size_t)index * table->code_count;
    return (uint16_t)first_above(row, table->code_count, u);
}

/* Note the ratio of a code's largest and smallest weight if it is the largest so far. */
static void note_ratio(eldp_channel *table, uint32_t code)
{
    uint64_t most = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t index = 0; index < table->d; index++) {
        const uint64_t weight = table->weights[(size_t)index * table->code_count + code];
        most = weight > most ? weight : most;
        least = weight < least ? weight : least;
    }
    if (!eldp_ratio_at_most(most, least, table->most, table->least)) {
        table->most = most;
        table->least = least;
    }
}

eldp_status eldp_table_init(eldp_channel *table, uint32_t d, uint32_t code_count,
                            const uint64_t *weights)
{
    table->pick = NULL;
    if (d < 2 || d > ELDP_MAX_SIZE || code_count < 2 || code_count > ELDP_MAX_SIZE) {
        return ELDP_WEIGHTS;
    }
    for (uint32_t index = 0; index < d; index++) {
        uint64_t sum;
        if (!add_up(weights + (size_t)index * code_count, code_count, 1, &sum)) {
            return ELDP_WEIGHTS;
        }
        table->total = index == 0 ? sum : table->total;
        if (sum != table->total) {
            return ELDP_WEIGHTS;
        }
    }
    table->d = d;
    table->c = 0;
    table->code_count = code_count;
    table->near_total = 0;
    table->most = 1;
    table->least = 1;
    table->weights = weights;
    for (uint32_t code = 0; code < code_count; code++) {
        note_ratio(table, code);
    }
    table->pick = pick_table;
    return ELDP_OK;
}
