/* SPDX-License-Identifier: MIT */
/* What the tracer's files in this kernel offer each other: trace.c records, trace_files.c tells
 * what can be read and changed, trace_names.c names threads, trace_server.c lets others do so. */
#ifndef PORT_UNIKERNEL_TRACE_PRIVATE_H
#define PORT_UNIKERNEL_TRACE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/record/sites.h"
#include "core/control/control.h"

struct thread;

#define TRACE_PORT 9090

/* ---- trace.c ---- */

extern struct gt_sites trace_sites;
/* All processors stop telling the recorder what runs, and begin to. While they stand still. */
void trace_suspend(void);
void trace_wake(void);

/* Every processor's open sub-buffer ends. From any thread. */
void trace_close(void);

/* ---- trace_live.c. From a thread that has the lock of the control files ---- */

/* Every entry is to be what a byte of `wanted` says (enum graftrace_entry), which stay. */
void trace_patch(const uint8_t *wanted);
/* The same of static events (0: off, by number - 1). */
void trace_patch_events(const uint8_t *wanted);
/* Dynamic probes: what each one's `wanted` says. On return none is in use that is not in the list, which stays. */
void trace_patch_probes(struct graftrace_kernel_probe *const *list, uint32_t count);
/* tracing_on has changed. */
void trace_update(void);
/* The hooks work, or need not, whatever is traced. */
void trace_hold(bool on);
/* Something has; that lock need not be held. */
void trace_changed(void);
/* Looks after a full ring from now on, in a thread of its own. */
void trace_keep(void);
/* The end of an interrupt. */
void trace_interrupt_noted(void);
/* Waits until half of the ring is full, and until the deadline at most. */
void trace_wait(uint64_t deadline);

/* ---- trace_clock.c ---- */

/* Says how well the clocks that were left alone are known. */
void trace_clock_report(void);

/* ---- trace_names.c ---- */

/* A thread was made; it is over. Its name is known from the one to the other, and a while longer. */
void trace_name_thread(uint32_t number, const char text[16]);
void trace_name_over(uint32_t number);
/* False: it is not known any more. */
bool trace_name_of(uint32_t number, char text[16]);
/* The highest number of a thread so far; numbers begin at 1, and all have been in use. */
uint32_t trace_last_thread(void);
/* Numbers of threads whose names are known, last those that run; 0: behind the last. */
uint32_t trace_named_thread(uint32_t index);
/* The thread's name as the trace has it, 16 bytes. */
const char *trace_comm(const struct thread *thread);

/* ---- trace_files.c ---- */

/* Makes the control files; everything is traced from here on. False: no memory. */
bool trace_files_init(void);
void trace_files_lock(void);
void trace_files_unlock(void);
struct gt_control_target *trace_files(void);
/* A command of a function wants to be carried out (enum graftrace_trigger_action). Any state. */
void trace_note_trigger(uint32_t action);
/* Is serving the files traced too (options/trace-self)? */
bool trace_self(void);

/* ---- trace_server.c ---- */

/* Starts the thread that serves /ftrace/. */
void trace_serve(void);

#endif
