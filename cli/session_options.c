/* SPDX-License-Identifier: MIT */
/*
 * See session_options.h. When options are parsed there is no program yet. Their control files
 * belong to a target whose operations keep what is written, and the session starts with that.
 */
#define _GNU_SOURCE
#include "cli/session_options.h"
#include "core/trace/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/agent/values.h"
#include "attach/session/session.h"
#include "cli/command.h"
#include "cli/probe_lines.h"
#include "cli/values.h"
#include "core/control/control.h"
#include "core/trace/event_trigger.h"
#include "core/trace/hist.h"
#include "core/trace/synthetic.h"
#include "port/host/memory.h"
#include "serve/live/live.h"

/* The file that an option writes to, and what it writes: its value, or a fixed text. */
static const struct row {
	int option;
	const char *file;
	const char *text;
	bool is_list;
} rows[] = {
	{ 'p', "current_tracer", NULL, false },
	{ 'l', "set_ftrace_filter", NULL, true },
	{ 'n', "set_ftrace_notrace", NULL, true },
	{ 'g', "set_graph_function", NULL, true },
	{ 'N', "set_graph_notrace", NULL, true },
	{ 'b', "buffer_size_kb", NULL, false },
	{ 'D', "max_graph_depth", NULL, false },
	{ GT_CHOICE_THRESHOLD, "tracing_thresh", NULL, false },
	{ GT_CHOICE_OVERWRITE, "options/overwrite", "1", false },
	{ GT_CHOICE_NO_FORK, "options/function-fork", "0", false },
};

static int no_memory(struct gt_message *message)
{
	return gt_fail(message, GT_ENOMEM, "no memory");
}

/* The target that is written to */

static struct gt_session_choice *choice_of(struct gt_control_target *target)
{
	return target->data;
}

const char *const *gt_session_choice_list(const struct gt_session_choice *choice,
					  enum gt_list which)
{
	static const char *const none[] = { NULL };
	const char *const *words = gt_word_list_words(choice->settings.lists[which]);

	return words != NULL ? words : none;
}

static int append(const char ***list, const char *word, size_t bytes)
{
	const char **grown;
	size_t count = 0;

	while (*list != NULL && (*list)[count] != NULL)
		count++;
	grown = realloc(*list, (count + 2) * sizeof(*grown));
	if (grown == NULL)
		return GT_ENOMEM;
	*list = grown;
	grown[count] = strndup(word, bytes);
	grown[count + 1] = NULL;
	return grown[count] != NULL ? 0 : GT_ENOMEM;
}

static int get(struct gt_control_target *target, enum gt_control_value which, uint64_t *value)
{
	const struct gt_session_choice *choice = choice_of(target);

	switch (which) {
	case GT_CONTROL_TRACER:
		*value = choice->settings.tracer;
		return 0;
	case GT_CONTROL_MAX_DEPTH:
		*value = choice->settings.max_depth;
		return 0;
	case GT_CONTROL_THRESHOLD_NS:
		*value = choice->settings.threshold_ns;
		return 0;
	case GT_CONTROL_BUFFER_BYTES:
	case GT_CONTROL_TOTAL_BYTES:
		*value = choice->buffer_bytes;
		return 0;
	case GT_CONTROL_OPTIONS:
		*value = GT_OPTIONS_DEFAULT | (choice->overwrite ? GT_OPTION_OVERWRITE : 0) |
			 (choice->no_fork ? 0 : GT_OPTION_FUNCTION_FORK);
		return 0;
	default:
		return GT_ENOTSUP;
	}
}

static int set(struct gt_control_target *target, enum gt_control_value which, uint64_t value,
	       struct gt_message *message)
{
	struct gt_session_choice *choice = choice_of(target);
	uint64_t options = 0;

	switch (which) {
	case GT_CONTROL_TRACER:
		choice->settings.tracer = (enum graftrace_tracer)value;
		return 0;
	case GT_CONTROL_MAX_DEPTH:
		choice->settings.max_depth = (uint32_t)value;
		return 0;
	case GT_CONTROL_THRESHOLD_NS:
		choice->settings.threshold_ns = value;
		return 0;
	case GT_CONTROL_BUFFER_BYTES:
		choice->buffer_bytes = value;
		return 0;
	case GT_CONTROL_OPTIONS_ON:
	case GT_CONTROL_OPTIONS_OFF:
		get(target, GT_CONTROL_OPTIONS, &options);
		options = gt_control_options_with(options, which, value);
		choice->overwrite = (options & GT_OPTION_OVERWRITE) != 0;
		choice->no_fork = (options & GT_OPTION_FUNCTION_FORK) == 0;
		return 0;
	default:
		return gt_fail(message, GT_ENOTSUP, "this cannot be set here");
	}
}

int gt_settings_add(struct gt_trace_settings *settings, enum gt_list which, const char *word,
		    struct gt_message *message)
{
	const char *const words[] = { word, NULL };
	int error = gt_trace_settings_append(settings, which, &gt_host_memory, words);

	return error == 0 ? 0 : no_memory(message);
}

/* Has an event recorded: a word of gt_event_words_match(). */
static int add_event(struct gt_session_choice *choice, const char *word, struct gt_message *message)
{
	return gt_settings_add(&choice->settings, GT_LIST_EVENTS, word, message);
}

struct edit {
	enum gt_list which;
};

static int edit_open(struct gt_control_target *target, enum gt_control_list which, bool empty,
		     void **edit_out, struct gt_message *message)
{
	struct edit *edit = malloc(sizeof(*edit));

	(void)target;
	(void)empty; /* options only add to a list */
	if (edit == NULL)
		return no_memory(message);
	edit->which = gt_control_setting(which);
	*edit_out = edit;
	return 0;
}

static int edit_add(struct gt_control_target *target, void *data, const char *glob, size_t bytes,
		    const char *module, size_t module_bytes, bool plain, struct gt_message *message)
{
	const struct edit *edit = data;
	char *word;
	int error;

	(void)module_bytes;
	(void)plain; /* it is about lines of a list, which is empty yet */
	if (module != NULL)
		return gt_fail(
			message, GT_EINVAL,
			"what the objects are is not known before the program runs: --lib and "
			"--libs name libraries");
	word = strndup(glob, bytes);
	if (word == NULL)
		return no_memory(message);
	error = gt_settings_add(&choice_of(target)->settings, edit->which, word, message);
	free(word);
	return error;
}

/* The place of a word in a list; its end: it is not there. */
static size_t find_word(const char *const *words, const char *word, size_t bytes)
{
	size_t at = 0;

	while (words[at] != NULL &&
	       (strlen(words[at]) != bytes || memcmp(words[at], word, bytes) != 0))
		at++;
	return at;
}

static int edit_remove(struct gt_control_target *target, void *data, const char *glob, size_t bytes,
		       const char *module, size_t module_bytes, struct gt_message *message)
{
	const struct edit *edit = data;
	struct gt_session_choice *choice = choice_of(target);
	const char *const *words = gt_session_choice_list(choice, edit->which);
	const size_t at = find_word(words, glob, bytes);
	struct gt_word_list *shorter;
	const char **kept;
	size_t count = at;
	int error;

	(void)module_bytes;
	if (module != NULL || words[at] == NULL)
		return gt_fail(message, GT_EINVAL, "'%.*s' was not named before",
			       bytes < 80 ? (int)bytes : 80, glob);
	while (words[count] != NULL)
		count++;
	kept = malloc(count * sizeof(*kept));
	if (kept == NULL)
		return no_memory(message);
	memcpy(kept, words, at * sizeof(*kept));
	memcpy(kept + at, words + at + 1, (count - at) * sizeof(*kept)); /* with the NULL */
	error = gt_word_list_create(&gt_host_memory, kept, &shorter);
	free(kept);
	if (error != 0)
		return no_memory(message);
	gt_trace_settings_set_list(&choice->settings, edit->which, shorter);
	gt_word_list_release(shorter);
	return 0;
}

static int edit_close(struct gt_control_target *target, void *edit, struct gt_message *message)
{
	(void)target;
	(void)message;
	free(edit);
	return 0;
}

/* Operations that need a running program. */

static int list_open(struct gt_control_target *target, enum gt_control_list which, void **list,
		     struct gt_message *message)
{
	(void)target;
	(void)which;
	(void)list;
	return gt_fail(message, GT_EINVAL,
		       "a number is a line of available_filter_functions, which is there once the "
		       "program runs: the function's name is wanted");
}

static int command_set(struct gt_control_target *target, const struct gt_control_command *command,
		       struct gt_message *message)
{
	(void)target;
	(void)command;
	return gt_fail(message, GT_EINVAL,
		       "functions with commands are set while the program runs (graftrace set "
		       "set_ftrace_filter FUNCTION:COMMAND); --stop-when ends a recording");
}

static const struct gt_control_ops operations = {
	.list_open = list_open,
	.command_set = command_set,
	.get = get,
	.set = set,
	.edit_open = edit_open,
	.edit_add = edit_add,
	.edit_remove = edit_remove,
	.edit_close = edit_close,
};

/* Options */

int gt_session_choice_init(struct gt_session_choice *choice, enum graftrace_tracer tracer)
{
	*choice = (struct gt_session_choice){
		.settings = { .tracer = tracer, .on = true },
		.buffer_bytes = 64 << 20,
		.library_globs = calloc(1, sizeof(char *)),
		.event_filters = calloc(1, sizeof(char *)),
		.wanted_probes = calloc(1, sizeof(char *)),
		.probes = calloc(1, sizeof(char *)),
		.synthetics = calloc(1, sizeof(char *)),
		.values = calloc(1, sizeof(char *)),
	};
	return choice->library_globs != NULL && choice->event_filters != NULL &&
			       choice->wanted_probes != NULL && choice->probes != NULL &&
			       choice->synthetics != NULL && choice->values != NULL
		       ? 0
		       : GT_ENOMEM;
}

static int write_row(struct gt_session_choice *choice, const struct row *row, const char *text,
		     struct gt_message *message)
{
	struct gt_control_target target = {
		.ops = &operations,
		.data = choice,
		.kind = GT_CONTROL_PROGRAM,
	};
	struct gt_control_node node;
	int error = gt_control_find(&target, row->file, strlen(row->file), &node);
	char *word;

	if (error != 0)
		return gt_fail(message, error, "there is no %s", row->file);
	word = strdup(text);
	if (word == NULL)
		return no_memory(message);
	/* An argument is one word, whatever characters it has: names can have blanks. */
	for (char *at = word; row->is_list && *at != '\0'; at++) {
		if (*at == ' ')
			*at = '?';
	}
	error = gt_control_put(&node, false, word, strlen(word), message);
	free(word);
	return error;
}

/* Converts a value from the option's unit into the file's. */
static int translate(int option, const char *value, char *text, size_t room, bool *direct,
		     uint64_t *number, struct gt_message *message)
{
	int error = 0;

	*direct = false;
	switch (option) {
	case 'b':
		error = gt_value_size(value, number, message);
		*direct = *number < 1024; /* the session knows the minimum */
		snprintf(text, room, "%llu", (unsigned long long)(*number / 1024));
		break;
	case 'D':
		error = gt_value_number(value, 0, UINT32_MAX, number, message);
		snprintf(text, room, "%llu", (unsigned long long)*number);
		break;
	case GT_CHOICE_THRESHOLD:
		error = gt_value_time(value, 1000, number, message);
		*direct = *number % 1000 != 0; /* the file's unit is too coarse for it */
		snprintf(text, room, "%llu", (unsigned long long)(*number / 1000));
		break;
	}
	return error;
}

/* The last event named; NULL: none was. */
static const char *last_event(const struct gt_session_choice *choice)
{
	const struct gt_word_list *events = choice->settings.lists[GT_LIST_EVENTS];

	return events != NULL ? events->words[events->count - 1] : NULL;
}

/* Takes --filter after an event: the filter of the last event named. */
static int take_event_filter(struct gt_session_choice *choice, const char *value,
			     struct gt_message *message)
{
	const char *word = last_event(choice);

	if (word[0] == '!')
		return gt_fail(message, GT_EINVAL,
			       "an event that is left out has no filter: '%.80s'", word);
	return append(&choice->event_filters, word, strlen(word)) == 0 &&
			       append(&choice->event_filters, value, strlen(value)) == 0
		       ? 0
		       : no_memory(message);
}

/* Checks the text of a histogram; whether the event has its fields is seen later. */
static int check_hist(const char *text, struct gt_message *message)
{
	struct gt_hist_error error;
	struct gt_hist hist;

	if (gt_hist_parse(text, strlen(text), NULL, NULL, &hist, &error) == 0)
		return 0;
	return gt_fail(message, GT_EINVAL, "'hist:%.80s': %s%s%.80s", text,
		       error.text != NULL ? error.text
					  : "not a histogram: keys=FIELD[,FIELD…][:vals=FIELD…]"
					    "[:sort=FIELD…][:size=128…131072]",
		       error.part[0] != '\0' ? ": " : "", error.part);
}

/* Takes --trigger after an event: the trigger of the last event named. */
static int take_trigger(struct gt_session_choice *choice, const char *value,
			struct gt_message *message)
{
	struct gt_session_event_trigger *grown, *made;
	struct gt_event_trigger_text parsed;
	const char *word = last_event(choice);

	if (word == NULL || strchr(word, ':') == NULL || strpbrk(word, "!*?[") != NULL)
		return gt_fail(message, GT_EINVAL,
			       "--trigger stands behind -e SYSTEM:NAME, of one event");
	if (gt_event_trigger_parse(value, strlen(value), &parsed) != 0 || parsed.remove)
		return gt_fail(message, GT_EINVAL,
			       "'%.80s' is not a trigger: COMMAND[:COUNT][ if FILTER], COMMAND one "
			       "of " GT_EVENT_TRIGGER_NAMES,
			       value);
	if (parsed.trigger.hist != NULL && check_hist(parsed.hist, message) != 0)
		return GT_EINVAL;
	grown = realloc(choice->event_triggers, (choice->event_trigger_count + 1) * sizeof(*grown));
	if (grown == NULL)
		return no_memory(message);
	choice->event_triggers = grown;
	made = &grown[choice->event_trigger_count++];
	*made = (struct gt_session_event_trigger){ strdup(word), parsed.trigger };
	if (parsed.trigger.filter != NULL)
		made->trigger.filter = strdup(parsed.filter);
	if (parsed.trigger.target != NULL)
		made->trigger.target = strdup(parsed.target);
	if (parsed.trigger.hist != NULL)
		made->trigger.hist = strdup(parsed.hist);
	return made->word != NULL &&
			       (parsed.trigger.filter == NULL || made->trigger.filter != NULL) &&
			       (parsed.trigger.target == NULL || made->trigger.target != NULL) &&
			       (parsed.trigger.hist == NULL || made->trigger.hist != NULL)
		       ? 0
		       : no_memory(message);
}

/* Takes -A FUNC@arg1 or -R FUNC: adds a word to the list, after a check. */
static int take_values(struct gt_session_choice *choice, char option, const char *value,
		       struct gt_message *message)
{
	struct gt_values *values;
	const char *words[2] = { NULL, NULL };
	char *word = NULL;
	int error;

	if (asprintf(&word, "%c%s", option, value) < 0)
		return no_memory(message);
	words[0] = word;
	error = gt_values_new(words, &values, message);
	if (error == 0) {
		gt_values_free(values);
		error = append(&choice->values, word, strlen(word)) == 0 ? 0 : no_memory(message);
	}
	free(word);
	return error;
}

/* Defines a synthetic event and enables it: histograms make it happen. */
static int take_synthetic(struct gt_session_choice *choice, const char *line,
			  struct gt_message *message)
{
	struct gt_synthetic made;
	struct gt_probe_error wrong = { "", 0 };
	char word[GT_SYNTHETIC_BYTES + sizeof(GT_EVENT_SYNTHETIC ":")];

	if (gt_synthetic_parse(line, strlen(line), &made, &wrong) != 0)
		return gt_fail(message, GT_EINVAL, "--synthetic '%s': %s, at '%.40s'", line,
			       wrong.text, wrong.at <= strlen(line) ? line + wrong.at : "");
	snprintf(word, sizeof(word), "%s:%s", GT_EVENT_SYNTHETIC, made.format.name);
	if (append(&choice->synthetics, line, strlen(line)) != 0)
		return no_memory(message);
	return add_event(choice, word, message);
}

int gt_session_choice_take(struct gt_session_choice *choice, int option, const char *value,
			   struct gt_message *message)
{
	uint64_t number = 0;
	bool direct;
	char text[32];
	int error;

	if (option == GT_CHOICE_TRIGGER)
		return take_trigger(choice, value, message);
	if (option == GT_CHOICE_FILTER && last_event(choice) != NULL)
		return take_event_filter(choice, value, message);
	if (option == GT_CHOICE_FILTER)
		option = 'l';
	choice->names_functions |= option == 'p' || option == 'l' || option == 'n' ||
				   option == 'g' || option == 'N' || option == 'D' ||
				   option == GT_CHOICE_THRESHOLD;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].option != option)
			continue;
		text[0] = '\0';
		error = translate(option, value, text, sizeof(text), &direct, &number, message);
		if (error != 0)
			return error;
		if (direct && option == 'b')
			choice->buffer_bytes = number;
		else if (direct)
			choice->settings.threshold_ns = number;
		else
			error = write_row(choice, &rows[i],
					  rows[i].text != NULL ? rows[i].text
					  : text[0] != '\0'    ? text
							       : value,
					  message);
		if (error != 0 && option == 'p')
			gt_message_set(
				message,
				"there is no tracer '%.80s': nop, function and function_graph are",
				value);
		return error;
	}
	switch (option) { /* options without a file of Linux's: they choose what is recorded */
	case GT_CHOICE_LIBS:
		choice->libraries = true;
		return 0;
	case GT_CHOICE_LIB:
		return append(&choice->library_globs, value, strlen(value)) == 0
			       ? 0
			       : no_memory(message);
	case 'e':
		return add_event(choice, value, message);
	case GT_CHOICE_PROBE:
		return append(&choice->wanted_probes, value, strlen(value)) == 0
			       ? 0
			       : no_memory(message);
	case GT_CHOICE_SYNTHETIC:
		return take_synthetic(choice, value, message);
	case GT_CHOICE_ARGS:
		return append(&choice->values, "a", 1) == 0 ? 0 : no_memory(message);
	case GT_CHOICE_RETVAL:
		return append(&choice->values, "r", 1) == 0 ? 0 : no_memory(message);
	case 'A':
	case 'R':
		return take_values(choice, (char)option, value, message);
	case GT_CHOICE_LIBCALL:
		choice->libcalls = true;
		return 0;
	case GT_CHOICE_UNPREPARED:
		choice->unprepared = true;
		return 0;
	case GT_CHOICE_BREAKPOINTS:
		choice->breakpoints = true;
		return 0;
	case GT_CHOICE_UPROBE_SAFE:
		choice->uprobe_safe = true;
		return 0;
	case GT_CHOICE_NO_DEMANGLE:
		choice->no_demangle = true;
		return 0;
	}
	return GT_ENOENT;
}

struct probe_work {
	struct gt_session_choice *choice;
	struct gt_message *message;
};

/* Takes a line of uprobe_events, and the name by which its event is enabled. */
static int take_probe(void *data, const char *line, const char *event)
{
	const struct probe_work *work = data;

	if (append(&work->choice->probes, line, strlen(line)) != 0)
		return no_memory(work->message);
	return add_event(work->choice, event, work->message);
}

int gt_session_choice_probes(struct gt_session_choice *choice, const char *program,
			     struct gt_message *message)
{
	struct probe_work work = { choice, message };
	int error = 0;

	for (size_t i = 0; error == 0 && choice->wanted_probes[i] != NULL; i++)
		error = gt_probe_lines(choice->wanted_probes[i], program, take_probe, &work,
				       message);
	return error;
}

struct report_work {
	const struct gt_session_choice *choice;
	const char *name;
};

static int report_place(void *data, const struct gt_event_format *event, bool enabled,
			const char *reason)
{
	const struct report_work *work = data;

	if (!enabled && reason != NULL && gt_event_hidden_fields(event) != 0)
		gt_complain(work->name, "%s:%s is not recorded (%s)", event->system, event->name,
			    reason);
	return 0;
}

void gt_session_choice_report(const struct gt_session_choice *choice, struct gt_session *session,
			      const char *name)
{
	struct report_work work = { choice, name };

	if (choice->probes[0] != NULL)
		gt_session_each_event(session, report_place, &work);
}

bool gt_session_choice_has_hists(const struct gt_session_choice *choice)
{
	for (size_t i = 0; i < choice->event_trigger_count; i++)
		if (choice->event_triggers[i].trigger.hist != NULL)
			return true;
	return false;
}

void gt_session_choice_session(const struct gt_session_choice *choice,
			       struct gt_session_options *session)
{
	session->settings = choice->settings;
	session->event_filters = choice->event_filters;
	session->probes = choice->probes;
	session->synthetics = choice->synthetics;
	session->event_triggers = choice->event_triggers;
	session->event_trigger_count = choice->event_trigger_count;
	session->values = choice->values;
	session->library_globs = choice->library_globs;
	session->buffer_bytes = choice->buffer_bytes;
	session->no_fork = choice->no_fork;
	session->libraries = choice->libraries;
	session->libcalls = choice->libcalls;
	session->unprepared = choice->unprepared;
	session->breakpoints = choice->breakpoints;
	session->uprobe_safe = choice->uprobe_safe;
	session->no_demangle = choice->no_demangle;
}

void gt_session_choice_live(const struct gt_session_choice *choice, struct gt_live_options *live)
{
	live->settings = choice->settings;
	live->event_filters = choice->event_filters;
	live->values = choice->values;
	live->buffer_bytes = choice->buffer_bytes;
	live->no_fork = choice->no_fork;
}

static void free_list(const char **list)
{
	for (const char **word = list; word != NULL && *word != NULL; word++)
		free((char *)*word);
	free(list);
}

void gt_session_choice_fini(struct gt_session_choice *choice)
{
	gt_trace_settings_fini(&choice->settings);
	free_list(choice->library_globs);
	free_list(choice->event_filters);
	free_list(choice->wanted_probes);
	free_list(choice->probes);
	free_list(choice->synthetics);
	for (size_t i = 0; i < choice->event_trigger_count; i++) {
		free((char *)choice->event_triggers[i].word);
		free((char *)choice->event_triggers[i].trigger.filter);
		free((char *)choice->event_triggers[i].trigger.target);
		free((char *)choice->event_triggers[i].trigger.hist);
	}
	free(choice->event_triggers);
	free_list(choice->values);
}
