/* The device's own limit on the odds of any plan: fractions compared exactly.
 * docs/design.md, Privacy model. */
#include "eldp.h"

bool eldp_ratio_at_most(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    if (b == 0 || d == 0) {
        return false;
    }
    for (;;) { /* Euclid on both at once: the products would need 128 bits */
        if (a / b != c / d) {
            return a / b < c / d;
        }
        const uint64_t a_left = a % b;
        const uint64_t c_left = c % d;
        if (a_left == 0 || c_left == 0) {
            return a_left == 0;
        }
        a = d; /* a_left/b <= c_left/d as d/c_left <= b/a_left */
        d = a_left;
        const uint64_t b_before = b;
        b = c_left;
        c = b_before;
    }
}

bool eldp_channel_within(const eldp_channel *channel, uint64_t num, uint64_t den)
{
    return channel->pick != NULL && eldp_ratio_at_most(channel->most, channel->least, num, den);
}

bool eldp_randomizer_within(const eldp_randomizer *randomizer, uint64_t num, uint64_t den)
{
    for (size_t at = 0; at < randomizer->channel_count; at++) {
        if (!eldp_channel_within(&randomizer->channels[at], num, den)) {
            return false;
        }
    }
    return randomizer->channel_count != 0;
}

bool eldp_reporter_within(const eldp_reporter *reporter, uint64_t num, uint64_t den)
{
    return reporter->share_den != 0 && eldp_randomizer_within(reporter->stream, num, den)
        && eldp_randomizer_within(reporter->survey, num, den);
}
