/* SPDX-License-Identifier: MIT */
/*
 * What a kernel's functions and threads are told besides: commands (`function:traceoff:3` in
 * set_ftrace_filter) and the lists of threads. Both stand in tables of the arena that the recorder
 * reads; the machine's patcher sends functions that have commands there. Any thread; the machine's
 * lock is held where something changes.
 */
#include <graftrace/selected.h>
#include "core/kernel/kernel_private.h"
#include "core/trace/glob.h"

#define THREADS_SHOWN 1024u /* those with the highest numbers */

/* ---- commands ---- */

static int action_of(enum gt_control_action action)
{
	switch (action) {
	case GT_ACTION_TRACEON:
		return GRAFTRACE_TRIGGER_TRACEON;
	case GT_ACTION_TRACEOFF:
		return GRAFTRACE_TRIGGER_TRACEOFF;
	case GT_ACTION_SNAPSHOT:
		return GRAFTRACE_TRIGGER_SNAPSHOT;
	case GT_ACTION_STACKTRACE:
		return GRAFTRACE_TRIGGER_STACKTRACE;
	case GT_ACTION_DUMP:
		return GRAFTRACE_TRIGGER_DUMP;
	default:
		return -1;
	}
}

/* Slots of one command, or of all (rule GT_ARENA_COMMANDS), in the arena's table. */
static struct graftrace_trigger *next_slot(struct gt_arena_control *control, uint32_t rule,
					   uint32_t *at)
{
	struct graftrace_arena *arena = control->ring->arena;
	struct graftrace_trigger *slots = graftrace_arena_triggers(arena);
	while (*at < arena->trigger_count) {
		struct graftrace_trigger *slot = &slots[(*at)++];
		if (slot->function != 0 && slot->function != GRAFTRACE_TRIGGER_GONE &&
		    (rule == GT_ARENA_COMMANDS || slot->host == rule))
			return slot;
	}
	return NULL;
}

/* A slot that is whole before its function's number is there: CPUs read the table all the time. */
static uint64_t *hits_of(const struct graftrace_arena *arena, const struct graftrace_trigger *slot)
{
	const struct graftrace_trigger *first =
		(const void *)((const char *)arena + arena->triggers_offset);
	return &graftrace_arena_trigger_hits(arena)[slot - first];
}

static bool put_slot(struct gt_arena_control *control, uint32_t rule, uint32_t function)
{
	struct graftrace_arena *arena = control->ring->arena;
	const struct gt_arena_command *command = &control->commands[rule];
	uint32_t at = graftrace_trigger_slot(function);
	for (uint32_t i = 0; i < arena->trigger_count; i++, at++) {
		struct graftrace_trigger *slot =
			&graftrace_arena_triggers(arena)[at & (arena->trigger_count - 1)];
		if (slot->function != 0 && slot->function != GRAFTRACE_TRIGGER_GONE)
			continue;
		slot->action = (uint8_t)action_of(command->action);
		slot->kind = GRAFTRACE_ENTRY_SILENT;
		slot->host = (uint16_t)rule;
		slot->longer_than = slot->skip = 0;
		*hits_of(arena, slot) = 0;
		slot->count = command->count == GT_ACTION_UNLIMITED ? 0 : command->count;
		__atomic_store_n(&slot->function, function, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

static void remove_slots(struct gt_arena_control *control, uint32_t rule)
{
	struct graftrace_trigger *slot;
	uint32_t at = 0;
	while ((slot = next_slot(control, rule, &at)) != NULL)
		__atomic_store_n(&slot->function, GRAFTRACE_TRIGGER_GONE, __ATOMIC_RELEASE);
	control->commands[rule].glob[0] = '\0';
}

static uint32_t find(const struct gt_arena_control *control,
		     const struct gt_control_command *command)
{
	for (uint32_t i = 0; i < GT_ARENA_COMMANDS; i++)
		if (control->commands[i].glob[0] != '\0' &&
		    control->commands[i].action == command->action &&
		    (control->commands[i].count == GT_ACTION_UNLIMITED) ==
			    (command->count == GT_ACTION_UNLIMITED) &&
		    gt_row_is_word(command->function, command->function_bytes,
				   control->commands[i].glob))
			return i;
	return GT_ARENA_COMMANDS;
}

static int add(struct gt_arena_control *control, const struct gt_control_command *command,
	       struct gt_message *message)
{
	const struct gt_arena_names *names = control->ring->names;
	uint32_t rule = 0, matched = 0;
	while (rule < GT_ARENA_COMMANDS && control->commands[rule].glob[0] != '\0')
		rule++;
	if (rule == GT_ARENA_COMMANDS || command->function_bytes >= GT_ARENA_GLOB_BYTES)
		return REFUSE(message, GT_ENOSPC, "at most %d commands of %d bytes",
			      GT_ARENA_COMMANDS, GT_ARENA_GLOB_BYTES - 1);
	struct gt_arena_command *new = &control->commands[rule];
	new->action = command->action;
	new->count = command->count;
	__builtin_memcpy(new->glob, command->function, command->function_bytes);
	new->glob[command->function_bytes] = '\0';
	for (uint32_t i = 1; i <= control->function_count; i++) {
		struct gt_function function;
		if (names->function(names->data, i, &function) != 0 ||
		    !gt_glob_match(new->glob, function.name))
			continue;
		if (++matched > GT_ARENA_COMMAND_FUNCTIONS || !put_slot(control, rule, i)) {
			remove_slots(control, rule);
			return REFUSE(message, GT_ENOSPC, "too many functions with commands");
		}
	}
	if (matched != 0)
		return 0;
	gt_message_set(message, "no function matches '%s'", new->glob);
	new->glob[0] = '\0';
	return GT_EINVAL;
}

int gt_arena_command_set(struct gt_control_target *target, const struct gt_control_command *command,
			 struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	const struct gt_arena_machine *machine = control->machine;
	int error = 0;
	bool later = command->action == GT_ACTION_SNAPSHOT || command->action == GT_ACTION_DUMP;
	if (action_of(command->action) < 0)
		return REFUSE(message, GT_ENOTSUP, "this kernel has no such command");
	if (later && machine->watch == NULL)
		return REFUSE(message, GT_ENOTSUP, "this kernel has no thread for that");
	if (command->action == GT_ACTION_DUMP && machine->print == NULL)
		return REFUSE(message, GT_ENOTSUP, "this kernel has no console for that");
	gt_arena_lock(control);
	uint32_t rule = find(control, command);
	if (rule != GT_ARENA_COMMANDS)
		remove_slots(control, rule); /* counts begin anew */
	error = add(control, command, message);
	gt_arena_control_patch(control);
	if (error == 0 && later)
		machine->watch(machine->data);
	gt_arena_unlock(control);
	return error;
}

int gt_arena_command_remove(struct gt_control_target *target,
			    const struct gt_control_command *command, struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	gt_arena_lock(control);
	uint32_t rule = find(control, command);
	if (rule != GT_ARENA_COMMANDS) {
		remove_slots(control, rule);
		gt_arena_control_patch(control);
	}
	gt_arena_unlock(control);
	if (rule == GT_ARENA_COMMANDS)
		return REFUSE(message, GT_EINVAL, "no such command is set");
	return 0;
}

/* Each function counts for itself: the most that one has left. */
static uint64_t most_left(struct gt_arena_control *control, uint32_t rule)
{
	const uint64_t count = control->commands[rule].count;
	const struct graftrace_trigger *slot;
	uint64_t most = 0;
	for (uint32_t at = 0; (slot = next_slot(control, rule, &at)) != NULL;) {
		uint64_t hits =
			__atomic_load_n(hits_of(control->ring->arena, slot), __ATOMIC_RELAXED);
		if (hits < count && count - hits > most)
			most = count - hits;
	}
	return most;
}

static uint32_t rule_at(const struct gt_arena_control *control, uint64_t index)
{
	uint32_t rule = 0;
	for (; rule < GT_ARENA_COMMANDS; rule++)
		if (control->commands[rule].glob[0] != '\0' && index-- == 0)
			break;
	return rule;
}

int gt_arena_command_read(struct gt_control_target *target, uint64_t index,
			  struct gt_control_command *command, char *text, size_t room)
{
	struct gt_arena_control *control = gt_arena_self(target);
	gt_arena_lock(control);
	const uint32_t rule = rule_at(control, index);
	if (rule != GT_ARENA_COMMANDS) {
		const struct gt_arena_command *from = &control->commands[rule];
		*command = (struct gt_control_command){ .function = from->glob,
							.function_bytes = gt_row_length(from->glob),
							.action = from->action,
							.count = from->count };
		gt_control_command_copy(command, text, room);
		if (from->count != GT_ACTION_UNLIMITED)
			command->count = most_left(control, rule);
	}
	gt_arena_unlock(control);
	return rule == GT_ARENA_COMMANDS ? GT_ENOENT : 0;
}

void gt_arena_command_patch(struct gt_arena_control *control)
{
	struct graftrace_trigger *slot;
	/* all slots first: a function may have several */
	for (uint32_t at = 0; (slot = next_slot(control, GT_ARENA_COMMANDS, &at)) != NULL;) {
		uint8_t wanted = control->wanted[slot->function - 1];
		slot->kind = wanted == GRAFTRACE_ENTRY_OFF ? GRAFTRACE_ENTRY_SILENT : wanted;
	}
	for (uint32_t at = 0; (slot = next_slot(control, GT_ARENA_COMMANDS, &at)) != NULL;)
		control->wanted[slot->function - 1] = GRAFTRACE_ENTRY_TRIGGER;
}

/* ---- what is done later, by a thread of the kernel's ---- */

void gt_arena_control_note(struct gt_arena_control *control, uint32_t action)
{
	if (action < 32)
		__atomic_fetch_or(&control->noted, 1u << action, __ATOMIC_RELEASE);
}

static void dump(struct gt_arena_control *control)
{
	static const struct gt_control_scope all = { GT_SCOPE_ALL, 0 };
	const struct gt_arena_machine *machine = control->machine;
	struct gt_message message;
	char text[512];
	void *reader;
	if (gt_arena_reader_open(control, &all, false, NULL, &reader, &message) != 0)
		return;
	int64_t got;
	while ((got = gt_text_read(&((struct gt_arena_reader *)reader)->text, text, sizeof(text))) >
	       0)
		machine->print(machine->data, text, (size_t)got);
	gt_arena_reader_close(control, reader);
}

void gt_arena_control_act(struct gt_arena_control *control)
{
	static const struct gt_control_scope all = { GT_SCOPE_ALL, 0 };
	struct gt_message message;
	uint32_t noted = __atomic_exchange_n(&control->noted, 0, __ATOMIC_ACQUIRE);
	if (noted & 1u << GRAFTRACE_TRIGGER_SNAPSHOT)
		gt_arena_snapshot(&control->control, GT_SNAPSHOT_TAKE, &all, &message);
	if (noted & 1u << GRAFTRACE_TRIGGER_DUMP)
		dump(control);
}

bool gt_arena_control_must_act(const struct gt_arena_control *control)
{
	for (uint32_t i = 0; i < GT_ARENA_COMMANDS; i++)
		if (control->commands[i].glob[0] != '\0' &&
		    (control->commands[i].action == GT_ACTION_SNAPSHOT ||
		     control->commands[i].action == GT_ACTION_DUMP))
			return true;
	return gt_arena_rules_take_snapshots(control) ||
	       __atomic_load_n(&control->noted, __ATOMIC_RELAXED) != 0;
}

/* ---- threads ---- */

static uint32_t *numbers_of(struct gt_arena_control *control, enum gt_control_threads which)
{
	struct graftrace_selected *selected = graftrace_arena_selected(control->ring->arena);
	return which == GT_CONTROL_PIDS ? selected->only : selected->except;
}

int gt_arena_thread(struct gt_control_target *target, enum gt_control_threads which, uint32_t index,
		    uint32_t *tid)
{
	const uint32_t *numbers = numbers_of(gt_arena_self(target), which);
	*tid = index < GRAFTRACE_SELECTED_SLOTS ? __atomic_load_n(&numbers[index], __ATOMIC_RELAXED)
						: 0;
	return *tid != 0 ? 0 : GT_ENOENT;
}

int gt_arena_threads_set(struct gt_control_target *target, enum gt_control_threads which,
			 const uint32_t *tids, uint32_t count, struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	struct graftrace_arena *arena = control->ring->arena;
	uint32_t *numbers = numbers_of(control, which);
	if (count >= GRAFTRACE_SELECTED_SLOTS)
		return REFUSE(message, GT_ENOSPC, "too many threads");
	gt_arena_lock(control);
	for (uint32_t i = 0; i < GRAFTRACE_SELECTED_SLOTS; i++)
		__atomic_store_n(&numbers[i], i < count ? tids[i] : 0, __ATOMIC_RELAXED);
	__atomic_store_n(which == GT_CONTROL_PIDS ? &arena->selected : &arena->left_out, count != 0,
			 __ATOMIC_RELEASE);
	/* the interrupt that stops the CPUs makes them look */
	gt_arena_control_patch(control);
	gt_arena_unlock(control);
	return 0;
}

/* The index'th of the threads with the highest numbers, 0: behind the last. */
static uint32_t newest_thread(const struct gt_arena_machine *machine, uint32_t index)
{
	/* how many there have been: their numbers are in a row */
	uint32_t low = 0, high = 1;
	while (machine->thread_number(machine->data, high - 1) != 0 && high < 1u << 30)
		high *= 2;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (machine->thread_number(machine->data, middle - 1) != 0)
			low = middle;
		else
			high = middle;
	}
	uint32_t first = low > THREADS_SHOWN ? low - THREADS_SHOWN : 0;
	return index < low - first ? machine->thread_number(machine->data, first + index) : 0;
}

int gt_arena_known_thread(struct gt_control_target *target, uint32_t index, uint32_t *tid,
			  char comm[16])
{
	struct gt_arena_control *control = gt_arena_self(target);
	const struct gt_arena_machine *machine = control->machine;
	const struct gt_arena_names *names = control->ring->names;
	*tid = machine->known_thread != NULL ? machine->known_thread(machine->data, index)
					     : newest_thread(machine, index);
	if (*tid == 0)
		return GT_ENOENT;
	if (names->thread(names->data, *tid, comm) != 0)
		__builtin_memcpy(comm, "<...>", sizeof("<...>"));
	return 0;
}
