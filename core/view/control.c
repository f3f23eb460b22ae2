/* SPDX-License-Identifier: MIT */
/*
 * Finding, listing, opening, reading and writing control files: what is the same for every row of
 * the table. Guarantees: every path, index and length is checked; a write to a list takes effect as
 * a whole or not at all. Callable from any thread that the target's operations allow; allocates
 * nothing.
 */
#include "core/view/control.h"
#include "core/view/message.h"

#define REFUSE(message, error, ...) (gt_message_set(message, __VA_ARGS__), (error))

/* One component of a path: its length. */
static size_t component_bytes(const char *path, size_t bytes)
{
	size_t i = 0;

	while (i < bytes && path[i] != '/')
		i++;
	return i;
}

static size_t text_length(const char *text)
{
	size_t bytes = 0;

	while (text[bytes] != '\0')
		bytes++;
	return bytes;
}

static bool same_bytes(const char *a, const char *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (a[i] != b[i])
			return false;
	}
	return true;
}

static bool parse_thread(const char *text, size_t bytes, uint64_t *number)
{
	uint64_t value = 0;

	if (bytes == 0 || bytes > 10 || (text[0] == '0' && bytes > 1))
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(text[i] - '0');
	}
	*number = value;
	return value <= UINT32_MAX;
}

/* How much of a row's path the asked path matches: bytes of the row's path that stand for it, 0
 * none. */
static size_t match_row(const char *row, const char *path, size_t bytes, uint64_t *number)
{
	size_t at = 0;

	for (;;) {
		size_t asked = component_bytes(path, bytes);
		size_t held = component_bytes(row + at, text_length(row + at));

		if (held == 1 && row[at] == '#') {
			if (!parse_thread(path, asked, number))
				return 0;
		} else if (held != asked || !same_bytes(row + at, path, held)) {
			return 0;
		}
		at += held;
		if (asked == bytes)
			return at;
		if (row[at] == '\0')
			return 0; /* the path goes on below a file */
		at++;
		path += asked + 1;
		bytes -= asked + 1;
	}
}

static bool thread_exists(struct gt_control_target *target, uint64_t tid)
{
	uint32_t count;

	if (target->view == NULL)
		return false;
	count = target->view->ops->writer_count(target->view);
	while (count-- > 0) {
		struct gt_writer writer;

		if (target->view->ops->writer(target->view, count, &writer) == 0 &&
		    writer.tid == tid)
			return true;
	}
	return false;
}

int gt_control_find(struct gt_control_target *target, const char *path, size_t bytes,
		    struct gt_control_node *node)
{
	*node = (struct gt_control_node){ .file = NULL, .directory = "", .number = 0 };
	while (bytes > 0 && path[bytes - 1] == '/')
		bytes--;
	if (bytes == 0)
		return 0;
	for (uint32_t i = 0; i < gt_control_file_count; i++) {
		const struct gt_control_file *file = &gt_control_files[i];
		uint64_t number = UINT64_MAX; /* none in the path */
		size_t matched;

		if (!(file->kinds & target->kind))
			continue;
		matched = match_row(file->path, path, bytes, &number);
		if (matched == 0)
			continue;
		if (number != UINT64_MAX && !thread_exists(target, number))
			return GT_ENOENT;
		node->number = number != UINT64_MAX ? number : 0;
		node->directory = file->path;
		if (file->path[matched] == '\0')
			node->file = file;
		node->directory_bytes = matched;
		return 0;
	}
	return GT_ENOENT;
}

/* Whether a row of the table before `row` has the same entry below the directory. */
static bool listed_before(const struct gt_control_target *target, uint32_t row, size_t bytes)
{
	const char *path = gt_control_files[row].path;

	for (uint32_t i = 0; i < row; i++) {
		const struct gt_control_file *file = &gt_control_files[i];

		if ((file->kinds & target->kind) && text_length(file->path) > bytes &&
		    same_bytes(file->path, path, bytes) && file->path[bytes] == '/')
			return true;
	}
	return false;
}

static void fill_entry(struct gt_control_entry *entry, const struct gt_control_file *file,
		       size_t start, size_t end, uint64_t number)
{
	if (file->path[start] == '#')
		gt_format(entry->name, sizeof(entry->name), "%llu", (unsigned long long)number);
	else
		gt_format(entry->name, sizeof(entry->name), "%.*s", (int)(end - start),
			  file->path + start);
	entry->node.file = file->path[end] == '\0' ? file : NULL;
	entry->node.directory = file->path;
	entry->node.directory_bytes = end;
	entry->node.number = number;
}

int gt_control_list(struct gt_control_target *target, const struct gt_control_node *directory,
		    uint32_t index, struct gt_control_entry *entry)
{
	size_t above = directory->directory_bytes;

	if (directory->file != NULL)
		return GT_ENOENT;
	for (uint32_t i = 0; i < gt_control_file_count; i++) {
		const struct gt_control_file *file = &gt_control_files[i];
		size_t start = above == 0 ? 0 : above + 1;
		size_t end;
		struct gt_writer writer;
		uint32_t writers;

		if (!(file->kinds & target->kind) || text_length(file->path) <= start ||
		    !same_bytes(file->path, directory->directory, above) ||
		    (above > 0 && file->path[above] != '/'))
			continue;
		end = start + component_bytes(file->path + start, text_length(file->path + start));
		if (file->path[end] == '/' && listed_before(target, i, end))
			continue;
		if (file->path[start] != '#') {
			if (index-- > 0)
				continue;
			fill_entry(entry, file, start, end, directory->number);
			return 0;
		}
		writers = target->view != NULL ? target->view->ops->writer_count(target->view) : 0;
		if (index >= writers) {
			index -= writers;
			continue;
		}
		if (target->view->ops->writer(target->view, index, &writer) != 0)
			return GT_ENOENT;
		fill_entry(entry, file, start, end, writer.tid);
		return 0;
	}
	return GT_ENOENT;
}

unsigned gt_control_access(const struct gt_control_target *target,
			   const struct gt_control_file *file)
{
	return (file->readable & target->kind ? GT_CONTROL_READ : 0) |
	       (file->writable & target->kind ? GT_CONTROL_WRITE : 0);
}

int gt_control_open(struct gt_control_handle *handle, struct gt_control_target *target,
		    const struct gt_control_node *node, unsigned access, struct gt_message *message)
{
	const struct gt_control_file *file = node->file;
	unsigned allowed;

	if (file == NULL)
		return REFUSE(message, GT_EINVAL, "this is a directory");
	allowed = gt_control_access(target, file);
	if ((access & GT_CONTROL_READ) && !(allowed & GT_CONTROL_READ))
		return REFUSE(message, GT_EPERM, "'%s' can only be written", file->path);
	if ((access & GT_CONTROL_WRITE) && !(allowed & GT_CONTROL_WRITE)) {
		if (target->kind == GT_CONTROL_RECORDING && file->writable != 0)
			return REFUSE(message, GT_EPERM, "'%s' of a recording cannot be changed",
				      file->path);
		if (file->refusal != NULL)
			return REFUSE(message, GT_EPERM, "%s", file->refusal);
		return REFUSE(message, GT_EPERM, "'%s' can only be read", file->path);
	}
	handle->target = target;
	handle->file = file;
	handle->number = node->number;
	handle->access = access;
	handle->opened = NULL;
	handle->unset = false;
	handle->line = 0;
	handle->line_given = 0;
	handle->text_bytes = 0;
	return file->open != NULL ? file->open(handle, access, message) : 0;
}

int64_t gt_control_read(struct gt_control_handle *handle, char *buffer, size_t bytes,
			struct gt_message *message)
{
	if (!(handle->access & GT_CONTROL_READ))
		return REFUSE(message, GT_EPERM, "not opened for reading");
	if (bytes == 0)
		return 0;
	return handle->file->read(handle, buffer, bytes, message);
}

int64_t gt_control_write(struct gt_control_handle *handle, const char *bytes, size_t count,
			 struct gt_message *message)
{
	if (!(handle->access & GT_CONTROL_WRITE))
		return REFUSE(message, GT_EPERM, "not opened for writing");
	return handle->file->write(handle, bytes, count, message);
}

int gt_control_close(struct gt_control_handle *handle, bool apply, struct gt_message *message)
{
	return handle->file->close != NULL ? handle->file->close(handle, apply, message) : 0;
}

int gt_control_put(struct gt_control_target *target, const struct gt_control_node *node,
		   bool truncate, const char *bytes, size_t count, struct gt_message *message)
{
	struct gt_control_handle handle;
	struct gt_message unused;
	int error =
		gt_control_open(&handle, target, node,
				GT_CONTROL_WRITE | (truncate ? GT_CONTROL_TRUNCATE : 0), message);

	if (error != 0)
		return error;
	do {
		int64_t taken = gt_control_write(&handle, bytes, count, message);

		if (taken < 0) {
			gt_control_close(&handle, false, &unused);
			return (int)taken;
		}
		if (taken == 0 && count > 0) {
			gt_control_close(&handle, false, &unused);
			return REFUSE(message, GT_EIO, "nothing was taken");
		}
		bytes += taken;
		count -= (size_t)taken;
	} while (count > 0);
	return gt_control_close(&handle, true, message);
}
