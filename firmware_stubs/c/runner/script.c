#include "script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *script;
static char word_read[32];

void script_wrong(const char *what)
{
    fprintf(stderr, "script: %s at '%s'\n", what, word_read);
    exit(2);
}

void script_open(const char *path)
{
    script = fopen(path, "r");
    if (script == NULL) {
        script_wrong("cannot be opened");
    }
}

/* The next character that is no white space, or EOF. */
static int skip_space(void)
{
    int found = fgetc(script);
    while (found == ' ' || found == '\n') {
        found = fgetc(script);
    }
    return found;
}

bool script_word(const char **word)
{
    size_t size = 0;
    for (int found = skip_space(); found != EOF && found != ' ' && found != '\n';
         found = fgetc(script)) {
        if (size + 1 == sizeof word_read) {
            script_wrong("a word too long");
        }
        word_read[size++] = (char)found;
    }
    word_read[size] = '\0';
    *word = word_read;
    return size != 0;
}

static uint64_t digits(const char *word)
{
    uint64_t number = 0;
    if (*word == '\0') {
        script_wrong("no number");
    }
    for (; *word != '\0'; word++) {
        const uint64_t digit = (uint64_t)(*word - '0');
        if (digit > 9 || number > (UINT64_MAX - digit) / 10) {
            script_wrong("no number of 64 bits");
        }
        number = number * 10 + digit;
    }
    return number;
}

uint64_t script_unsigned(void)
{
    const char *word;
    script_word(&word);
    return digits(word);
}

uint32_t script_unsigned32(void)
{
    const uint64_t number = script_unsigned();
    if (number > UINT32_MAX) {
        script_wrong("no number of 32 bits");
    }
    return (uint32_t)number;
}

int64_t script_signed(void)
{
    const char *word;
    script_word(&word);
    const bool negative = *word == '-';
    const uint64_t size = digits(word + negative);
    if (size > (uint64_t)INT64_MAX + negative) {
        script_wrong("no signed number of 64 bits");
    }
    return negative ? -1 - (int64_t)(size - 1) : (int64_t)size;
}

size_t script_index(size_t count)
{
    const uint64_t index = script_unsigned();
    if (index >= count) {
        script_wrong("an index too high");
    }
    return (size_t)index;
}

static int hex_digit(int found)
{
    if (found >= '0' && found <= '9') {
        return found - '0';
    }
    return found >= 'a' && found <= 'f' ? found - 'a' + 10 : -1;
}

size_t script_hex(uint8_t *bytes, size_t capacity)
{
    size_t size = 0;
    int high = skip_space();
    if (high == '-') {
        return 0;
    }
    for (; hex_digit(high) >= 0; high = fgetc(script)) {
        const int low = hex_digit(fgetc(script));
        if (low < 0 || size == capacity) {
            script_wrong("hexadecimal bytes");
        }
        bytes[size++] = (uint8_t)(hex_digit(high) << 4 | low);
    }
    return size;
}

void print_status(eldp_status status)
{
    static const char *const names[] = {
        "ok",      "entropy", "storage",  "n",    "d",       "c",    "r_num", "r_den",
        "weights", "high",    "channels", "coin", "encoder", "size", "share", "value",
        "g",       "fanout",  "levels",   "slots", "short",  "magic", "version", "flags",
        "count",   "length",  "order",    "series", "layout", "scale", "frame",
    };
    printf("%s", (size_t)status < sizeof names / sizeof *names ? names[status] : "UNKNOWN");
}

void print_unsigned(uint64_t number)
{
    printf("%" PRIu64, number);
}

void print_hex(const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size; at++) {
        printf("%02x", bytes[at]);
    }
}

void print_refusal(eldp_status status, const void *planted, size_t size, bool wiped_too)
{
    const uint8_t *bytes = planted;
    bool touched = false;
    for (size_t at = 0; at < size; at++) {
        touched = touched || (bytes[at] != PLANTED && !(wiped_too && bytes[at] == 0));
    }
    print_status(status);
    if (status != ELDP_OK && touched) {
        printf(" EMITTED");
    }
}

void print_numbers(const uint32_t *numbers, size_t count)
{
    for (size_t at = 0; at < count; at++) {
        printf(at == 0 ? "" : " ");
        print_unsigned(numbers[at]);
    }
}
