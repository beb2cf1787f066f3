/* Exact integer noise, as edge_ldp/device/laplace.py draws it: Canonne, Kamath, Steinke 2020,
 * algorithms 1 and 2; a block: docs/methods.md, Period sums. */
#include "eldp.h"

/* Turns of a loop after which the source counts as broken: a good one comes here with a probability
 * below 2^-128. */
enum { MAX_RUN = 64, MAX_TURNS = 256 };

/* Give 1 with probability e^(-num/den), else 0: the parity of a falling run. */
static eldp_status unit_exp(uint64_t num, uint64_t den, const eldp_entropy *entropy, bool *is_one)
{
    for (uint64_t k = 1; k <= MAX_RUN; k++) {
        uint64_t drawn;
        const eldp_status status = eldp_draw(entropy, den * k, &drawn);
        if (status != ELDP_OK) {
            return status;
        }
        if (drawn >= num) {
            *is_one = k & 1;
            return ELDP_OK;
        }
    }
    return ELDP_ENTROPY;
}

/* Give k >= 0 with probability (1 - q) q^k, q = e^(-1/scale). */
static eldp_status geometric(uint64_t scale, const eldp_entropy *entropy, uint64_t *number)
{
    bool is_one = false;
    for (int turn = 0; turn < MAX_TURNS && !is_one; turn++) {
        eldp_status status = eldp_draw(entropy, scale, number);
        if (status == ELDP_OK) {
            status = unit_exp(*number, scale, entropy, &is_one);
        }
        if (status != ELDP_OK) {
            return status;
        }
    }
    for (int turn = 0; turn < MAX_TURNS && is_one; turn++) {
        const eldp_status status = unit_exp(1, 1, entropy, &is_one);
        if (status != ELDP_OK) {
            return status;
        }
        if (!is_one) {
            return ELDP_OK;
        }
        *number += scale;
    }
    return ELDP_ENTROPY;
}

static eldp_status one_cell(uint64_t scale, const eldp_entropy *entropy, int64_t *noise)
{
    for (int turn = 0; turn < MAX_TURNS; turn++) {
        uint64_t size;
        uint64_t is_below;
        eldp_status status = geometric(scale, entropy, &size);
        if (status == ELDP_OK) {
            status = eldp_draw(entropy, 2, &is_below);
        }
        if (status != ELDP_OK) {
            return status;
        }
        if (!is_below || size) { /* minus zero is drawn again */
            *noise = is_below ? -(int64_t)size : (int64_t)size;
            return ELDP_OK;
        }
    }
    return ELDP_ENTROPY;
}

/* Give whether a radius is kept: with probability of the product of (2r + 1) / 2(r + i). */
static eldp_status keep(uint64_t radius, size_t cells, const eldp_entropy *entropy, bool *is_kept)
{
    *is_kept = true;
    for (uint64_t i = 1; i <= cells && *is_kept; i++) {
        uint64_t drawn;
        const eldp_status status = eldp_draw(entropy, 2 * (radius + i), &drawn);
        if (status != ELDP_OK) {
            return status;
        }
        *is_kept = drawn <= 2 * radius;
    }
    return ELDP_OK;
}

static eldp_status radius_of(uint64_t scale, size_t cells, const eldp_entropy *entropy,
                             uint64_t *radius)
{
    bool is_kept = false;
    for (int turn = 0; turn < MAX_TURNS * MAX_TURNS && !is_kept; turn++) {
        *radius = 0;
        for (size_t at = 0; at <= cells; at++) {
            uint64_t number;
            const eldp_status status = geometric(scale, entropy, &number);
            if (status != ELDP_OK) {
                return status;
            }
            *radius += number;
        }
        const eldp_status status = keep(*radius, cells, entropy, &is_kept);
        if (status != ELDP_OK) {
            return status;
        }
    }
    return is_kept ? ELDP_OK : ELDP_ENTROPY;
}

static eldp_status block_of(uint64_t scale, size_t cells, const eldp_entropy *entropy,
                            int64_t *noise)
{
    uint64_t radius;
    eldp_status status = radius_of(scale, cells, entropy, &radius);
    for (size_t at = 0; at < cells && status == ELDP_OK; at++) {
        uint64_t drawn;
        status = eldp_draw(entropy, 2 * radius + 1, &drawn);
        if (status == ELDP_OK) {
            noise[at] = (int64_t)drawn - (int64_t)radius;
        }
    }
    return status;
}

eldp_status eldp_laplace(uint64_t scale, size_t cells, const eldp_entropy *entropy, int64_t *noise)
{
    if (scale < 1 || scale >= ELDP_MAX_SCALE) {
        return ELDP_SCALE;
    }
    if (cells < 1 || cells > ELDP_MAX_CELLS) {
        return ELDP_LAYOUT;
    }
    const eldp_status status = cells == 1 ? one_cell(scale, entropy, noise)
                                          : block_of(scale, cells, entropy, noise);
    if (status != ELDP_OK) {
        eldp_wipe(noise, cells * sizeof *noise);
    }
    return status;
}
