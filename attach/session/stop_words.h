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

struct gt_agent;
struct gt_process;
struct gt_session;
struct gt_session_arena;

/* The address of the thread block of a stream, in the memory of the process that has opened it; 0: it is not that one.
 * What the stream says (block: number of the block + 1; 0: none yet) any process may have written: it counts if the
 * agent's own memory in that process has the block, and that is the stream's. */
uint64_t gt_stop_words_block(const struct gt_session_arena *arena, uint32_t stream, uint64_t block,
			     uint32_t generation, const struct gt_process *process,
			     const struct gt_agent *agent);

/* Writes one byte of the stop word of each living writer. */
void gt_stop_words_write(struct gt_session *session, enum graftrace_stop_byte byte, uint8_t value);
/* Writes the host's byte (GRAFTRACE_STOP_BYTE_HOST) of each living writer by the present settings:
 * whether tracing is off, and whether the thread is left out. */
void gt_stop_words_write_host(struct gt_session *session);
/* Lets writers that have stopped for lack of room go on, where there is room now. Returns how many
 * there were. */
int gt_stop_words_clear_full(struct gt_session *session);

#endif
