#include "eldp.h"

/* Hybrid at epsilon 1 on 0..41: eight readings become one frame. */
eldp_status stream_device(const eldp_entropy *entropy, const int64_t readings[8], uint32_t series,
                          uint32_t batch, uint32_t first_slot, uint8_t frame[ELDP_FRAME_BYTES(8)])
{
    eldp_channel waves[2];
    eldp_randomizer hybrid;
    uint32_t slots[8];
    uint16_t codes[8];
    eldp_wave_init(&waves[0], 256, 78, 178145, 65536); /* what is refused is refused again below */
    eldp_wave_init(&waves[1], 2, 0, 178145, 65536);
    eldp_status status =
        eldp_randomizer_init(&hybrid, 0, 41, ELDP_LATTICE, 25786, 65536, waves, 2);
    if (status != ELDP_OK || !eldp_randomizer_within(&hybrid, 178145, 65536)) {
        return ELDP_CHANNELS; /* the device's own odds, whatever a plan asks for */
    }
    for (uint32_t at = 0; at < 8; at++) {
        slots[at] = first_slot + at;
        status = eldp_perturb(&hybrid, readings[at], entropy, &codes[at]);
        if (status != ELDP_OK) {
            return status; /* the source failed: nothing is sent */
        }
    }
    return eldp_frame_encode(1, series, batch, 1, 0, slots, codes, 8, frame, ELDP_FRAME_BYTES(8));
}
