/* SPDX-License-Identifier: MIT */
/*
 * Filters of events as files: kernel/trace/trace_events_filter.c and trace_events.c, Linux 6.1. As there, a
 * filter that is refused leaves the event without one, and its file shows where it went wrong.
 */
#include "core/control/control_event_rules.h"
#include "core/control/control_row.h"
#include "core/trace/event_trigger.h"
#include "core/trace/hist.h"

#define PLACE "event filter parse error"

static const char of_many[] =
	"### global filter ###\n"
	"# Use this to set filters for multiple events.\n"
	"# Only events with the given fields will be affected.\n"
	"# If no events are modified, an error message will be displayed here\n";

/* Rules belong to the top: they are evaluated where the event happens, for all buffers. The files of an instance say that
 * there are none, and removing rules there is no error. */
static bool has_rules(const struct gt_control_handle *handle)
{
	return handle->target->top == NULL || handle->target->ops->event_filter_set != NULL;
}

static int refuse_rules(const char *what, struct gt_message *message)
{
	return REFUSE(message, GT_ENOTSUP,
		      "%s are set in events/ of the top, and hold for its instances, too", what);
}

/* The event of the row, and its word ("system:name"). */
static int event_of(const struct gt_control_handle *handle, struct gt_control_event *event,
		    char word[GT_CONTROL_WORD_BYTES], struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;

	if (ops->event == NULL || ops->event_filter_set == NULL)
		return gt_row_not_here(message);
	if (ops->event(handle->target, handle->file->argument, event) != 0)
		return REFUSE(message, GT_ENOENT, "there is no such event any more");
	gt_format(word, GT_CONTROL_WORD_BYTES, "%s:%s", event->format.system, event->format.name);
	return 0;
}

int64_t gt_event_rules_read_filter(struct gt_control_handle *handle, char *buffer, size_t bytes,
				   struct gt_message *message)
{
	struct gt_control_event event;
	char word[GT_CONTROL_WORD_BYTES];
	int64_t given = has_rules(handle) ? event_of(handle, &event, word, message) : 0;

	if (given < 0)
		return given;
	if (has_rules(handle))
		given = handle->target->ops->event_filter_read(handle->target, word, handle->line,
							       buffer, bytes);
	handle->line += (uint64_t)(given > 0 ? given : 0);
	if (given == 0 && handle->line == 0) {
		handle->line = 1;
		handle->text_bytes = 0;
		append(handle, "none\n");
		handle->line_given = 0;
	}
	return given != 0 ? given : gt_row_read_text(handle, buffer, bytes, message);
}

/* Returns the length of the text as the kernel takes it: up to a zero byte, without blanks at its end. *whole: the same
 * without blanks before it, too. */
static size_t strip(const char *bytes, size_t count, const char **whole, size_t *whole_bytes)
{
	size_t length = 0;

	while (length < count && bytes[length] != '\0')
		length++;
	while (length > 0 && gt_row_is_blank(bytes[length - 1]))
		length--;
	*whole = bytes;
	*whole_bytes = length;
	gt_row_strip(whole, whole_bytes);
	return length;
}

static bool is_none(const char *whole, size_t bytes)
{
	return gt_row_is_word(whole, bytes, "0");
}

int64_t gt_event_rules_write_filter(struct gt_control_handle *handle, const char *bytes,
				    size_t count, struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct gt_event_filter_error error = { 0 };
	struct gt_control_event event;
	char word[GT_CONTROL_WORD_BYTES];
	const char *whole;
	size_t whole_bytes;
	const size_t length = strip(bytes, count, &whole, &whole_bytes);
	int64_t made;
	int result;

	if (!has_rules(handle))
		return is_none(whole, whole_bytes) ? (int64_t)count
						   : refuse_rules("filters", message);
	made = event_of(handle, &event, word, message);
	if (made < 0)
		return made;
	if (count >= GRAFTRACE_FILTER_BYTES)
		return REFUSE(message, GT_EINVAL, "a filter has less than %u bytes",
			      GRAFTRACE_FILTER_BYTES);
	if (is_none(whole, whole_bytes))
		result = ops->event_filter_set(handle->target, word, NULL, 0, NULL, message);
	else {
		made = gt_event_filter_make(&event.format, bytes, length, NULL, 0, &error);
		result = ops->event_filter_set(handle->target, word, bytes, length,
					       made < 0 ? &error : NULL, message);
	}
	if (result != 0 || made >= 0)
		return result != 0 ? result : (int64_t)count;
	handle->bad_in = PLACE;
	handle->bad_at = error.at;
	return REFUSE(message, made, "%s", error.text != NULL ? error.text : "Error");
}

/* ---- triggers: kernel/trace/trace_events_trigger.c ---- */

/* Writes the text of a histogram with the defaults of what was left out. */
static void append_hist(struct gt_control_handle *handle, const struct gt_event_trigger *trigger)
{
	struct gt_hist_error error;
	struct gt_hist hist;
	char text[GT_HIST_SHOWN_BYTES];

	if (gt_hist_parse(trigger->hist, gt_row_length(trigger->hist), NULL, NULL, &hist, &error) !=
	    0)
		return;
	gt_hist_put(&hist, text, sizeof(text));
	append(handle, "hist:%s", text);
	if (trigger->filter != NULL)
		append(handle, " if %s", trigger->filter);
	append(handle, " [%s]\n", trigger->is_paused ? "paused" : "active");
}

static void append_trigger(struct gt_control_handle *handle, const struct gt_event_trigger *trigger)
{
	if (trigger->hist != NULL) {
		append_hist(handle, trigger);
		return;
	}
	append(handle, "%s", gt_event_trigger_name(trigger->action));
	if (trigger->target != NULL)
		append(handle, ":%s", trigger->target);
	if (trigger->limit == GRAFTRACE_RULE_UNLIMITED)
		append(handle, ":unlimited");
	else
		append(handle, ":count=%llu", (unsigned long long)trigger->limit);
	if (trigger->filter != NULL)
		append(handle, " if %s", trigger->filter);
	append(handle, "\n");
}

int64_t gt_event_rules_read_trigger(struct gt_control_handle *handle, char *buffer, size_t bytes,
				    struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct gt_event_trigger trigger;
	struct gt_control_event event;
	char word[GT_CONTROL_WORD_BYTES], text[GT_CONTROL_WORD_BYTES];
	int64_t given = has_rules(handle) ? event_of(handle, &event, word, message) : 0;

	while (given >= 0 && (size_t)given < bytes) {
		if (handle->line_given == handle->text_bytes) {
			handle->line_given = handle->text_bytes = 0;
			if (handle->unset) /* there is none, and the help text is written */
				break;
			if (has_rules(handle) &&
			    ops->event_trigger_get(handle->target, word, (uint32_t)handle->line,
						   &trigger, text, sizeof(text)) == 0)
				append_trigger(handle, &trigger);
			else if (handle->line > 0)
				break;
			else {
				handle->unset = true;
				append(handle,
				       "# Available triggers:\n# " GT_EVENT_TRIGGER_NAMES "\n");
			}
			handle->line++;
		}
		given += gt_row_read_text(handle, buffer + given, bytes - (size_t)given, message);
	}
	return given;
}

static bool is_of_hists(const struct gt_event_trigger *trigger)
{
	return trigger->action == GRAFTRACE_RULE_HIST ||
	       trigger->action == GRAFTRACE_RULE_HIST_ON ||
	       trigger->action == GRAFTRACE_RULE_HIST_OFF;
}

/* As in Linux, `>` removes histograms and triggers that pause others, and nothing else. */
int gt_event_rules_open_trigger(struct gt_control_handle *handle, unsigned access,
				struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct gt_event_trigger trigger;
	struct gt_control_event event;
	char word[GT_CONTROL_WORD_BYTES], text[GT_CONTROL_WORD_BYTES];
	uint32_t i = 0;
	int error = 0;

	if (!(access & GT_CONTROL_WRITE) || !(access & GT_CONTROL_TRUNCATE) || !has_rules(handle))
		return 0;
	error = event_of(handle, &event, word, message);
	while (error == 0 &&
	       ops->event_trigger_get(handle->target, word, i, &trigger, text, sizeof(text)) == 0)
		if (is_of_hists(&trigger))
			error = ops->event_trigger_set(handle->target, word, &trigger, true,
						       message);
		else
			i++;
	return error == GT_EBUSY ? 0 : error; /* others read its variables: it stays */
}

/* Checks that the trigger's target event exists, and that its own event has the fields of its filter. */
static int check(struct gt_control_handle *handle, const struct gt_event_trigger_text *parsed,
		 const struct gt_event_format *format, struct gt_event_filter_error *error)
{
	const struct gt_event_trigger *trigger = &parsed->trigger;
	struct gt_control_event event;
	bool found = trigger->target == NULL;
	char word[GT_CONTROL_WORD_BYTES];
	int64_t made;

	for (uint64_t i = 0; !found && handle->target->ops->event(handle->target, i, &event) == 0;
	     i++) {
		gt_format(word, sizeof(word), "%s:%s", event.format.system, event.format.name);
		found = gt_row_is_word(word, gt_row_length(word), trigger->target);
	}
	if (!found)
		return GT_EINVAL;
	made = trigger->filter == NULL
		       ? 0
		       : gt_event_filter_make(format, trigger->filter,
					      gt_row_length(trigger->filter), NULL, 0, error);
	if (made >= 0)
		return 0;
	handle->bad_in = PLACE;
	handle->bad_at = error->at;
	return (int)made;
}

/* ---- histograms: kernel/trace/trace_events_hist.c ---- */

/* The offset of `part` in the command as Linux logs it, "hist:…"; 0 if the command does not contain it. */
static size_t place_of(const char *command, size_t bytes, const char *part)
{
	const size_t length = gt_row_length(part);

	for (size_t i = 0; i + length <= bytes; i++) {
		size_t same = 0;

		while (same < length && command[i + same] == part[same])
			same++;
		if (same == length)
			return i;
	}
	return 0;
}

/* Sets the place that error_log shows for the error: the event and the byte of the command. `whole` lies in `bytes`. */
static void blame_hist(struct gt_control_handle *handle, const struct gt_event_format *format,
		       const struct gt_event_trigger_text *parsed, const char *bytes,
		       const char *whole, size_t at)
{
	handle->bad_from = (size_t)(whole - bytes) + parsed->remove;
	gt_format(handle->text, sizeof(handle->text), "hist:%s:%s", format->system, format->name);
	handle->bad_in = handle->text;
	handle->bad_at = at;
}

static int check_hist(struct gt_control_handle *handle, const struct gt_event_trigger_text *parsed,
		      const struct gt_event_format *format, const char *bytes, const char *whole,
		      size_t length, struct gt_event_filter_error *error)
{
	const struct gt_event_trigger *trigger = &parsed->trigger;
	struct gt_hist_error wrong;
	const struct gt_control_ops *ops = handle->target->ops;
	char word[GT_CONTROL_WORD_BYTES];
	struct gt_hist hist;
	int failed;

	gt_format(word, sizeof(word), "%s:%s", format->system, format->name);
	failed = ops->event_hist_check != NULL
			 ? ops->event_hist_check(handle->target, word, trigger->hist,
						 !parsed->remove, &wrong)
			 : gt_hist_parse(trigger->hist, gt_row_length(trigger->hist), format, NULL,
					 &hist, &wrong);
	if (failed == 0)
		return 0;
	if (wrong.text != NULL)
		blame_hist(handle, format, parsed, bytes, whole,
			   place_of(whole + parsed->remove, length - parsed->remove, wrong.part));
	error->text = wrong.text;
	return failed;
}

int gt_event_rules_open_hist(struct gt_control_handle *handle, unsigned access,
			     struct gt_message *message)
{
	struct gt_control_event event;
	char word[GT_CONTROL_WORD_BYTES];
	int error = has_rules(handle) ? event_of(handle, &event, word, message) : 0;

	if (error != 0 || !has_rules(handle) || !(access & GT_CONTROL_READ))
		return error;
	return handle->target->ops->event_hists_open == NULL
		       ? gt_row_not_here(message)
		       : handle->target->ops->event_hists_open(handle->target, word,
							       &handle->opened, message);
}

int64_t gt_event_rules_read_hist(struct gt_control_handle *handle, char *buffer, size_t bytes,
				 struct gt_message *message)
{
	size_t given;

	(void)message;
	if (handle->opened == NULL)
		return 0;
	given = handle->target->ops->event_hists_read(handle->target, handle->opened, handle->line,
						      buffer, bytes);
	handle->line += given;
	return (int64_t)given;
}

int gt_event_rules_close_hist(struct gt_control_handle *handle, struct gt_message *message)
{
	(void)message;
	if (handle->opened != NULL)
		handle->target->ops->event_hists_close(handle->target, handle->opened);
	return 0;
}

/* The target has refused a histogram: makes Linux' error of its result. */
static int refused_hist(struct gt_control_handle *handle, const struct gt_event_format *format,
			const struct gt_event_trigger_text *parsed, const char *bytes,
			const char *whole, size_t length, int result)
{
	/* GT_EINVAL: it differs from others of its name. */
	blame_hist(handle, format, parsed, bytes, whole,
		   result == GT_EINVAL
			   ? place_of(whole + parsed->remove, length - parsed->remove, "name=")
			   : 0);
	return result;
}

int64_t gt_event_rules_write_trigger(struct gt_control_handle *handle, const char *bytes,
				     size_t count, struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct gt_event_filter_error error = { 0 };
	struct gt_event_trigger_text parsed;
	struct gt_control_event event;
	char word[GT_CONTROL_WORD_BYTES];
	const char *whole;
	size_t length;
	int result = has_rules(handle) ? event_of(handle, &event, word, message) : 0;

	if (count > 0 && !has_rules(handle) && bytes[0] != '!')
		return refuse_rules("triggers", message);
	if (!has_rules(handle))
		return (int64_t)count;
	if (count == 0 || result != 0)
		return result;
	if (count >= GRAFTRACE_FILTER_BYTES)
		return REFUSE(message, GT_EINVAL, "a trigger has less than %u bytes",
			      GRAFTRACE_FILTER_BYTES);
	strip(bytes, count, &whole, &length);
	result = gt_event_trigger_parse(whole, length, &parsed);
	if (result == 0 && parsed.trigger.hist != NULL)
		result = check_hist(handle, &parsed, &event.format, bytes, whole, length, &error);
	if (result == 0)
		result = check(handle, &parsed, &event.format, &error);
	if (result != 0)
		return REFUSE(message, result, "%s",
			      handle->bad_in == NULL
				      ? "not a trigger: the file lists those there are"
			      : error.text != NULL ? error.text
						   : "Error");
	result = ops->event_trigger_set(handle->target, word, &parsed.trigger, parsed.remove,
					message);
	/* As in Linux, removing a trigger that is not there is no error. */
	if (result == 0 || (parsed.remove && result == GT_ENOENT))
		return (int64_t)count;
	return parsed.trigger.hist != NULL
		       ? refused_hist(handle, &event.format, &parsed, bytes, whole, length, result)
		       : result;
}

/* ---- of a system ---- */

int gt_event_rules_open_system(struct gt_control_handle *handle, unsigned access,
			       struct gt_message *message)
{
	(void)message;
	if (access & GT_CONTROL_READ)
		append(handle, "%s", of_many);
	return 0;
}

static int set_one(struct gt_control_handle *handle, const struct gt_event_format *format,
		   const char *bytes, size_t length, struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct gt_event_filter_error error;
	char word[GT_CONTROL_WORD_BYTES];

	gt_format(word, sizeof(word), "%s:%s", format->system, format->name);
	if (length == 0)
		return ops->event_filter_set(handle->target, word, NULL, 0, NULL, message);
	if (gt_event_filter_make(format, bytes, length, NULL, 0, &error) >= 0)
		return ops->event_filter_set(handle->target, word, bytes, length, NULL, message);
	error = (struct gt_event_filter_error){
		"Couldn't find or set field in one of a subsystem's events", 0
	};
	return ops->event_filter_set(handle->target, word, bytes, length, &error, message);
}

int64_t gt_event_rules_write_system(struct gt_control_handle *handle, const char *bytes,
				    size_t count, struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct gt_control_event event, first;
	char word[GT_CONTROL_WORD_BYTES];
	const char *whole;
	size_t whole_bytes, length = strip(bytes, count, &whole, &whole_bytes);
	int error;

	if (!has_rules(handle))
		return is_none(whole, whole_bytes) ? (int64_t)count
						   : refuse_rules("filters", message);
	error = event_of(handle, &first, word, message);
	if (count >= GRAFTRACE_FILTER_BYTES)
		return REFUSE(message, GT_EINVAL, "a filter has less than %u bytes",
			      GRAFTRACE_FILTER_BYTES);
	if (is_none(whole, whole_bytes))
		length = 0;
	for (uint64_t i = 0; error == 0 && ops->event(handle->target, i, &event) == 0; i++)
		if (gt_row_is_word(event.format.system, gt_row_length(event.format.system),
				   first.format.system))
			error = set_one(handle, &event.format, bytes, length, message);
	return error != 0 ? error : (int64_t)count;
}
