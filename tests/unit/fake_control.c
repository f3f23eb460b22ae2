/* SPDX-License-Identifier: MIT */
/* See fake_control.h. */
#include <stdio.h>
#include <string.h>

#include "core/trace/glob.h"
#include "tests/unit/fake_control.h"

static const char *const names[] = { "alpha", "beta", "beta_two", "gamma" };
#define NAMES (sizeof(names) / sizeof(names[0]))

static struct fake_control *fake_of(struct gt_control_target *target)
{
	return target->data;
}

static int get(struct gt_control_target *target, enum gt_control_value which, uint64_t *value)
{
	*value = fake_of(target)->values[which];
	return 0;
}

static int set(struct gt_control_target *target, enum gt_control_value which, uint64_t value,
	       struct gt_message *message)
{
	uint64_t *values = fake_of(target)->values;

	if (which == GT_CONTROL_OPTIONS_ON || which == GT_CONTROL_OPTIONS_OFF) {
		if (value & GT_OPTION_OVERWRITE) {
			snprintf(message->text, sizeof(message->text), "not while it runs");
			return GT_EINVAL;
		}
		value = gt_control_options_with(values[GT_CONTROL_OPTIONS], which, value);
		which = GT_CONTROL_OPTIONS;
	}
	values[which] = value;
	return 0;
}

static int list_open(struct gt_control_target *target, enum gt_control_list which, void **list,
		     struct gt_message *message)
{
	(void)message;
	if (which != GT_CONTROL_AVAILABLE && !fake_of(target)->set[which])
		return 1;
	fake_of(target)->opened++;
	*list = fake_of(target)->lists[which];
	return 0;
}

static int list_read(struct gt_control_target *target, void *list, uint64_t index,
		     struct gt_control_name *name)
{
	struct fake_control *fake = fake_of(target);

	for (size_t i = 0; i < NAMES; i++) {
		char word[64];

		snprintf(word, sizeof(word), "%s ", names[i]);
		if (list != fake->lists[GT_CONTROL_AVAILABLE] && strstr(list, word) == NULL)
			continue;
		if (index-- > 0)
			continue;
		name->name = names[i];
		name->module = i == 3 ? "libfake.so.1" : "";
		return 0;
	}
	return GT_ENOENT;
}

static void list_close(struct gt_control_target *target, void *list)
{
	(void)list;
	fake_of(target)->opened--;
}

static int edit_open(struct gt_control_target *target, enum gt_control_list which, bool empty,
		     void **edit, struct gt_message *message)
{
	struct fake_control *fake = fake_of(target);

	(void)message;
	fake->opened++;
	fake->edit_list = (int)which;
	strcpy(fake->edit, empty ? "" : fake->lists[which]);
	*edit = fake->edit;
	return 0;
}

static int edit_add(struct gt_control_target *target, void *edit, const char *glob, size_t bytes,
		    const char *module, size_t module_bytes, bool plain, struct gt_message *message)
{
	bool found = false;

	(void)target;
	if (strlen(edit) > 4000) {
		snprintf(message->text, sizeof(message->text), "no memory");
		return GT_ENOMEM;
	}
	for (size_t i = 0; i < NAMES; i++) {
		char word[64];

		snprintf(word, sizeof(word), "%.*s", (int)bytes, glob);
		if (module != NULL &&
		    (i != 3 || module_bytes != 12 || memcmp(module, "libfake.so.1", 12) != 0))
			continue;
		if (plain ? strcmp(word, names[i]) == 0 : gt_glob_match(word, names[i])) {
			strcat(strcat(edit, names[i]), " ");
			found = true;
		}
	}
	snprintf(message->text, sizeof(message->text), "no function matches");
	return found ? 0 : GT_EINVAL;
}

static int edit_remove(struct gt_control_target *target, void *edit, const char *glob, size_t bytes,
		       const char *module, size_t module_bytes, struct gt_message *message)
{
	char word[64];
	char *at;

	(void)target;
	(void)module;
	(void)module_bytes;
	snprintf(word, sizeof(word), "%.*s ", (int)bytes, glob);
	at = strstr(edit, word);
	if (at == NULL) {
		snprintf(message->text, sizeof(message->text), "not in the list");
		return GT_EINVAL;
	}
	memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
	return 0;
}

static int edit_close(struct gt_control_target *target, void *edit, struct gt_message *message)
{
	struct fake_control *fake = fake_of(target);

	(void)message;
	fake->opened--;
	strcpy(fake->lists[fake->edit_list], edit);
	fake->set[fake->edit_list] = fake->edit[0] != '\0';
	return 0;
}

struct fake_text {
	bool consume;
	size_t at;
};

static int text_open(struct gt_control_target *target, const struct gt_control_scope *scope,
		     bool consume, void **text, struct gt_message *message)
{
	static struct fake_text readers[8];
	struct fake_control *fake = fake_of(target);
	struct fake_text *reader = &readers[fake->opened % 8];

	fake->scope = *scope;
	if (consume && fake->pipe_busy) {
		snprintf(message->text, sizeof(message->text), "trace_pipe has a reader");
		return GT_EBUSY;
	}
	fake->opened++;
	fake->pipe_busy |= consume;
	*reader = (struct fake_text){ consume, 0 };
	*text = reader;
	return 0;
}

static int64_t text_read(struct gt_control_target *target, void *text, char *buffer, size_t bytes,
			 struct gt_message *message)
{
	struct fake_control *fake = fake_of(target);
	struct fake_text *reader = text;
	size_t *at = reader->consume ? &fake->pipe_at : &reader->at;
	size_t length = strlen(FAKE_TRACE);
	size_t left = length * (reader->consume ? 1 : fake->repeat) - *at;

	(void)message;
	if (left == 0)
		return reader->consume && !fake->pipe_ended ? GT_EAGAIN : 0;
	if (bytes > left)
		bytes = left;
	for (size_t i = 0; i < bytes; i++)
		buffer[i] = FAKE_TRACE[(*at + i) % length];
	*at += bytes;
	return (int64_t)bytes;
}

static void text_close(struct gt_control_target *target, void *text)
{
	struct fake_text *reader = text;

	fake_of(target)->opened--;
	if (reader->consume)
		fake_of(target)->pipe_busy = false;
}

/* One page for all CPUs: its text. */
static int raw_open(struct gt_control_target *target, uint32_t cpu, void **raw,
		    struct gt_message *message)
{
	struct gt_control_scope scope = { GT_SCOPE_CPU, cpu };

	return text_open(target, &scope, true, raw, message);
}

static int clear(struct gt_control_target *target, const struct gt_control_scope *scope,
		 struct gt_message *message)
{
	(void)message;
	fake_of(target)->scope = *scope;
	fake_of(target)->cleared++;
	return 0;
}

/* Each operation under the lock. */
#define LOCKED(type, name, parameters, arguments)             \
	static type locked_##name parameters                  \
	{                                                     \
		pthread_mutex_lock(&fake_of(target)->lock);   \
		type result = name arguments;                 \
		pthread_mutex_unlock(&fake_of(target)->lock); \
		return result;                                \
	}

LOCKED(int, get, (struct gt_control_target * target, enum gt_control_value which, uint64_t *value),
       (target, which, value))

LOCKED(int, set,
       (struct gt_control_target * target, enum gt_control_value which, uint64_t value,
	struct gt_message *message),
       (target, which, value, message))

LOCKED(int, list_open,
       (struct gt_control_target * target, enum gt_control_list which, void **list,
	struct gt_message *message),
       (target, which, list, message))

LOCKED(int, list_read,
       (struct gt_control_target * target, void *list, uint64_t index,
	struct gt_control_name *name),
       (target, list, index, name))

static void locked_list_close(struct gt_control_target *target, void *list)
{
	pthread_mutex_lock(&fake_of(target)->lock);
	list_close(target, list);
	pthread_mutex_unlock(&fake_of(target)->lock);
}

LOCKED(int, edit_open,
       (struct gt_control_target * target, enum gt_control_list which, bool empty, void **edit,
	struct gt_message *message),
       (target, which, empty, edit, message))

LOCKED(int, edit_add,
       (struct gt_control_target * target, void *edit, const char *glob, size_t bytes,
	const char *module, size_t module_bytes, bool plain, struct gt_message *message),
       (target, edit, glob, bytes, module, module_bytes, plain, message))

LOCKED(int, edit_remove,
       (struct gt_control_target * target, void *edit, const char *glob, size_t bytes,
	const char *module, size_t module_bytes, struct gt_message *message),
       (target, edit, glob, bytes, module, module_bytes, message))

LOCKED(int, edit_close, (struct gt_control_target * target, void *edit, struct gt_message *message),
       (target, edit, message))

LOCKED(int, text_open,
       (struct gt_control_target * target, const struct gt_control_scope *scope, bool consume,
	void **text, struct gt_message *message),
       (target, scope, consume, text, message))

LOCKED(int64_t, text_read,
       (struct gt_control_target * target, void *text, char *buffer, size_t bytes,
	struct gt_message *message),
       (target, text, buffer, bytes, message))

static void locked_text_close(struct gt_control_target *target, void *text)
{
	pthread_mutex_lock(&fake_of(target)->lock);
	text_close(target, text);
	pthread_mutex_unlock(&fake_of(target)->lock);
}

LOCKED(int, clear,
       (struct gt_control_target * target, const struct gt_control_scope *scope,
	struct gt_message *message),
       (target, scope, message))

static int stats(struct gt_control_target *target, const struct gt_control_scope *scope,
		 struct gt_control_stats *stats, struct gt_message *message)
{
	(void)message;
	fake_of(target)->scope = *scope;
	*stats = (struct gt_control_stats){ 1, 2, 0, 8, 5, 7, 1500000, 62000003000, 0 };
	return 0;
}

static int mark(struct gt_control_target *target, const struct gt_control_writer *writer,
		const char *bytes, size_t count, bool raw, struct gt_message *message)
{
	struct fake_control *fake = fake_of(target);

	if (!fake->values[GT_CONTROL_TRACING_ON]) {
		snprintf(message->text, sizeof(message->text), "tracing is off");
		return GT_EBADF;
	}
	fake->marks++;
	snprintf(fake->mark, sizeof(fake->mark), "%u %s%.*s", writer->tid, raw ? "raw " : "",
		 (int)count, bytes);
	return 0;
}

static int command_set(struct gt_control_target *target, const struct gt_control_command *command,
		       struct gt_message *message)
{
	struct fake_control *fake = fake_of(target);

	if (!gt_glob_match("alpha", "alpha") || command->function_bytes >= sizeof(fake->function)) {
		snprintf(message->text, sizeof(message->text), "no function matches");
		return GT_EINVAL;
	}
	fake->command = *command;
	memcpy(fake->function, command->function, command->function_bytes);
	fake->command.function = fake->function;
	fake->has_command = true;
	return 0;
}

static int command_remove(struct gt_control_target *target,
			  const struct gt_control_command *command, struct gt_message *message)
{
	struct fake_control *fake = fake_of(target);

	if (!fake->has_command || fake->command.action != command->action) {
		snprintf(message->text, sizeof(message->text), "no function has it");
		return GT_EINVAL;
	}
	fake->has_command = false;
	return 0;
}

static int command_read(struct gt_control_target *target, uint64_t index,
			struct gt_control_command *command, char *text, size_t room)
{
	struct fake_control *fake = fake_of(target);

	if (!fake->has_command || index > 0)
		return GT_ENOENT;
	*command = fake->command;
	gt_control_command_copy(command, text, room);
	return 0;
}

static int thread(struct gt_control_target *target, enum gt_control_threads which, uint32_t index,
		  uint32_t *tid)
{
	struct fake_control *fake = fake_of(target);

	if (index >= fake->tid_count[which])
		return GT_ENOENT;
	*tid = fake->tids[which][index];
	return 0;
}

static int threads_set(struct gt_control_target *target, enum gt_control_threads which,
		       const uint32_t *tids, uint32_t count, struct gt_message *message)
{
	struct fake_control *fake = fake_of(target);

	(void)message;
	if (count > 0)
		memcpy(fake->tids[which], tids, count * sizeof(*tids));
	fake->tid_count[which] = count;
	return 0;
}

static int instance(struct gt_control_target *target, uint32_t index,
		    struct gt_control_target **instance, const char **name)
{
	struct fake_control *fake = fake_of(target);

	if (index > 0 || fake->instance_name[0] == '\0')
		return GT_ENOENT;
	*instance = &fake->instance;
	*name = fake->instance_name;
	return 0;
}

static int instance_make(struct gt_control_target *target, const char *name, size_t bytes,
			 struct gt_message *message)
{
	struct fake_control *fake = fake_of(target);

	if (fake->instance_name[0] != '\0') {
		snprintf(message->text, sizeof(message->text), "it is there already");
		return GT_EEXIST;
	}
	snprintf(fake->instance_name, sizeof(fake->instance_name), "%.*s", (int)bytes, name);
	fake->instance = fake->control;
	fake->instance.top = &fake->control;
	return 0;
}

static int instance_remove(struct gt_control_target *target, const char *name, size_t bytes,
			   struct gt_message *message)
{
	struct fake_control *fake = fake_of(target);

	if (strlen(fake->instance_name) != bytes || memcmp(fake->instance_name, name, bytes) != 0) {
		snprintf(message->text, sizeof(message->text), "there is none of that name");
		return GT_ENOENT;
	}
	fake->instance_name[0] = '\0';
	return 0;
}

static const struct gt_control_ops ops = {
	.get = locked_get,
	.set = locked_set,
	.list_open = locked_list_open,
	.list_read = locked_list_read,
	.list_close = locked_list_close,
	.edit_open = locked_edit_open,
	.edit_add = locked_edit_add,
	.edit_remove = locked_edit_remove,
	.edit_close = locked_edit_close,
	.text_open = locked_text_open,
	.text_read = locked_text_read,
	.text_close = locked_text_close,
	.raw_open = raw_open,
	.raw_read = locked_text_read,
	.raw_close = locked_text_close,
	.clear = locked_clear,
	.stats = stats,
	.mark = mark,
	.command_set = command_set,
	.command_remove = command_remove,
	.command_read = command_read,
	.thread = thread,
	.threads_set = threads_set,
	.instance = instance,
	.instance_make = instance_make,
	.instance_remove = instance_remove,
};

static uint32_t writer_count(struct gt_target *target)
{
	return ((struct fake_control *)target->data)->writers;
}

static int writer(struct gt_target *target, uint32_t index, struct gt_writer *writer)
{
	if (index >= writer_count(target))
		return GT_ENOENT;
	*writer = (struct gt_writer){
		.generation = index + 1,
		.pid = 100,
		.tid = 100 + index,
		.comm = "prog\001",
		.first = 2,
		.next = 7,
		.lost = { 5 + index, 1, 2, 3, 4 },
	};
	return 0;
}

static const struct gt_ring_ops view_ring = { .writer_count = writer_count, .writer = writer };

void fake_control_init(struct fake_control *fake, enum gt_control_kind kind)
{
	memset(fake, 0, sizeof(*fake));
	fake->control = (struct gt_control_target){
		.ops = &ops,
		.data = fake,
		.kind = kind,
		.view = &fake->view,
		.log = &fake->log,
	};
	fake->view.cpu_count = 2;
	fake->values[GT_CONTROL_NOW_NS] = 5270468000;
	fake->values[GT_CONTROL_CMDLINES] = 128;
	fake->values[GT_CONTROL_CPUMASK] = 3;
	fake->view.ring = &view_ring;
	fake->view.data = fake;
	fake->view.clock = (struct gt_clock){ 0, 0, 1, 0 };
	fake->writers = 2;
	fake->repeat = 1;
	pthread_mutex_init(&fake->lock, NULL);
	fake->values[GT_CONTROL_TRACING_ON] = 1;
	fake->values[GT_CONTROL_TRACER] = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	fake->values[GT_CONTROL_OPTIONS] = GT_OPTIONS_DEFAULT;
	fake->values[GT_CONTROL_BUFFER_BYTES] = 64 << 20;
	fake->values[GT_CONTROL_TOTAL_BYTES] = 64 << 20;
}
