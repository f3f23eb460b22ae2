/* SPDX-License-Identifier: MIT */
/*
 * See control_row.h. Guarantees: parsing looks at no byte outside the given range; a value is read
 * as one snapshot whatever the size of the pieces.
 */
#include "core/control/control_row.h"

size_t gt_row_length(const char *text)
{
	size_t bytes = 0;

	while (text[bytes] != '\0')
		bytes++;
	return bytes;
}

bool gt_row_is_blank(char byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r') || byte == '\0';
}

bool gt_row_is_word(const char *bytes, size_t count, const char *word)
{
	if (count != gt_row_length(word))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] != word[i])
			return false;
	}
	return true;
}

void gt_row_strip(const char **bytes, size_t *count)
{
	while (*count > 0 && gt_row_is_blank(**bytes)) {
		(*bytes)++;
		(*count)--;
	}
	while (*count > 0 && gt_row_is_blank((*bytes)[*count - 1]))
		(*count)--;
}

int gt_row_number(const char *bytes, size_t count, uint64_t highest, uint64_t *value,
		  struct gt_message *message)
{
	const char *all = bytes;
	size_t all_count;
	uint64_t number = 0;

	if (count > 0 && bytes[count - 1] == '\n')
		count--;
	all_count = count;
	if (count > 1 && bytes[0] == '+') {
		bytes++;
		count--;
	}
	if (count == 0)
		return REFUSE(message, GT_EINVAL, "a number is wanted, not '%.*s'",
			      SHOWN(all, all_count));
	for (size_t i = 0; i < count; i++) {
		uint64_t digit = (uint64_t)(unsigned char)bytes[i] - '0';

		if (digit > 9)
			return REFUSE(message, GT_EINVAL, "a number is wanted, not '%.*s'",
				      SHOWN(all, all_count));
		if (number > (UINT64_MAX - digit) / 10)
			return REFUSE(message, GT_ERANGE, "'%.*s' is too large",
				      SHOWN(all, all_count));
		number = number * 10 + digit;
	}
	if (number > highest)
		return REFUSE(message, GT_EINVAL, "'%.*s' is too large", SHOWN(all, all_count));
	*value = number;
	return 0;
}

int gt_row_not_here(struct gt_message *message)
{
	return REFUSE(message, GT_ENOTSUP, "this target does not offer it");
}

int gt_row_get(struct gt_control_handle *handle, enum gt_control_value which, uint64_t *value,
	       struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	int error;

	if (target->ops->get == NULL)
		return gt_row_not_here(message);
	error = target->ops->get(target, which, value);
	if (error == GT_ENOTSUP)
		return gt_row_not_here(message);
	if (error != 0)
		return REFUSE(message, GT_EGONE, "the target does not answer");
	return 0;
}

int gt_row_set(struct gt_control_handle *handle, enum gt_control_value which, uint64_t value,
	       struct gt_message *message)
{
	struct gt_control_target *target = handle->target;

	gt_message_clear(message);
	return target->ops->set != NULL ? target->ops->set(target, which, value, message)
					: gt_row_not_here(message);
}

int64_t gt_row_read_text(struct gt_control_handle *handle, char *buffer, size_t bytes,
			 struct gt_message *message)
{
	size_t left = handle->text_bytes - handle->line_given;

	(void)message;
	if (bytes > left)
		bytes = left;
	for (size_t i = 0; i < bytes; i++)
		buffer[i] = handle->text[handle->line_given + i];
	handle->line_given += bytes;
	return (int64_t)bytes;
}

int64_t gt_row_write_nothing(struct gt_control_handle *handle, const char *bytes, size_t count,
			     struct gt_message *message)
{
	(void)handle;
	(void)bytes;
	(void)message;
	return (int64_t)count;
}

bool gt_row_give_line(struct gt_control_handle *handle, const struct gt_row_line *line,
		      char *buffer, size_t bytes, size_t *given)
{
	size_t at = 0;

	for (size_t i = 0; i < COUNT(line->part) && line->part[i] != NULL; i++) {
		for (const char *from = line->part[i]; *from != '\0'; from++, at++) {
			if (at < handle->line_given)
				continue;
			if (*given == bytes)
				return false;
			buffer[(*given)++] = *from;
			handle->line_given++;
		}
	}
	handle->line_given = 0;
	handle->line++;
	return true;
}

int64_t gt_row_next_word(struct gt_control_handle *handle, const char *bytes, size_t count,
			 const char **word, size_t *word_bytes, struct gt_message *message)
{
	size_t start = 0;
	size_t end;

	*word_bytes = 0;
	if (handle->text_bytes == 0)
		while (start < count && gt_row_is_blank(bytes[start]))
			start++;
	end = start;
	while (end < count && !gt_row_is_blank(bytes[end]))
		end++;
	handle->bad_at = start;
	if (handle->text_bytes + (end - start) > GT_CONTROL_WORD_BYTES) {
		handle->text_bytes = 0;
		return REFUSE(message, GT_EINVAL, "a word is longer than %d bytes",
			      GT_CONTROL_WORD_BYTES);
	}
	if (handle->text_bytes == 0 && end < count) {
		*word = bytes + start;
		*word_bytes = end - start;
		return (int64_t)end + 1;
	}
	for (size_t i = start; i < end; i++)
		handle->text[handle->text_bytes++] = bytes[i];
	if (end == count)
		return (int64_t)count;
	*word = handle->text;
	*word_bytes = handle->text_bytes;
	handle->text_bytes = 0;
	return (int64_t)end + 1;
}

static uint32_t count_threads(struct gt_control_target *target)
{
	uint32_t count = 0;
	uint32_t tid;
	char comm[16];

	if (target->ops->known_thread != NULL) {
		while (target->ops->known_thread(target, count, &tid, comm) == 0)
			count++;
		return count;
	}
	return target->view != NULL ? target->view->ring->writer_count(target->view) : 0;
}

static int thread_number(struct gt_control_target *target, uint32_t index, uint64_t *number)
{
	struct gt_writer writer;

	if (target->ops->known_thread != NULL) {
		if (target->ops->known_thread(target, index, &writer.tid, writer.comm) != 0)
			return GT_ENOENT;
	} else if (target->view->ring->writer(target->view, index, &writer) != 0) {
		return GT_ENOENT;
	}
	*number = writer.tid;
	return 0;
}

const struct gt_control_numbers gt_row_threads = { count_threads, thread_number, .waits = true };

static uint32_t count_cpus(struct gt_control_target *target)
{
	return target->view != NULL ? target->view->cpu_count : 0;
}

static int cpu_number(struct gt_control_target *target, uint32_t index, uint64_t *number)
{
	if (index >= count_cpus(target))
		return GT_ENOENT;
	*number = index;
	return 0;
}

const struct gt_control_numbers gt_row_cpus = { count_cpus, cpu_number, .waits = false };

struct gt_control_scope gt_row_scope(const struct gt_control_handle *handle)
{
	struct gt_control_scope scope = { GT_SCOPE_ALL, (uint32_t)handle->number };

	if (handle->file->argument == GT_SCOPE_CPU)
		scope.kind = GT_SCOPE_CPU;
	else if (handle->file->argument == GT_SCOPE_THREAD)
		scope.kind = GT_SCOPE_THREAD;
	return scope;
}
