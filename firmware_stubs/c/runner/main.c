/* Runs a script of kernel calls and prints one line for each command: the result or the refusal.
 *
 * Usage: run SCRIPT. Runs on the host and, by semihosting, under QEMU. Whoever writes the script
 * knows the lines to expect (tests/firmware_stubs/c makes both from the golden vectors). Results
 * are planted beforehand and looked at after a refusal: EMITTED says that one was given.
 *
 *   entropy HEX                bytes that the source gives; after them it fails
 *   constant BYTE              a source that gives one byte for ever (decimal)
 *   fail N                     the source fails once, the Nth time that it is asked from here on
 *   left                       bytes that the source still has
 *   draw N
 *   wave AT D C R_NUM R_DEN    channels, oracles and randomizers are kept in numbered places
 *   profile AT D R_DEN COUNT WEIGHT...
 *   table AT D CODE_COUNT WEIGHT...
 *   pick AT INDEX U            the code of one draw
 *   sample AT INDEX
 *   within AT NUM DEN          0 or 1: of a channel
 *   randomizer AT LOW HIGH ENCODER COIN_NUM COIN_DEN FIRST COUNT
 *   perturb AT VALUE
 *   allowed AT NUM DEN         0 or 1: of a randomizer
 *   reporter STREAM SURVEY SHARE_NUM SHARE_DEN
 *   report VALUE
 *   grr AT SIZE R_NUM R_DEN    likewise hrr, haar-hrr
 *   olh AT SIZE G R_NUM R_DEN
 *   oracle AT VALUE
 *   hh SIZE FANOUT FIRST COUNT
 *   tree VALUE
 *   oue SIZE R_NUM R_DEN
 *   bits CAPACITY VALUE
 *   encode STREAM BATCH EPOCH CAPACITY COUNT (SLOT CODE)...
 *   decode HEX
 *   device BATCH FIRST_SLOT (READING)x8
 *   layout LAYOUT SLOT         its period and cell; LAYOUT: SECONDS DAYS CELLS BLOCK OFFSET
 *   release LAYOUT SCALE COUNT (SUM)...
 *   sums STREAM SERIES BATCH PERIOD LAYOUT LOW SPAN SCALE HEX HEX CAPACITY COUNT (N Y)...
 */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "script.h"

static const struct {
    const char *name;
    void (*run)(void);
} commands[] = {
    {"entropy", run_entropy},
    {"constant", run_constant},
    {"fail", run_fail},
    {"left", run_left},
    {"draw", run_draw},
    {"wave", run_wave},
    {"profile", run_profile},
    {"table", run_table},
    {"pick", run_pick},
    {"sample", run_sample},
    {"within", run_within},
    {"randomizer", run_randomizer},
    {"perturb", run_perturb},
    {"allowed", run_allowed},
    {"reporter", run_reporter},
    {"report", run_report},
    {"grr", run_grr},
    {"hrr", run_hrr},
    {"haar-hrr", run_haar},
    {"olh", run_olh},
    {"oracle", run_oracle},
    {"hh", run_hh},
    {"tree", run_tree},
    {"oue", run_oue},
    {"bits", run_bits},
    {"encode", run_encode},
    {"decode", run_decode},
    {"device", run_device},
    {"layout", run_layout},
    {"release", run_release},
    {"sums", run_sums},
};

int main(int count, char **arguments)
{
    const char *word;
    if (count < 2) {
        script_wrong("not named");
    }
    /* the last one: some start-up codes of boards put a program's name before what they are given */
    script_open(arguments[count - 1]);
    while (script_word(&word)) {
        size_t at = 0;
        while (at < sizeof commands / sizeof *commands && strcmp(commands[at].name, word) != 0) {
            at++;
        }
        if (at == sizeof commands / sizeof *commands) {
            script_wrong("no such command");
        }
        commands[at].run();
        printf("\n");
    }
    return 0;
}
