/* Channels, randomizers and the reporter, kept in numbered places. */
#include <string.h>

#include "commands.h"
#include "script.h"

enum { MAX_WEIGHTS = 220000 };

static uint64_t weights[MAX_WEIGHTS]; /* they stay: channels point to them */
static size_t weights_used;
static eldp_channel channels[PLACES];
static eldp_randomizer randomizers[PLACES];
static eldp_reporter reporter;

static void finish_code(eldp_status status, const uint16_t *code)
{
    if (status == ELDP_OK) {
        print_unsigned(*code);
    } else {
        print_refusal(status, code, sizeof *code, false);
    }
}

static const uint64_t *read_weights(uint64_t count)
{
    const uint64_t *const first = weights + weights_used;
    if (count > MAX_WEIGHTS - weights_used) {
        script_wrong("too many weights");
    }
    for (uint64_t at = 0; at < count; at++) {
        weights[weights_used++] = script_unsigned();
    }
    return first;
}

void run_wave(void)
{
    eldp_channel *at = &channels[script_index(PLACES)];
    const uint32_t d = script_unsigned32();
    const uint32_t c = script_unsigned32();
    const uint64_t r_num = script_unsigned();
    print_status(eldp_wave_init(at, d, c, r_num, script_unsigned()));
}

void run_profile(void)
{
    eldp_channel *at = &channels[script_index(PLACES)];
    const uint32_t d = script_unsigned32();
    const uint64_t r_den = script_unsigned();
    const size_t count = script_index(MAX_WEIGHTS);
    print_status(eldp_profile_init(at, d, read_weights(count), count, r_den));
}

void run_table(void)
{
    eldp_channel *at = &channels[script_index(PLACES)];
    const uint32_t d = script_unsigned32();
    const uint32_t code_count = script_unsigned32();
    const uint64_t *first = read_weights((uint64_t)d * code_count);
    print_status(eldp_table_init(at, d, code_count, first));
}

void run_pick(void)
{
    const eldp_channel *at = &channels[script_index(PLACES)];
    const uint32_t index = script_unsigned32();
    print_unsigned(at->pick(at, index, script_unsigned()));
}

void run_sample(void)
{
    const eldp_channel *at = &channels[script_index(PLACES)];
    uint16_t code;
    memset(&code, PLANTED, sizeof code);
    finish_code(eldp_sample(at, script_unsigned32(), &entropy, &code), &code);
}

void run_within(void)
{
    const eldp_channel *at = &channels[script_index(PLACES)];
    const uint64_t num = script_unsigned();
    print_unsigned(eldp_channel_within(at, num, script_unsigned()));
}

/* randomizers */

void run_randomizer(void)
{
    eldp_randomizer *at = &randomizers[script_index(PLACES)];
    const int64_t low = script_signed();
    const int64_t high = script_signed();
    const eldp_encoder encoder = (eldp_encoder)script_unsigned32();
    const uint64_t coin_num = script_unsigned();
    const uint64_t coin_den = script_unsigned();
    const eldp_channel *first = &channels[script_index(PLACES)];
    print_status(eldp_randomizer_init(at, low, high, encoder, coin_num, coin_den, first,
                                      (size_t)script_unsigned32()));
}

void run_perturb(void)
{
    const eldp_randomizer *at = &randomizers[script_index(PLACES)];
    uint16_t code;
    memset(&code, PLANTED, sizeof code);
    finish_code(eldp_perturb(at, script_signed(), &entropy, &code), &code);
}

void run_allowed(void)
{
    const eldp_randomizer *at = &randomizers[script_index(PLACES)];
    const uint64_t num = script_unsigned();
    print_unsigned(eldp_randomizer_within(at, num, script_unsigned()));
}

void run_reporter(void)
{
    const eldp_randomizer *stream = &randomizers[script_index(PLACES)];
    const eldp_randomizer *survey = &randomizers[script_index(PLACES)];
    const uint64_t num = script_unsigned();
    print_status(eldp_reporter_init(&reporter, stream, survey, num, script_unsigned()));
}

void run_report(void)
{
    uint16_t code;
    memset(&code, PLANTED, sizeof code);
    finish_code(eldp_report(&reporter, script_signed(), &entropy, &code), &code);
}
