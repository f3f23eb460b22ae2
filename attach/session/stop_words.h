/* SPDX-License-Identifier: MIT */
/*
 * The stop words of a session's writers: a word in each thread's block that says whether and how the
 * thread records (enum graftrace_stop_byte). Agents write some of its bytes, the host others. All
 * functions are called with the session's lock held, by any thread; a writer whose process has ended
 * or cannot be written to is passed over.
 */
#ifndef GT_ATTACH_SESSION_STOP_WORDS_H
#define GT_ATTACH_SESSION_STOP_WORDS_H

#include <stdint.h>
#include <graftrace/agent.h>

struct gt_session;

/* Writes one byte of the stop word of each living writer. */
void gt_stop_words_write(struct gt_session *session, enum graftrace_stop_byte byte, uint8_t value);
/* Writes the host's byte (GRAFTRACE_STOP_BYTE_HOST) of each living writer by the present settings:
 * whether tracing is off, and whether the thread is left out. */
void gt_stop_words_write_host(struct gt_session *session);
/* Lets writers that have stopped for lack of room go on, where there is room now. Returns how many
 * there were. */
int gt_stop_words_clear_full(struct gt_session *session);

#endif
