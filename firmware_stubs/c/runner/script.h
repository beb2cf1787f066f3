/* What the runner reads and writes: words parted by white space, one command a line. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "../eldp.h"

enum { PLACES = 24, PLANTED = 0xA5 };

/* What the script said the source gives (source.c). */
extern const eldp_entropy entropy;

/* Open the script; stops the program if that cannot be done, as all of these do on bad input. */
void script_open(const char *path);

/* Read the next word; false at the end. It stays valid until the next one is read. */
bool script_word(const char **word);

uint64_t script_unsigned(void);
uint32_t script_unsigned32(void);
int64_t script_signed(void);

/* Read a whole number below `count`, to be used as an index. */
size_t script_index(size_t count);

/* Read a word of hexadecimal digits ("-" for none) into bytes; return how many. */
size_t script_hex(uint8_t *bytes, size_t capacity);

/* Print the name of a status. */
void print_status(eldp_status status);

/* Print a status; after a refusal also EMITTED if `planted` bytes were touched all the same (to be
 * wiped is no harm where `wiped_too`). */
void print_refusal(eldp_status status, const void *planted, size_t size, bool wiped_too);

void print_unsigned(uint64_t number);
void print_numbers(const uint32_t *numbers, size_t count);
void print_hex(const uint8_t *bytes, size_t size);

/* Say on stderr what is wrong with the script and stop with exit code 2. */
void script_wrong(const char *what);

#endif
