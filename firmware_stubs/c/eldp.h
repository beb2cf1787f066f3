/* edge-ldp in C99: readings are randomised on the device by integers alone.
 *
 * No heap, no floating point, no C library: only <stdint.h>, <stddef.h> and <stdbool.h>. (A 32-bit
 * machine divides 64-bit integers by a routine of the compiler's own library, libgcc.) Entropy and
 * storage are the caller's. The law is that of edge_ldp/device and edge_ldp: the same bytes of
 * entropy give the same codes and frames.
 *
 * Every `..._init` checks its parameters and fills a structure that is then only read; one that is
 * refused, and then used all the same, gives ELDP_CHANNELS and no code. What a structure points to
 * (channels, weights, randomizers, levels) must stay, unchanged, as long as it is used.
 * Unless a function returns ELDP_OK, it has emitted nothing: its results are untouched or wiped.
 * Neither the number of draws nor the length of a report depends on the value.
 *
 * Link what you use. A stream device: eldp_draw.c, eldp_wave.c, eldp_randomizer.c, eldp_frame.c
 * (see stream_device.c); a plan from the network must also pass eldp_policy.c.
 */
#ifndef ELDP_H
#define ELDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong: the parameter that was refused (as ParameterError.name in Python), or why bytes
 * are no frame (as WireError.reason). */
typedef enum {
    ELDP_OK = 0,
    ELDP_ENTROPY,  /* the source failed, or gave words to be drawn again without end */
    ELDP_STORAGE,  /* the caller's buffer is too small */
    ELDP_N,        /* expected 1 or more */
    ELDP_D,        /* expected 2..65536 */
    ELDP_C,        /* expected d + 2c at most 65536 */
    ELDP_R_NUM,    /* expected more than r_den, and a total weight below 2^64 */
    ELDP_R_DEN,    /* expected 1 or more */
    ELDP_WEIGHTS,  /* expected as said at the constructor */
    ELDP_HIGH,     /* expected more than low, and less than low + 2^48 */
    ELDP_CHANNELS, /* expected one or two, at most 65536 codes together */
    ELDP_COIN,     /* expected num <= den, 1 <= den <= 2^32, num = den for one channel */
    ELDP_ENCODER,  /* expected buckets or lattice */
    ELDP_SIZE,     /* expected as said at the constructor */
    ELDP_SHARE,    /* expected num <= den, 1 <= den <= 2^32 */
    ELDP_VALUE,    /* a category: expected 0..size-1 */
    ELDP_G,        /* expected 2..65536 */
    ELDP_FANOUT,   /* expected 2..65536 */
    ELDP_LEVELS,   /* expected one GRR or OLH for each level, of that level's size */
    ELDP_SLOTS,    /* expected 1 to 1024, rising, within 65535 of the first */
    ELDP_SHORT,    /* no frame: from here on, as edge_ldp/device/frame.py */
    ELDP_MAGIC,
    ELDP_VERSION,
    ELDP_FLAGS,
    ELDP_COUNT,
    ELDP_LENGTH,
    ELDP_ORDER,
    ELDP_SERIES, /* of a frame that has a tag, or of version 2: expected 1 or more */
    ELDP_LAYOUT, /* of period sums: expected as said at eldp_layout */
    ELDP_SCALE,  /* expected 1..2^48-1 */
    ELDP_FRAME   /* of period sums: a field that its frame cannot carry */
} eldp_status;

/* ---- draws (eldp_draw.c) ---- */

/* A source of uniform random bytes: a hardware generator or a cryptographic one seeded by it.
 * `fill` writes `size` fresh bytes and returns 0; anything else says that it could not, and then
 * nothing is emitted. Each word is asked for when it is needed and overwritten once used. */
typedef struct {
    int (*fill)(void *context, uint8_t *bytes, size_t size);
    void *context;
} eldp_entropy;

/* Words in a row that may have to be drawn again before the source counts as broken: a good one
 * comes here with a probability below 2^-128. */
#define ELDP_MAX_REDRAWS 128

/* Give a uniform integer in 0..n-1. One little-endian 64-bit word, drawn again at or above the
 * largest multiple of n that is at most 2^64; also for n = 1. */
eldp_status eldp_draw(const eldp_entropy *entropy, uint64_t n, uint64_t *drawn);

/* Overwrite bytes in a way that a compiler does not leave out. */
void eldp_wipe(void *bytes, size_t size);

/* ---- channels (eldp_wave.c, eldp_table.c) ---- */

#define ELDP_MAX_SIZE 65536u /* codes travel in 16 bits */

/* d inputs, code_count codes, an integer weight for each pair, one total for every input; a code's
 * probability is weight / total. Its fields are for reading only. */
typedef struct eldp_channel eldp_channel;
struct eldp_channel {
    /* The code that input `index` gives for the draw u of 0..total-1. */
    uint16_t (*pick)(const eldp_channel *channel, uint32_t index, uint64_t u);
    uint32_t d;
    uint32_t c;
    uint32_t code_count;
    uint64_t near_total; /* weight of the codes near the input, together (wave, profile) */
    uint64_t total;
    uint64_t most; /* most/least: no code is more than this times likelier under another input; */
    uint64_t least; /* for a wave r_num/r_den, for a profile its largest weight over r_den */
    const uint64_t *weights;
};

/* d + 2c codes; j weighs r_num if i <= j <= i + 2c, else r_den. */
eldp_status eldp_wave_init(eldp_channel *wave, uint32_t d, uint32_t c, uint64_t r_num,
                           uint64_t r_den);

/* General waves: codes i..i+2c weigh what the `count` = 2c+1 weights say (odd; each at least r_den,
 * one above it; a total below 2^64), every other r_den. Cost of a draw: count. */
eldp_status eldp_profile_init(eldp_channel *profile, uint32_t d, const uint64_t *weights,
                              size_t count, uint64_t r_den);

/* Explicit weights, row by row: d rows of code_count weights of 1 or more, with one total below
 * 2^64; both 2..65536. Cost: d * code_count here, code_count a draw. Needs eldp_policy.c. */
eldp_status eldp_table_init(eldp_channel *table, uint32_t d, uint32_t code_count,
                            const uint64_t *weights);

/* Give one code for input `index` (ELDP_VALUE unless below d), by exactly one draw. */
eldp_status eldp_sample(const eldp_channel *channel, uint32_t index, const eldp_entropy *entropy,
                        uint16_t *code);

/* ---- one value in, one code out (eldp_randomizer.c, eldp_reporter.c) ---- */

typedef enum { ELDP_BUCKETS, ELDP_LATTICE } eldp_encoder;

/* Build it with eldp_randomizer_init. */
typedef struct {
    int64_t low;
    int64_t high;
    eldp_encoder encoder;
    uint64_t coin_num;
    uint64_t coin_den;
    const eldp_channel *channels;
    size_t channel_count;
    uint32_t code_count;
} eldp_randomizer;

/* One or two channels, as an array. Of two the first serves with probability coin_num/coin_den, and
 * the second's codes follow the first's; for one the coin is (1, 1). low < high < low + 2^48;
 * buckets need d <= high - low + 1. */
eldp_status eldp_randomizer_init(eldp_randomizer *made, int64_t low, int64_t high,
                                 eldp_encoder encoder, uint64_t coin_num, uint64_t coin_den,
                                 const eldp_channel *channels, size_t channel_count);

/* Give the code of one report for `value`, clamped to [low, high]. Order of draws: branch coin (two
 * channels only), rounding (lattice only), channel. A value must be given only once: draws of the
 * same value add up against its owner. */
eldp_status eldp_perturb(const eldp_randomizer *randomizer, int64_t value,
                         const eldp_entropy *entropy, uint16_t *code);

/* The bucket, 0..size-1, of a value clamped to [low, high]; size <= high - low + 1. */
uint32_t eldp_bucket(int64_t value, int64_t low, int64_t high, uint32_t size);

/* Give a neighbouring lattice point, 0..size-1, whose mean is the clamped value. One draw, also for
 * a value that lies on a point. */
eldp_status eldp_lattice(int64_t value, int64_t low, int64_t high, uint32_t size,
                         const eldp_entropy *entropy, uint32_t *index);

/* What a plan makes a device run in an included slot; build it with eldp_reporter_init. */
typedef struct {
    const eldp_randomizer *stream;
    const eldp_randomizer *survey;
    uint64_t share_num;
    uint64_t share_den;
} eldp_reporter;

/* A survey report with probability share_num/share_den, else a stream report; the survey's codes
 * follow the stream's (ELDP_SIZE unless at most 65536 together). */
eldp_status eldp_reporter_init(eldp_reporter *made, const eldp_randomizer *stream,
                               const eldp_randomizer *survey, uint64_t share_num,
                               uint64_t share_den);

/* Give the code of the one report for `value`: the survey coin, then as eldp_perturb. */
eldp_status eldp_report(const eldp_reporter *reporter, int64_t value, const eldp_entropy *entropy,
                        uint16_t *code);

/* ---- the device's own limit (eldp_policy.c) ---- */

/* Say whether a/b <= c/d, exactly; false if b or d is 0. */
bool eldp_ratio_at_most(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

/* Say whether no two values' probabilities of any code differ by more than num/den. The odds of a
 * plan from the network must pass this, with a num/den that the network cannot change. */
bool eldp_channel_within(const eldp_channel *channel, uint64_t num, uint64_t den);
bool eldp_randomizer_within(const eldp_randomizer *randomizer, uint64_t num, uint64_t den);
bool eldp_reporter_within(const eldp_reporter *reporter, uint64_t num, uint64_t den);

/* ---- categories 0..size-1 (eldp_oracle.c, eldp_tree.c, eldp_oue.c) ---- */

#define ELDP_HASH_PRIME 2147483647u /* 2^31 - 1, of OLH's hashes */
#define ELDP_ORACLE_NUMBERS 3       /* the longest report of an eldp_oracle */
#define ELDP_TREE_NUMBERS 4         /* the longest report of an eldp_tree */

/* GRR, OLH, HRR or HaarHRR. Its fields are for reading only. */
typedef struct eldp_oracle eldp_oracle;
struct eldp_oracle {
    eldp_status (*make)(const eldp_oracle *oracle, uint32_t value, const eldp_entropy *entropy,
                        uint32_t *report);
    uint32_t size;
    uint32_t numbers; /* in a report */
    uint32_t levels;  /* HaarHRR: log2 of the least power of two that is size or more */
    eldp_channel channel;
};

/* A report of GRR is [code]; size 2..65536. */
eldp_status eldp_grr_init(eldp_oracle *grr, uint32_t size, uint64_t r_num, uint64_t r_den);

/* [a, b, code], the code of ((a x + b) mod (2^31 - 1)) mod g; size 2..2^31-1. A plan gives g, which
 * is floor(r_num/r_den) + 1. */
eldp_status eldp_olh_init(eldp_oracle *olh, uint32_t size, uint32_t g, uint64_t r_num,
                          uint64_t r_den);

/* [row, bit] of a Hadamard matrix; size 2..2^31. */
eldp_status eldp_hrr_init(eldp_oracle *hrr, uint32_t size, uint64_t r_num, uint64_t r_den);

/* [level, row, bit] of the Haar tree; size 2..2^31. */
eldp_status eldp_haar_hrr_init(eldp_oracle *haar, uint32_t size, uint64_t r_num, uint64_t r_den);

/* Give one report: oracle->numbers integers. ELDP_VALUE, without a draw, unless 0 <= value < size:
 * categories are never clamped. */
eldp_status eldp_oracle_report(const eldp_oracle *oracle, int64_t value,
                               const eldp_entropy *entropy, uint32_t *report);

/* HH: one level of a tree of `fanout`, drawn at random, then that level's GRR or OLH. */
typedef struct {
    uint32_t size;
    uint32_t fanout;
    uint32_t height;
    const eldp_oracle *levels;
} eldp_tree;

/* `levels`: as many as it takes for fanout^height >= size (and at most 2^31-1); level l, counted
 * from below the root, is a GRR or OLH of size fanout^(l+1). */
eldp_status eldp_tree_init(eldp_tree *tree, uint32_t size, uint32_t fanout,
                           const eldp_oracle *levels, size_t level_count);

/* Give [level, ...the level's report] and how many integers that is: it depends on the level, which
 * does not look at the value. `report` has room for ELDP_TREE_NUMBERS. */
eldp_status eldp_tree_report(const eldp_tree *tree, int64_t value, const eldp_entropy *entropy,
                             uint32_t *report, size_t *numbers);

/* OUE: one bit a category. */
typedef struct {
    uint32_t size;
    uint64_t r_num;
    uint64_t r_den;
} eldp_oue;

#define ELDP_OUE_BYTES(size) (((size_t)(size) + 7) / 8)

/* size 2..2^31; r_num > r_den >= 1 with 2 * (r_num + r_den) below 2^64. */
eldp_status eldp_oue_init(eldp_oue *oue, uint32_t size, uint64_t r_num, uint64_t r_den);

/* Give ELDP_OUE_BYTES(size) bytes: bit k is bit k & 7 of byte k >> 3. Cost: one draw a category.
 * Should the source fail in between, the bytes are wiped. */
eldp_status eldp_oue_report(const eldp_oue *oue, int64_t value, const eldp_entropy *entropy,
                            uint8_t *bits, size_t capacity);

/* ---- frames v1 and v2 (eldp_frame.c, eldp_unframe.c) ---- */

#define ELDP_FRAME_V1_HEAD_BYTES 19u
#define ELDP_FRAME_HEAD_BYTES 27u
#define ELDP_FRAME_PAIR_BYTES 4u
#define ELDP_FRAME_MAX_REPORTS 1024u
#define ELDP_FRAME_BYTES(count) (ELDP_FRAME_HEAD_BYTES + ELDP_FRAME_PAIR_BYTES * (size_t)(count))

/* Write one batch, ELDP_FRAME_BYTES(count) bytes. Slots rise strictly, each with one code. The same
 * arguments always give the same bytes. series: drawn from 1 on when the device begins to number
 * its batches 1, 2, 3 ...; 0 writes frame v1, 8 bytes less. tag: the first four bytes of the
 * SHA-256 of the plan's JSON, little-endian, 0 where it is not known. */
eldp_status eldp_frame_encode(uint8_t stream, uint32_t series, uint32_t batch, uint32_t epoch,
                              uint32_t tag, const uint32_t *slots, const uint16_t *codes,
                              size_t count, uint8_t *bytes, size_t capacity);

/* A frame that was checked; it points into the bytes it was read from. */
typedef struct {
    uint8_t stream;
    uint16_t count;
    uint32_t series; /* 0 in frame v1 */
    uint32_t batch;
    uint32_t epoch;
    uint32_t tag; /* 0 in frame v1 */
    uint32_t first_slot;
    const uint8_t *pairs;
} eldp_frame;

/* Check `bytes` as a whole. A refusal also gives the offset of the byte where it shows. */
eldp_status eldp_frame_decode(const uint8_t *bytes, size_t size, eldp_frame *frame, size_t *offset);

/* Slot and code of report `at`, which must be below frame->count. */
uint32_t eldp_frame_slot(const eldp_frame *frame, size_t at);
uint16_t eldp_frame_code(const eldp_frame *frame, size_t at);

/* ---- a home's own sums (eldp_laplace.c, eldp_sums.c) ---- */

#define ELDP_MAX_SCALE (UINT64_C(1) << 48)
#define ELDP_MAX_CELLS 96u
#define ELDP_SUMS_HEAD_BYTES 55u
#define ELDP_SUMS_CELL_BYTES 12u

/* Give the noise of 1..96 cells that share it: Pr[z] ~ e^(-max|z_j|/scale), one cell: e^(-|z|/scale).
 * Should the source fail, `noise` is wiped. */
eldp_status eldp_laplace(uint64_t scale, size_t cells, const eldp_entropy *entropy, int64_t *noise);

/* Periods of `days` days (1..366), each day cut into `cells` equal parts (1, 2, 3, 4, 6, 8, 12, 24,
 * 48 or 96, of whole slots, 2 or more in a period) from `offset_s` past midnight UTC (whole slots);
 * `block` neighbouring cells, which divide them, share one noise. Slots divide the day. */
typedef struct {
    uint32_t slot_seconds;
    uint32_t offset_s;
    uint16_t days;
    uint8_t cells;
    uint8_t block;
} eldp_layout;

/* Say whether a layout is one. The functions below are for those that are. */
bool eldp_layout_is_one(const eldp_layout *layout);

/* The period and the cell of a slot; both are counted from 0. */
int64_t eldp_layout_period(const eldp_layout *layout, int64_t slot);
uint8_t eldp_layout_cell(const eldp_layout *layout, int64_t slot);

/* Give what leaves of a period: each cell's sum plus its noise; `sums` and `y` have layout->cells
 * numbers, the sums 0..2^62. Once for a period: what leaves twice costs twice. */
eldp_status eldp_sums_release(const eldp_layout *layout, uint64_t scale, const uint64_t *sums,
                              const eldp_entropy *entropy, int64_t *y);

/* One release, as edge_ldp/device/sums_frame.py lays it out. */
typedef struct {
    eldp_layout layout;
    uint8_t stream;    /* 0..15 */
    uint32_t series;   /* from 1 */
    uint32_t batch;    /* from 1 */
    uint32_t period;   /* its slots below 2^32 */
    int64_t low;       /* within 2^62; what is added up is min(max(v, low), low + span) - low */
    uint64_t span;     /* 1..2^47-1 */
    uint64_t scale;    /* 1..2^48-1 */
    const char *unit;  /* 1 to 16 of A-Z a-z 0-9 % / */
    const char *name;  /* 1 to 63 of a-z 0-9 _ -, which does not begin with _ or - */
    const uint32_t *n; /* slots that had a value, of each cell */
    const int64_t *y;  /* within 2^62 */
} eldp_sums;

/* Write it and give its size: ELDP_SUMS_HEAD_BYTES + both texts + ELDP_SUMS_CELL_BYTES a cell. */
eldp_status eldp_sums_encode(const eldp_sums *sums, uint8_t *bytes, size_t capacity, size_t *size);

#ifdef __cplusplus
}
#endif

#endif
