/* SPDX-License-Identifier: MIT */
/* A kernel on port/fake with some static events (shop:sold, shop:opened, door:locked), and its control files. The sites
 * of the events are the test's own text. */
#ifndef GT_TESTS_UNIT_FAKE_SHOP_H
#define GT_TESTS_UNIT_FAKE_SHOP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/kernel/kernel_control.h"

extern struct gt_arena_control control;
extern int wanted_functions;
extern int evaluated;  /* how often the value of shop:sold's first field was asked for */
extern bool has_rules; /* there is memory for filters and triggers */
extern int watched;    /* how often a thread was wanted that carries triggers out */

/* Of each test. */
int start_shop(void **state);
int finish_shop(void **state);

/* Places of events. */
void sell(int pieces, const char *what);
void sell_elsewhere(int pieces);
void open_door(void);
void lock_door(unsigned flags, unsigned char level);

/* For gt_fake_trigger. */
void note(uint32_t action);

struct gt_control_node node(const char *path);
/* As the shell's > and >> give it. */
int put(const char *path, const char *text);
int append(const char *path, const char *text);
/* A control file as it reads now; one buffer for all. */
char *get(const char *path);
bool is_in(const char *path, const char *text);
/* Records that are in the ring. */
uint64_t records(void);

/* A CPU runs thread 7, and shop:sold is recorded. */
void begin_selling(void);

#endif
