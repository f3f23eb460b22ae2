/* SPDX-License-Identifier: MIT */
/*
 * Mail from the processes of a session: see mail.h.
 *
 * What stands in the arena any process of the recording may have written, so it says only where to
 * look: the letter is read from the memory of the process that it names. Nothing is done to a
 * process that has not asked for it itself, and an answer names who has asked. What triggers have
 * to say is believed as far as the trigger is one of ours (session_trigger.c): it changes the trace
 * and no process, and who has posted it may have ended.
 */
#define _GNU_SOURCE
#include "attach/agent/detach.h"
#include "attach/agent/silence.h"
#include "attach/process/proc.h"
#include "attach/process/seccomp.h"
#include "attach/process/sharers.h"
#include "attach/session/session_private.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Images that differ, looked through for the letter of a process that is not known yet. */
#define IMAGES	       64
#define LEAVE_LIMIT_MS 5000

static uint64_t address_of(const struct gt_agent *agent, uint32_t slot)
{
	return agent->image + agent->header.state_offset +
	       offsetof(struct graftrace_agent_state, letters) +
	       slot * sizeof(struct graftrace_letter);
}

static int read_letter(const struct gt_process *process, const struct gt_agent *agent,
		       uint32_t slot, struct graftrace_letter *text)
{
	return gt_process_read(process, address_of(agent, slot), text, sizeof(*text));
}

/* inside: what the sender calls itself. */
static bool is_of(const struct graftrace_letter *text, pid_t inside)
{
	return text->ticket && text->pid == (uint32_t)inside &&
	       (text->state == GRAFTRACE_MAIL_POSTED || text->state == GRAFTRACE_MAIL_ABANDONED);
}

/* An agent that no process of the list has there: its parent has ended, or has executed another program. */
static bool find_agent(const struct gt_process *process, struct gt_agent *agent)
{
	struct gt_maps maps;

	if (gt_process_maps(process->pid, &maps, NULL))
		return false;
	agent->image = gt_detach_find(process, &maps);
	gt_maps_free(&maps);
	return agent->image != 0 && gt_agent_header(&agent->header, NULL) == 0;
}

void gt_mail_silence(pid_t pid)
{
	struct gt_process process;
	struct gt_agent agent;
	char text[4096];

	if (!gt_proc_read(text, sizeof(text), "/proc/%d/status", (int)pid) ||
	    gt_proc_field(text, "Threads") != 1 || gt_process_open(&process, pid, NULL))
		return;
	if (find_agent(&process, &agent))
		gt_agent_set_flag(&process, agent.image, &agent.header,
				  offsetof(struct graftrace_agent_state, sandboxed));
	gt_process_close(&process);
}

/* Of a child that is not known yet: by vfork it runs in its parent's memory, by fork in a copy. */
static bool read_of_stranger(struct gt_session *session, const struct gt_session_arena *arena,
			     uint32_t slot, pid_t pid, struct graftrace_letter *text)
{
	const pid_t inside = gt_number_inside(session, pid);
	uint64_t images[IMAGES];
	struct gt_process process;
	struct gt_agent own = { .image = 0 };
	size_t k, count = 0;
	bool found = false;

	if (pid <= 0 || gt_session_arena_mapped(session, pid) != arena ||
	    gt_process_open(&process, pid, NULL))
		return false;
	if (session->tracees.coming != NULL && session->tracees.coming->has_agent)
		found = read_letter(&process, &session->tracees.coming->agent, slot, text) == 0 &&
			is_of(text, inside);
	for (size_t i = 0; !found && i < session->tracees.count && count < IMAGES; i++) {
		const struct gt_tracee *tracee = session->tracees.list[i];

		for (k = 0; k < count && images[k] != tracee->agent.image; k++)
			;
		if (!tracee->has_agent || k < count)
			continue;
		images[count++] = tracee->agent.image;
		found = read_letter(&process, &tracee->agent, slot, text) == 0 &&
			is_of(text, inside);
	}
	if (!found)
		found = find_agent(&process, &own) &&
			read_letter(&process, &own, slot, text) == 0 && is_of(text, inside);
	gt_process_close(&process);
	return found;
}

bool gt_mail_read_letter(struct gt_session *session, struct gt_letter *letter, pid_t pid)
{
	const struct gt_session_arena *arena = letter->arena;
	struct gt_tracee *tracee = gt_follow_find(session, pid);
	struct graftrace_letter *text = &letter->text;

	if (tracee != NULL && tracee->has_agent
		    ? tracee->arena != arena->shared.number ||
			      read_letter(&tracee->process, &tracee->agent, letter->slot, text) ||
			      !is_of(text, tracee->inside)
		    : !read_of_stranger(session, arena, letter->slot, pid, text))
		return false;
	letter->inside = text->pid;
	text->pid = (uint32_t)pid;
	text->tid = (uint32_t)gt_number_thread(session, pid, (pid_t)text->tid);
	return true;
}

static void settle(const struct gt_letter *letter)
{
	struct graftrace_mail *mail = gt_arena_mail(&letter->arena->shared, letter->slot);
	uint32_t posted = GRAFTRACE_MAIL_POSTED;

	if (!__atomic_compare_exchange_n(&mail->state, &posted, GRAFTRACE_MAIL_ANSWERED, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		__atomic_store_n(&mail->state, GRAFTRACE_MAIL_FREE, __ATOMIC_RELEASE);
}

void gt_mail_answer(const struct gt_letter *letter, uint64_t value)
{
	struct graftrace_answer *answer = gt_arena_answer(&letter->arena->shared, letter->slot);

	if (letter->text.ticket) {
		/* Without a ticket while it changes: see the agent's side. */
		__atomic_store_n(&answer->ticket, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&answer->pid, letter->inside, __ATOMIC_RELAXED);
		__atomic_store_n(&answer->value, value, __ATOMIC_RELAXED);
		__atomic_store_n(&answer->ticket, letter->text.ticket, __ATOMIC_RELEASE);
		gt_arena_wake(&answer->ticket);
	}
	settle(letter);
}

/* Whether another process with that arena calls itself the same. */
static bool is_anothers(struct gt_session *session, const struct gt_session_arena *arena,
			pid_t inside, pid_t pid)
{
	pid_t candidate = pid;

	for (uint32_t at = 0; candidate == pid; at++)
		candidate = gt_number_candidate(session, arena, inside, at);
	return candidate != 0;
}

void gt_mail_free_answered(struct gt_session *session, pid_t pid)
{
	const pid_t inside = gt_number_inside(session, pid);

	for (uint32_t k = 0; k < session->arena_count; k++) {
		struct gt_session_arena *arena = &session->arenas[k];

		for (uint32_t i = 0; i < arena->shared.mail_count; i++) {
			struct graftrace_mail *mail = gt_arena_mail(&arena->shared, i);

			if (mail->pid == (uint32_t)inside &&
			    __atomic_load_n(&mail->state, __ATOMIC_ACQUIRE) ==
				    GRAFTRACE_MAIL_ANSWERED &&
			    !is_anothers(session, arena, inside, pid))
				__atomic_store_n(&mail->state, GRAFTRACE_MAIL_FREE,
						 __ATOMIC_RELEASE);
		}
	}
}

static bool has_ended(pid_t pid, pid_t tid)
{
	char text[1024];
	const char *fields;

	if (pid <= 0 || tid <= 0)
		return false;
	if (syscall(SYS_tgkill, pid, tid, 0) != 0 && errno == ESRCH)
		return true;
	fields = gt_proc_stat(text, sizeof(text), pid, tid);
	return fields != NULL && *fields == 'Z';
}

/* A vfork child that was killed while it waited has left its letter in its parent's memory, and the agent there would
 * not write another one over it. False: that memory cannot be written. */
static bool drop_letter(struct gt_session *session, const struct gt_session_arena *arena,
			uint32_t slot, uint32_t pid, uint32_t tid)
{
	const uint32_t abandoned = GRAFTRACE_MAIL_ABANDONED;
	struct graftrace_letter text;

	for (size_t i = 0; i < session->tracees.count; i++) {
		const struct gt_tracee *tracee = session->tracees.list[i];

		if (tracee->has_agent && tracee->arena == arena->shared.number &&
		    read_letter(&tracee->process, &tracee->agent, slot, &text) == 0 &&
		    text.state == GRAFTRACE_MAIL_POSTED && text.pid == pid && text.tid == tid &&
		    gt_process_write(&tracee->process,
				     address_of(&tracee->agent, slot) +
					     offsetof(struct graftrace_letter, state),
				     &abandoned, sizeof(abandoned)) &&
		    !gt_process_is_ending(&tracee->process))
			return false;
	}
	return true;
}

/* Of all processes that may have sent it. */
static bool has_sender_ended(struct gt_session *session, const struct gt_session_arena *arena,
			     pid_t inside, pid_t tid)
{
	pid_t pid = gt_number_likely(session, arena, inside);
	bool ended = inside > 0;

	for (uint32_t at = 0; ended && pid != 0;) {
		ended = has_ended(pid, gt_number_thread(session, pid, tid));
		pid = gt_number_candidate(session, arena, inside, ++at);
	}
	return ended;
}

/*
 * Frees the slots that are marked as answered and whose senders have ended before they could. Nobody but us marks a slot
 * so, and a sender writes its numbers before: who marked slots are of does not change meanwhile, unless a process writes
 * over the mail, which could free the slot as well.
 */
static void free_of_ended(struct gt_session *session, struct gt_session_arena *arena)
{
	for (uint32_t i = 0; i < arena->shared.mail_count; i++) {
		struct graftrace_mail *mail = gt_arena_mail(&arena->shared, i);
		uint32_t answered = GRAFTRACE_MAIL_ANSWERED;
		uint32_t pid, tid;

		if (__atomic_load_n(&mail->state, __ATOMIC_ACQUIRE) != answered)
			continue;
		pid = __atomic_load_n(&mail->pid, __ATOMIC_RELAXED);
		tid = __atomic_load_n(&mail->tid, __ATOMIC_RELAXED);
		if (has_sender_ended(session, arena, (pid_t)pid, (pid_t)tid) &&
		    drop_letter(session, arena, i, pid, tid))
			__atomic_compare_exchange_n(&mail->state, &answered, GRAFTRACE_MAIL_FREE,
						    false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
}

void gt_mail_answer_waiting(struct gt_session *session, pid_t pid)
{
	const struct gt_tracee *tracee = gt_follow_find(session, pid);
	struct gt_letter letter = { .arena = tracee != NULL
						     ? &session->arenas[tracee->arena]
						     : gt_session_arena_mapped(session, pid) };

	if (letter.arena == NULL)
		return;
	for (letter.slot = 0; letter.slot < letter.arena->shared.mail_count; letter.slot++)
		if (gt_mail_read_letter(session, &letter, pid) &&
		    letter.text.state == GRAFTRACE_MAIL_POSTED) {
			/* Before another letter can be in that slot. */
			gt_session_answered_pending(session, letter.arena, letter.slot);
			gt_mail_answer(&letter, 0);
		}
}

static void leave_process(struct gt_session *session, struct gt_tracee *tracee, const char *why)
{
	enum gt_detach_left left;

	gt_follow_leave(session, tracee, why, LEAVE_LIMIT_MS, &left);
}

/* The process that has sent a letter. A child of which nothing was heard yet is taken in first: what it has sent at its
 * fork may stand behind this letter. *answered: it was left instead, or will be in a later round. */
static struct gt_tracee *sender_of(struct gt_session *session, const struct gt_letter *letter,
				   bool *answered)
{
	const pid_t pid = (pid_t)letter->text.pid;
	struct gt_tracee *tracee = gt_follow_find(session, pid);

	if (tracee != NULL || gt_follow_shares_memory(session, pid) ||
	    gt_follow_fork(session, pid, gt_proc_parent(pid), letter, answered))
		return tracee;
	return *answered ? NULL : gt_follow_find(session, pid);
}

static int on_objects(struct gt_session *session, const struct gt_letter *letter, bool *answered)
{
	struct gt_message why = { "" };
	struct gt_tracee *tracee;
	int error;

	if (!gt_follow_is_thread_of((pid_t)letter->text.pid, (pid_t)letter->text.tid))
		return 0;
	tracee = sender_of(session, letter, answered);
	if (tracee == NULL)
		return 0;
	error = gt_tracee_objects(tracee, (pid_t)letter->text.tid, letter->slot,
				  letter->text.ticket, &session->catalog, &session->selection,
				  session->sink, &why);
	/* It has loaded what cannot be traced, nor anything else beside it. */
	if (error == GT_ENOTSUP && why.text[0] && tracee->has_agent) {
		leave_process(session, tracee, why.text);
		*answered = true;
	}
	if (error != GT_ENOMEM && !*answered)
		error = gt_session_events_came(session, &why);
	/* What fails in the target is the target's; it goes on without those objects. */
	return error == GT_ENOMEM ? error : 0;
}

/* What a filter that is about to be set says to calls of the agent's, and of ours. */
struct filter {
	bool asks_place;
	const char *forbids; /* the name of a call, "all"; NULL: none */
};

/* address: of the thread's struct sock_fprog; 0: strict mode. */
static struct filter read_filter(const struct gt_process *process, uint64_t address)
{
	struct filter read = { .forbids = "all" };
	struct sock_filter *filter = NULL;
	struct sock_fprog program;

	if (address && !gt_process_read(process, address, &program, sizeof(program)) &&
	    program.len <= BPF_MAXINSNS)
		filter = malloc((program.len + 1ul) * sizeof(*filter));
	if (filter != NULL && !gt_process_read(process, (uint64_t)program.filter, filter,
					       program.len * sizeof(*filter))) {
		read.forbids = gt_seccomp_forbids(filter, program.len, false);
		read.asks_place = gt_seccomp_asks_place(filter, program.len);
	}
	free(filter);
	return read;
}

/*
 * A thread enters a sandbox: 1, the agent can go on there. Else its process is left, so that nothing of ours
 * is in the way of what the filter allows; the thread has its answer when no call leads to the agent. *answered: the
 * letter has been answered, or is not to be yet.
 */
static uint64_t on_sandbox(struct gt_session *session, const struct gt_letter *sent, bool *answered)
{
	struct gt_tracee *tracee = sender_of(session, sent, answered);
	const struct graftrace_letter *letter = &sent->text;
	struct gt_message why;
	struct filter filter;

	if (*answered && gt_session_arena_mapped(session, (pid_t)letter->pid) == NULL)
		gt_session_note_untraced(session, (pid_t)letter->pid,
					 "it has entered a sandbox (seccomp) while it was taken "
					 "in: nothing of it is recorded from then on");
	if (tracee == NULL)
		return 0;
	filter = read_filter(&tracee->process, letter->argument[0]);
	if (filter.forbids == NULL && !(session->selection.syscalls && filter.asks_place)) {
		const long filters = gt_seccomp_filters((pid_t)letter->pid, (pid_t)letter->tid);

		/* A thread in strict mode, whose number somebody has written there, enters no other. */
		if (filters >= tracee->process.filters_allowed && filters < LONG_MAX)
			tracee->process.filters_allowed = filters + 1;
		return 1;
	}
	/* Another thread may soon be in no more filters than those that were found harmless. */
	tracee->process.filters_allowed = 0;
	if (filter.forbids != NULL)
		gt_fail(&why, GT_ENOTSUP,
			"it has entered a sandbox (seccomp) that forbids %s: nothing of it is "
			"recorded from then on",
			filter.forbids);
	else
		gt_fail(&why, GT_ENOTSUP,
			"it has entered a sandbox (seccomp) that asks where a system call is made "
			"from, and these are recorded: nothing of it is recorded from then on");
	*answered = letter->state == GRAFTRACE_MAIL_POSTED && tracee->has_agent && !tracee->clean;
	if (!*answered) {
		gt_session_note_untraced(session, (pid_t)letter->pid, why.text);
		return 0;
	}
	/* Others may be in a call of the agent's, which the filter may forbid them, too. Who waits there for us
	 * has to have its answer first, so this letter stays until then. */
	if (gt_silence(tracee, (pid_t)letter->tid) != GT_EBUSY)
		leave_process(session, tracee, why.text);
	return 0;
}

/* A thread is about to do what its process cannot be traced with. *answered: it is. */
static void on_leave(struct gt_session *session, const struct gt_letter *letter, bool *answered)
{
	struct gt_tracee *tracee = sender_of(session, letter, answered);
	const uint64_t what = letter->text.argument[0];
	const char *why =
		what == GRAFTRACE_LEAVE_CLOCK
			? "it forbids itself the time stamp counter (prctl PR_SET_TSC), by which "
			  "calls are timed: nothing of it is recorded from then on"
		: what == GRAFTRACE_LEAVE_DISPATCH
			? "it takes its system calls by where they are made (prctl "
			  "PR_SET_SYSCALL_USER_DISPATCH), and these are recorded: nothing of it is "
			  "recorded from then on"
			: "it takes the %gs register for itself (arch_prctl ARCH_SET_GS), which "
			  "graftrace needs: nothing of it is recorded from then on";

	if (*answered && gt_session_arena_mapped(session, (pid_t)letter->text.pid) == NULL)
		gt_session_note_untraced(session, (pid_t)letter->text.pid, why);
	if (tracee == NULL || !tracee->has_agent || tracee->clean)
		return;
	leave_process(session, tracee, why);
	*answered = true;
}

/* A letter that its sender's own memory has. */
static int obey(struct gt_session *session, const struct gt_letter *letter)
{
	const struct graftrace_letter *text = &letter->text;
	bool answered = false;
	uint64_t value = 0;
	int error = 0;

	switch (text->kind) {
	case GRAFTRACE_MAIL_OBJECTS:
		error = on_objects(session, letter, &answered);
		break;
	case GRAFTRACE_MAIL_EXEC:
		if (text->state == GRAFTRACE_MAIL_POSTED)
			error = gt_follow_exec(session, letter, &answered);
		break;
	case GRAFTRACE_MAIL_FORK:
		error = gt_follow_fork(
			session, (pid_t)text->pid,
			gt_number_likely(session, letter->arena, (pid_t)text->argument[0]), letter,
			&answered);
		break;
	case GRAFTRACE_MAIL_HANDLER:
		gt_session_on_handler(session, text);
		break;
	case GRAFTRACE_MAIL_LEAVE:
		on_leave(session, letter, &answered);
		break;
	case GRAFTRACE_MAIL_SANDBOX:
		value = on_sandbox(session, letter, &answered);
		break;
	default:
		break;
	}
	if (!answered)
		gt_mail_answer(letter, value);
	return error;
}

static bool is_unread(struct gt_session *session, struct gt_session_arena *arena, uint32_t slot)
{
	const uint32_t state =
		__atomic_load_n(&gt_arena_mail(&arena->shared, slot)->state, __ATOMIC_ACQUIRE);

	return (state == GRAFTRACE_MAIL_POSTED || state == GRAFTRACE_MAIL_ABANDONED) &&
	       !gt_session_is_pending(session, arena, slot);
}

/* An old letter of its sender, who has another slot by now, or has not seen the answer yet. */
static bool was_answered(const struct gt_letter *letter)
{
	const struct graftrace_answer *answer =
		gt_arena_answer(&letter->arena->shared, letter->slot);

	return answer->ticket == letter->text.ticket && answer->pid == letter->inside;
}

/* How likely a letter is the one that is looked for: several processes may call themselves the same, and have old letters
 * in that slot. */
enum likely { NOT, OLD, COMES, WAITS };

static enum likely likely_of(struct gt_session *session, const struct gt_letter *letter,
			     uint32_t kind)
{
	const struct graftrace_letter *text = &letter->text;

	if (text->kind != kind || was_answered(letter))
		return NOT;
	if (text->state == GRAFTRACE_MAIL_POSTED)
		return WAITS;
	return kind == GRAFTRACE_MAIL_FORK && gt_follow_find(session, (pid_t)text->pid) == NULL
		       ? COMES
		       : OLD;
}

/* Reads the letter of its slot from the memory of who has sent it. False: of nobody who is known; *letter stays. Mostly it
 * is who has that number here: the memory tells. */
static bool find_letter(struct gt_session *session, struct gt_letter *letter, uint32_t inside,
			uint32_t kind)
{
	struct gt_letter read = { .arena = letter->arena, .slot = letter->slot };
	enum likely likely, most = NOT;
	pid_t pid = (pid_t)inside;

	for (uint32_t at = 0; pid != 0 && most < WAITS;
	     pid = gt_number_candidate(session, read.arena, (pid_t)inside, at++)) {
		if ((at != 0 && pid == (pid_t)inside) || !gt_mail_read_letter(session, &read, pid))
			continue;
		likely = likely_of(session, &read, kind);
		if (likely > most) {
			most = likely;
			*letter = read;
		}
	}
	return most != NOT;
}

/* letters: those whose senders are known; the others have no ticket. unknown: of each of these the number that it says; 0
 * of others. If descendants cannot be looked through now, of none. */
static void look_for_senders(struct gt_session *session, struct gt_session_arena *arena,
			     struct gt_letter letters[GRAFTRACE_ARENA_MAIL],
			     uint32_t unknown[GRAFTRACE_ARENA_MAIL])
{
	bool any = false, looked = false;

	memset(unknown, 0, GRAFTRACE_ARENA_MAIL * sizeof(*unknown));
	for (uint32_t i = 0; i < arena->shared.mail_count; i++) {
		const struct graftrace_mail *mail = gt_arena_mail(&arena->shared, i);
		const uint32_t pid = __atomic_load_n(&mail->pid, __ATOMIC_RELAXED);

		letters[i] = (struct gt_letter){ .arena = arena, .slot = i };
		if (is_unread(session, arena, i) &&
		    !find_letter(session, &letters[i], pid,
				 __atomic_load_n(&mail->kind, __ATOMIC_RELAXED))) {
			unknown[i] = pid;
			any = true;
		}
	}
	if (!any)
		return;
	if (!gt_number_look(session)) {
		memset(unknown, 0, GRAFTRACE_ARENA_MAIL * sizeof(*unknown));
		return;
	}
	for (uint32_t i = 0; i < arena->shared.mail_count; i++) {
		const struct graftrace_mail *mail = gt_arena_mail(&arena->shared, i);

		if (unknown[i] != 0 &&
		    __atomic_load_n(&mail->state, __ATOMIC_ACQUIRE) == GRAFTRACE_MAIL_POSTED &&
		    !find_letter(session, &letters[i], unknown[i],
				 __atomic_load_n(&mail->kind, __ATOMIC_RELAXED)) &&
		    !looked && !(looked = gt_number_look_everywhere(session)))
			unknown[i] = 0; /* its sender waits: in a later round */
	}
}

static int read_mail(struct gt_session *session, struct gt_session_arena *arena)
{
	struct gt_letter letters[GRAFTRACE_ARENA_MAIL];
	uint32_t unknown[GRAFTRACE_ARENA_MAIL];
	int done = 0, error = 0;
	uint32_t free_count = 0;

	look_for_senders(session, arena, letters, unknown);
	for (uint32_t i = 0; !error && i < arena->shared.mail_count; i++) {
		struct graftrace_mail *mail = gt_arena_mail(&arena->shared, i), copy;
		uint32_t state = __atomic_load_n(&mail->state, __ATOMIC_ACQUIRE);
		struct gt_letter letter = letters[i];
		bool own;

		free_count += state == GRAFTRACE_MAIL_FREE;
		if (!is_unread(session, arena, i))
			continue;
		memcpy(&copy, mail, sizeof(copy));
		done++;
		/* Another letter's answer may have been this one's, too, and another one be in its slot. */
		own = (letter.text.ticket && letter.inside == copy.pid &&
		       letter.text.kind == copy.kind && !was_answered(&letter)) ||
		      find_letter(session, &letter, copy.pid, copy.kind);
		if (!own && unknown[i] != copy.pid && session->tracees.count != 0)
			continue; /* in the next round */
		copy.pid = own ? letter.text.pid
			       : (uint32_t)gt_number_likely(session, arena, (pid_t)copy.pid);
		copy.tid =
			own ? letter.text.tid
			    : (uint32_t)gt_number_thread(session, (pid_t)copy.pid, (pid_t)copy.tid);
		if (copy.kind == GRAFTRACE_MAIL_TRIGGER) {
			if (!own)
				letter.text.ticket = 0; /* nobody to answer to */
			if (!gt_session_on_trigger(session, &letter, &copy))
				gt_mail_answer(&letter, 0);
		} else if (own) {
			error = obey(session, &letter);
		} else {
			settle(&letter);
		}
	}
	/* Not before: somebody whom this host does not find in another PID namespace seems to have ended, and waits. */
	if (free_count < arena->shared.mail_count / 2)
		free_of_ended(session, arena);
	return error ? error : done;
}

/* It is not late itself: nobody traces it. */
static bool is_untraced(pid_t pid, pid_t tid)
{
	char text[4096];

	return gt_proc_read(text, sizeof(text), "/proc/%d/task/%d/status", (int)pid, (int)tid) &&
	       gt_proc_field(text, "TracerPid") == 0;
}

/*
 * Whether a letter of that kind, of process pid, is obeyed in the middle of a change of `process`. Not that of a fork:
 * its child would become a tracee as its parent is. Nor those at which a fork's child would be left, if nothing was
 * heard of it yet: they can wait until the change is over. Not that of a trigger, whose handler runs without the lock.
 * The agent does not wait for the first and the last ones, or for a second at most.
 */
static bool is_obeyed_amid(uint32_t kind, const struct gt_process *process, pid_t pid)
{
	return kind != GRAFTRACE_MAIL_FORK && kind != GRAFTRACE_MAIL_TRIGGER &&
	       (!graftrace_mail_needs_answer(kind) || gt_sharers_has(process, pid));
}

/* The letter of that slot, if a thread of `process` may wait for the answer to it. */
static bool find_awaited(struct gt_session *session, struct gt_letter *letter,
			 const struct gt_process *process)
{
	const struct graftrace_mail *mail = gt_arena_mail(&letter->arena->shared, letter->slot);
	const uint32_t kind = __atomic_load_n(&mail->kind, __ATOMIC_RELAXED);
	const uint32_t inside = __atomic_load_n(&mail->pid, __ATOMIC_RELAXED);
	pid_t pid;

	if (__atomic_load_n(&mail->state, __ATOMIC_ACQUIRE) != GRAFTRACE_MAIL_POSTED ||
	    inside == 0 ||
	    (!find_letter(session, letter, inside, kind) &&
	     !(gt_number_look(session) && find_letter(session, letter, inside, kind))))
		return false;
	pid = (pid_t)letter->text.pid;
	return pid != process->pid && gt_follow_find(session, pid) == NULL &&
	       is_obeyed_amid(kind, process, pid) &&
	       (gt_sharers_has(process, pid) || gt_proc_parent(pid) == process->pid) &&
	       is_untraced(pid, (pid_t)letter->text.tid);
}

/* Once all are being left, nobody waits. */
static bool is_waited_for(struct gt_session *session)
{
	return __atomic_load_n(&gt_session_settings(session)->host_alive, __ATOMIC_RELAXED) != 0;
}

bool gt_mail_is_awaited(void *data, const struct gt_process *process)
{
	struct gt_session *session = data;
	struct gt_letter letter;

	if (!is_waited_for(session))
		return false;
	for (uint32_t k = 0; k < session->arena_count; k++)
		for (uint32_t i = 0; i < session->arenas[k].shared.mail_count; i++) {
			letter = (struct gt_letter){ .arena = &session->arenas[k], .slot = i };
			if (find_awaited(session, &letter, process))
				return true;
		}
	return false;
}

void gt_mail_obey_awaited(void *data, const struct gt_process *process)
{
	struct gt_session *session = data;
	struct gt_letter letter;

	for (uint32_t k = 0; k < session->arena_count; k++)
		for (uint32_t i = 0; i < session->arenas[k].shared.mail_count; i++) {
			letter = (struct gt_letter){ .arena = &session->arenas[k], .slot = i };
			/* An error of the sink comes again with what is drained next. */
			if (is_waited_for(session) && find_awaited(session, &letter, process))
				obey(session, &letter);
		}
}

int gt_mail_read(struct gt_session *session)
{
	int done = 0, result = 0;

	for (uint32_t i = 0; result >= 0 && i < session->arena_count; i++) {
		result = read_mail(session, &session->arenas[i]);
		done += result > 0 ? result : 0;
	}
	return result < 0 ? result : done;
}
