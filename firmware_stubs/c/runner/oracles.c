/* Oracles of categories, kept in numbered places. */
#include <string.h>

#include "commands.h"
#include "script.h"

static eldp_oracle oracles[PLACES];
static eldp_tree tree;
static eldp_oue oue;
enum { MAX_BYTES = 1 << 16 };

static uint8_t buffer[MAX_BYTES];

typedef eldp_status (*oracle_init)(eldp_oracle *oracle, uint32_t size, uint64_t r_num,
                                   uint64_t r_den);

static void init_oracle(oracle_init init)
{
    eldp_oracle *at = &oracles[script_index(PLACES)];
    const uint32_t size = script_unsigned32();
    const uint64_t r_num = script_unsigned();
    print_status(init(at, size, r_num, script_unsigned()));
}

void run_grr(void)
{
    init_oracle(eldp_grr_init);
}

void run_hrr(void)
{
    init_oracle(eldp_hrr_init);
}

void run_haar(void)
{
    init_oracle(eldp_haar_hrr_init);
}

void run_olh(void)
{
    eldp_oracle *at = &oracles[script_index(PLACES)];
    const uint32_t size = script_unsigned32();
    const uint32_t g = script_unsigned32();
    const uint64_t r_num = script_unsigned();
    print_status(eldp_olh_init(at, size, g, r_num, script_unsigned()));
}

static void finish_numbers(eldp_status status, const uint32_t *numbers, size_t count, size_t size)
{
    if (status == ELDP_OK) {
        print_numbers(numbers, count);
    } else {
        print_refusal(status, numbers, size, false);
    }
}

void run_oracle(void)
{
    const eldp_oracle *at = &oracles[script_index(PLACES)];
    uint32_t report[ELDP_ORACLE_NUMBERS];
    memset(report, PLANTED, sizeof report);
    const eldp_status status = eldp_oracle_report(at, script_signed(), &entropy, report);
    finish_numbers(status, report, at->numbers, sizeof report);
}

void run_hh(void)
{
    const uint32_t size = script_unsigned32();
    const uint32_t fanout = script_unsigned32();
    const eldp_oracle *first = &oracles[script_index(PLACES)];
    print_status(eldp_tree_init(&tree, size, fanout, first, (size_t)script_unsigned32()));
}

void run_tree(void)
{
    uint32_t report[ELDP_TREE_NUMBERS];
    size_t count = 0;
    memset(report, PLANTED, sizeof report);
    const eldp_status status = eldp_tree_report(&tree, script_signed(), &entropy, report, &count);
    finish_numbers(status, report, count, sizeof report);
}

void run_oue(void)
{
    const uint32_t size = script_unsigned32();
    const uint64_t r_num = script_unsigned();
    print_status(eldp_oue_init(&oue, size, r_num, script_unsigned()));
}

void run_bits(void)
{
    const size_t capacity = script_index(MAX_BYTES);
    uint8_t *bytes = buffer + MAX_BYTES - capacity; /* a sanitizer sees one byte too many */
    memset(bytes, PLANTED, capacity);
    const eldp_status status = eldp_oue_report(&oue, script_signed(), &entropy, bytes, capacity);
    if (status == ELDP_OK) {
        print_hex(bytes, ELDP_OUE_BYTES(oue.size));
    } else {
        print_refusal(status, bytes, capacity, true);
    }
}
