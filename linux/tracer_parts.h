/* SPDX-License-Identifier: MIT */
/* What the files of linux/tracer.c share. */
#ifndef GT_LINUX_TRACER_PARTS_H
#define GT_LINUX_TRACER_PARTS_H

#include "linux/tracer.h"

#include <tracefs.h>

/* How far the kernel's clock is from the one that the program is recorded with: what the kernel has
 * is later by `offset`, give or take `error`. Ticks with x86-tsc, else nanoseconds. */
struct gt_kernel_clock {
	int64_t offset;
	uint64_t error;	   /* 0: not measured */
	uint64_t error_ns; /* the same in nanoseconds */
	uint32_t markers;  /* that it was measured by */
	/* Exchanges with another machine, whose clock the recording has; 0: it is this one's. */
	uint32_t exchanges;
};

struct gt_kernel_tracer {
	struct tracefs_instance *instance; /* NULL: the top */
	bool is_top;			   /* there is something to be put back */
	bool has_functions;
	bool whole_system;
	bool has_pids;
	bool is_tsc;		      /* the clock is the program's */
	bool is_off;		      /* nothing more comes */
	bool is_described;	      /* what is needed to read the pages is in the file */
	char *modules;		      /* as /proc/modules had them then */
	struct gt_kernel_clock own;   /* to this machine's clock */
	struct gt_kernel_clock clock; /* to the recording's */
	uint64_t from, from_ns;	      /* one moment by the kernel's clock and by CLOCK_MONOTONIC */
	struct gt_message lacks;      /* what this kernel does not have */
	int *pipes;		      /* trace_pipe_raw of each CPU, -1: it has none */
	int cpu_count;
	size_t page_bytes;
	uint8_t *pages; /* TAKE_BYTES */
};

/* 0, or a negative errno. */
int gt_kernel_put(struct gt_kernel_tracer *tracer, const char *file, const char *text);

/* The caller's to free; without its last newline. NULL: it is empty, or cannot be read. NULL as
 * instance: the top. */
char *gt_kernel_get(struct tracefs_instance *instance, const char *file);

/* linux/tracer_top.c */

/* Writes down what is at the top of tracefs. False: errno. */
bool gt_kernel_save_top(void);
/* Empties the lists that choose. */
void gt_kernel_clear_top(void);
void gt_kernel_put_top_back(void);
void gt_kernel_remove_instance(const char *name);
/* Takes away what graftraces that were killed left. */
void gt_kernel_clean_up(void);
#define GT_KERNEL_INSTANCE  "graftrace-"
#define GT_KERNEL_TOP_STATE "/run/graftrace-kernel-top"

/* linux/tracer_clock.c */

/* In an instance that records nothing else, with its clock set; leaves its ring empty. */
void gt_kernel_measure_clock(struct gt_kernel_tracer *tracer);

/* linux/tracer_keep.c. Notes how far the clocks are from each other. is_last: of another machine's
 * clock no more will be known. 0, or the writer's error. */
int gt_kernel_keep_clock(const struct gt_kernel_tracer *tracer, struct gt_file_writer *writer,
			 bool is_last);

#endif
