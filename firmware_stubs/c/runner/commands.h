/* The commands of a script, each of which reads its words and prints its result. */
#ifndef COMMANDS_H
#define COMMANDS_H

void run_entropy(void);
void run_constant(void);
void run_fail(void);
void run_left(void);
void run_draw(void);
void run_wave(void);
void run_profile(void);
void run_table(void);
void run_pick(void);
void run_sample(void);
void run_within(void);
void run_randomizer(void);
void run_perturb(void);
void run_allowed(void);
void run_reporter(void);
void run_report(void);
void run_grr(void);
void run_hrr(void);
void run_haar(void);
void run_olh(void);
void run_oracle(void);
void run_hh(void);
void run_tree(void);
void run_oue(void);
void run_bits(void);
void run_encode(void);
void run_decode(void);
void run_device(void);
void run_layout(void);
void run_release(void);
void run_sums(void);

#endif
