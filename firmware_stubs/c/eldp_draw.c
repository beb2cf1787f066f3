/* Uniform integers from random bytes: one 64-bit word a draw, with rejection.
 * docs/design.md, The kernel. */
#include "eldp.h"

enum { WORD_BYTES = 8 };

eldp_status eldp_draw(const eldp_entropy *entropy, uint64_t n, uint64_t *drawn)
{
    uint8_t bytes[WORD_BYTES] = {0};
    if (n == 0) {
        return ELDP_N;
    }
    const uint64_t last = UINT64_MAX - (0 - n) % n; /* 0 - n is 2^64 - n, so this is limit - 1 */
    for (int turn = 0; turn <= ELDP_MAX_REDRAWS; turn++) {
        const int failed = entropy->fill(entropy->context, bytes, WORD_BYTES);
        uint64_t word = 0;
        for (int at = WORD_BYTES - 1; at >= 0; at--) {
            word = word << 8 | bytes[at];
        }
        eldp_wipe(bytes, WORD_BYTES);
        if (failed) {
            return ELDP_ENTROPY;
        }
        if (word <= last) {
            *drawn = word % n;
            return ELDP_OK;
        }
    }
    return ELDP_ENTROPY;
}

void eldp_wipe(void *bytes, size_t size)
{
    volatile uint8_t *at = bytes; /* volatile: the writes are kept though nothing reads them */
    while (size--) {
        *at++ = 0;
    }
}
