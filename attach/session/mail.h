/* SPDX-License-Identifier: MIT */
/*
 * Letters from the processes of a session. All functions are called with the session's lock held, by the thread that
 * polls the session; gt_mail_read_letter(), gt_mail_answer(), gt_mail_is_awaited() and gt_mail_obey_awaited() by any
 * thread that holds the lock. A tracer (attach/process/tracer.h) for which the thread that holds the lock waits counts
 * as that thread. Before another thread knows the session (gt_session_start()) they are called without the lock. No
 * function takes the lock, and none releases it meanwhile.
 */
#ifndef GT_ATTACH_SESSION_MAIL_H
#define GT_ATTACH_SESSION_MAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <graftrace/agent.h>

struct gt_process;
struct gt_session;
struct gt_session_arena;

/* A letter, and the slot of the arena's mail that it came by. */
struct gt_letter {
	struct gt_session_arena *arena;
	uint32_t slot;
	struct graftrace_letter
		text; /* ticket 0: nobody is to be answered. Its pid and tid: as this host knows them */
	uint32_t inside; /* what the sender calls itself (numbers.h) */
};

/* Reads all letters, acts on them and answers them. Of a trigger's letter it notes the hit (gt_session_on_trigger):
 * when the lock has been released, gt_session_run_handlers() calls the handler, then answers the letter if its sender
 * waits. A letter whose sender's process cannot be left yet (a sandbox) stays for the next call. While fewer than half
 * of an arena's slots are free, it frees those that are marked as answered and whose senders have ended. Returns how many
 * letters there were, also those that stay; GT_ENOMEM; an error of the sink. After an error those that follow stay,
 * too. */
int gt_mail_read(struct gt_session *session);
/* Reads the letter of the arena and slot that stand in *letter from the memory of process pid itself. False: it has
 * written none there, or does not have this arena; the rest of *letter is undefined then. */
bool gt_mail_read_letter(struct gt_session *session, struct gt_letter *letter, pid_t pid);
/* Answers a letter, if a thread waits for it, and gives its slot back: a sender that has said that it does not wait, or
 * waits no more, has it free at once; any other one finds it marked as answered, and frees it itself. What `value` says
 * depends on the letter's kind. */
void gt_mail_answer(const struct gt_letter *letter, uint64_t value);
/* Answers, with 0, all letters of process pid for whose answers its threads wait, those of triggers too: of the arena
 * that the process has. */
void gt_mail_answer_waiting(struct gt_session *session, pid_t pid);
/* Tells the agent of process pid, which is in no list, to make no system calls any more: its only thread is about to
 * enter a sandbox, and does not wait once it is answered. No effect where it has others, which may be in such calls: then
 * the one that has asked waits for them. */
void gt_mail_silence(pid_t pid);
/* Frees the slots that are marked as answered and that process pid, which has ended or was left, has not freed itself.
 * A letter of it that is answered later (gt_mail_read, gt_session_run_handlers) needs another call. */
void gt_mail_free_answered(struct gt_session *session, pid_t pid);

/*
 * The session's struct gt_process_helper; data: the session. A thread of `process` is waited for, by any
 * thread that has the session's lock, in the middle of a change of that process; and the thread itself
 * may wait, in vfork, for a child that has sent a letter. Letters of its children and of processes that
 * share its memory are read if they are not in the session's list, but for those that tell of forks and triggers.
 * That list may get longer by it, and nothing in it is changed.
 */

/* Whether there is such a letter. False once the session leaves all processes (gt_follow_detach_all): nobody waits
 * then. */
bool gt_mail_is_awaited(void *data, const struct gt_process *process);
/* Acts on all such letters, and answers them. Errors are dropped: one of the sink comes again with what is drained
 * next; without memory an image that the sender executes runs untraced. */
void gt_mail_obey_awaited(void *data, const struct gt_process *process);

#endif
