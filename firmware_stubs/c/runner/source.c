/* The scripted source of entropy. */
#include <string.h>

#include "commands.h"
#include "script.h"

enum { MAX_BYTES = 1 << 20 };

static struct {
    uint8_t bytes[MAX_BYTES];
    size_t size;
    size_t at;
    size_t until_failure; /* calls, counting the one that fails; 0: none does */
    int constant;         /* a byte, or -1 */
} source = {.constant = -1};

static int fill(void *context, uint8_t *bytes, size_t size)
{
    (void)context;
    for (size_t at = 0; at < size; at++) {
        if (bytes[at] != 0) {
            script_wrong("a used word was not wiped");
        }
    }
    if (source.until_failure != 0 && --source.until_failure == 0) {
        return 1;
    }
    if (source.constant >= 0) {
        memset(bytes, source.constant, size);
        return 0;
    }
    if (source.size - source.at < size) {
        memset(bytes, 0, size); /* a careless source: what it leaves must not be used */
        return 1;
    }
    memcpy(bytes, source.bytes + source.at, size);
    source.at += size;
    return 0;
}

const eldp_entropy entropy = {fill, NULL};

void run_entropy(void)
{
    source.size = script_hex(source.bytes, sizeof source.bytes);
    source.at = 0;
    source.until_failure = 0;
    source.constant = -1;
    print_unsigned(source.size);
}

void run_constant(void)
{
    source.constant = (int)script_index(256);
    print_unsigned((uint64_t)source.constant);
}

void run_fail(void)
{
    source.until_failure = script_index(SIZE_MAX);
    print_unsigned(source.until_failure);
}

void run_left(void)
{
    print_unsigned(source.size - source.at);
}

void run_draw(void)
{
    uint64_t drawn;
    memset(&drawn, PLANTED, sizeof drawn);
    const eldp_status status = eldp_draw(&entropy, script_unsigned(), &drawn);
    if (status == ELDP_OK) {
        print_unsigned(drawn);
    } else {
        print_refusal(status, &drawn, sizeof drawn, false);
    }
}
