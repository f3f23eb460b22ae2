/* SPDX-License-Identifier: MIT */
/*
 * Finding, listing, opening, reading and writing control files: what is the same for every row of
 * the table. Guarantees: every path, index and length is checked; a refused write is logged with
 * its text. Callable from any thread that the target's operations allow; allocates nothing.
 */
#include "core/control/control_log.h"
#include "core/control/control_row.h"
#include "core/control/control_table.h"

#define INSTANCES	"instances"
#define INSTANCES_BYTES (sizeof(INSTANCES) - 1)

const struct gt_control_file *gt_control_row(const struct gt_control_target *target, uint32_t index)
{
	for (uint32_t i = 0; i < gt_control_group_count; i++) {
		if (index < gt_control_groups[i]->count)
			return &gt_control_groups[i]->files[index];
		index -= gt_control_groups[i]->count;
	}
	if (target != NULL && target->top != NULL) /* an instance has those of its top */
		target = target->top;
	for (uint32_t i = 0; target != NULL && i < target->group_count; i++) {
		if (index < target->groups[i].count)
			return &target->groups[i].files[index];
		index -= target->groups[i].count;
	}
	return NULL;
}

bool gt_control_exists(const struct gt_control_target *target, const struct gt_control_file *file)
{
	return (file->kinds & target->kind) &&
	       !(target->top != NULL && (file->flags & GT_CONTROL_TOP)) &&
	       (file->exists == NULL || file->exists(target));
}

/* One component of a path: its length. */
static size_t component_bytes(const char *path, size_t bytes)
{
	size_t i = 0;

	while (i < bytes && path[i] != '/')
		i++;
	return i;
}

static bool same_bytes(const char *a, const char *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (a[i] != b[i])
			return false;
	}
	return true;
}

static bool parse_index(const char *text, size_t bytes, uint64_t *number)
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

/* Whether the asked component is the row's, in which `#` stands for a number at its end. */
static bool match_component(const char *row, size_t held, const char *asked, size_t bytes,
			    uint64_t *number)
{
	if (held == 0 || row[held - 1] != '#')
		return held == bytes && same_bytes(row, asked, held);
	return bytes >= held && same_bytes(row, asked, held - 1) &&
	       parse_index(asked + held - 1, bytes - held + 1, number);
}

/* Compares a row's path with the asked one. Returns how many bytes of the row's path it matches; 0: it does not. */
static size_t match_row(const char *row, const char *path, size_t bytes, uint64_t *number)
{
	size_t at = 0;

	for (;;) {
		size_t asked = component_bytes(path, bytes);
		size_t held = component_bytes(row + at, gt_row_length(row + at));

		if (!match_component(row + at, held, path, asked, number))
			return 0;
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

static bool number_exists(struct gt_control_target *target, const struct gt_control_file *file,
			  uint64_t wanted)
{
	uint32_t count = file->numbers != NULL ? file->numbers->count(target) : 0;

	while (count-- > 0) {
		uint64_t number;

		if (file->numbers->number(target, count, &number) == 0 && number == wanted)
			return true;
	}
	return false;
}

/* instances/NAME: its target, and how many bytes of the path are the prefix. */
static struct gt_control_target *find_instance(struct gt_control_target *target, const char *path,
					       size_t bytes, size_t *prefix)
{
	struct gt_control_target *instance;
	const char *name;
	size_t asked;

	path += INSTANCES_BYTES + 1;
	bytes -= INSTANCES_BYTES + 1;
	asked = component_bytes(path, bytes);
	*prefix = INSTANCES_BYTES + 1 + asked;
	for (uint32_t i = 0; target->ops->instance(target, i, &instance, &name) == 0; i++) {
		if (gt_row_is_word(path, asked, name))
			return instance;
	}
	return NULL;
}

static bool below_instances(const struct gt_control_target *target, const char *path, size_t bytes)
{
	return target->ops->instance != NULL && target->top == NULL && bytes >= INSTANCES_BYTES &&
	       same_bytes(path, INSTANCES, INSTANCES_BYTES) &&
	       (bytes == INSTANCES_BYTES || path[INSTANCES_BYTES] == '/');
}

int gt_control_find(struct gt_control_target *target, const char *path, size_t bytes,
		    struct gt_control_node *node)
{
	const struct gt_control_file *file;

	while (bytes > 0 && path[bytes - 1] == '/')
		bytes--;
	*node = (struct gt_control_node){ .target = target, .directory = "" };
	if (below_instances(target, path, bytes)) {
		size_t prefix;

		if (bytes == INSTANCES_BYTES) {
			node->instances = true;
			return 0;
		}
		target = find_instance(target, path, bytes, &prefix);
		if (target == NULL)
			return GT_ENOENT;
		node->target = target;
		path += prefix;
		bytes -= prefix;
		if (bytes > 0) {
			path++;
			bytes--;
		}
	}
	if (bytes == 0)
		return 0;
	if (target->ops->events_came != NULL &&
	    gt_row_is_word(path, component_bytes(path, bytes), "events"))
		target->ops->events_came(target);
	for (uint32_t i = 0; (file = gt_control_row(target, i)) != NULL; i++) {
		uint64_t number = UINT64_MAX; /* none in the path */
		size_t matched = match_row(file->path, path, bytes, &number);

		if (matched == 0 || !gt_control_exists(target, file))
			continue;
		if (number != UINT64_MAX && !number_exists(target, file, number))
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

bool gt_control_find_waits(const struct gt_control_target *target, const char *path, size_t bytes)
{
	const struct gt_control_file *file;
	const size_t first = component_bytes(path, bytes);

	if (below_instances(target, path, bytes))
		return true;
	if (target->ops->events_came != NULL && gt_row_is_word(path, first, "events"))
		return true;
	for (uint32_t i = 0; (file = gt_control_row(target, i)) != NULL; i++) {
		if (file->numbers != NULL && file->numbers->waits &&
		    component_bytes(file->path, gt_row_length(file->path)) == first &&
		    same_bytes(file->path, path, first))
			return true;
	}
	return false;
}

/* Whether a row of the table before `row` has the same entry below the directory. */
static bool listed_before(const struct gt_control_target *target, uint32_t row, const char *path,
			  size_t bytes)
{
	for (uint32_t i = 0; i < row; i++) {
		const struct gt_control_file *file = gt_control_row(target, i);

		if (gt_row_length(file->path) > bytes && same_bytes(file->path, path, bytes) &&
		    file->path[bytes] == '/' && gt_control_exists(target, file))
			return true;
	}
	return false;
}

static void fill_entry(struct gt_control_entry *entry, struct gt_control_target *target,
		       const struct gt_control_file *file, size_t start, size_t end,
		       uint64_t number)
{
	entry->node = (struct gt_control_node){ .target = target };
	if (file->path[end - 1] == '#')
		gt_format(entry->name, sizeof(entry->name), "%.*s%llu", (int)(end - start - 1),
			  file->path + start, (unsigned long long)number);
	else
		gt_format(entry->name, sizeof(entry->name), "%.*s", (int)(end - start),
			  file->path + start);
	entry->node.file = file->path[end] == '\0' ? file : NULL;
	entry->node.directory = file->path;
	entry->node.directory_bytes = end;
	entry->node.number = number;
}

static int list_instances(struct gt_control_target *target, uint32_t index,
			  struct gt_control_entry *entry)
{
	struct gt_control_target *instance;
	const char *name;

	if (target->ops->instance(target, index, &instance, &name) != 0)
		return GT_ENOENT;
	gt_format(entry->name, sizeof(entry->name), "%s", name);
	entry->node = (struct gt_control_node){ .target = instance, .directory = "" };
	return 0;
}

int gt_control_list(const struct gt_control_node *directory, uint32_t index,
		    struct gt_control_entry *entry)
{
	struct gt_control_walk walk = { 0, 0 };

	return gt_control_list_next(directory, &walk, index, entry);
}

int gt_control_list_next(const struct gt_control_node *directory, struct gt_control_walk *walk,
			 uint32_t index, struct gt_control_entry *entry)
{
	struct gt_control_target *target = directory->target;
	size_t above = directory->directory_bytes;
	size_t start = above == 0 ? 0 : above + 1;
	const struct gt_control_file *file;
	const char *last = NULL; /* the row whose directory was the last entry */
	size_t last_end = 0;
	uint32_t wanted = index;

	if (directory->file != NULL)
		return GT_ENOENT;
	if (directory->instances)
		return list_instances(target, index, entry);
	if (index < walk->before)
		*walk = (struct gt_control_walk){ 0, 0 };
	index -= walk->before;
	for (uint32_t i = walk->row; (file = gt_control_row(target, i)) != NULL; i++) {
		uint32_t count;
		uint64_t number;
		size_t end;

		if (gt_row_length(file->path) <= start ||
		    !same_bytes(file->path, directory->directory, above) ||
		    (above > 0 && file->path[above] != '/') || !gt_control_exists(target, file))
			continue;
		end = start +
		      component_bytes(file->path + start, gt_row_length(file->path + start));
		if (file->path[end] == '/') {
			/* mostly a directory's rows follow each other */
			bool again = last != NULL && last_end == end &&
				     same_bytes(last, file->path, end);

			if (again || (i > walk->row && listed_before(target, i, file->path, end)))
				continue;
			last = file->path;
			last_end = end;
		}
		*walk = (struct gt_control_walk){ i, wanted - index };
		if (file->path[end - 1] != '#') {
			if (index-- > 0)
				continue;
			fill_entry(entry, target, file, start, end, directory->number);
			return 0;
		}
		count = file->numbers != NULL ? file->numbers->count(target) : 0;
		if (index >= count) {
			index -= count;
			continue;
		}
		if (file->numbers->number(target, index, &number) != 0)
			return GT_ENOENT;
		fill_entry(entry, target, file, start, end, number);
		return 0;
	}
	if (above == 0 && index == 0 && below_instances(target, INSTANCES, INSTANCES_BYTES)) {
		gt_format(entry->name, sizeof(entry->name), INSTANCES);
		entry->node = (struct gt_control_node){ .target = target,
							.directory = "",
							.instances = true };
		return 0;
	}
	return GT_ENOENT;
}

unsigned gt_control_access(const struct gt_control_target *target,
			   const struct gt_control_file *file)
{
	unsigned readable = file->readable != 0 ? file->readable : GT_CONTROL_ALL;
	unsigned writable = file->writable != 0 ? file->writable : GT_CONTROL_LIVE;

	return (file->read != NULL && (readable & target->kind) ? GT_CONTROL_READ : 0) |
	       (file->write != NULL && (writable & target->kind) ? GT_CONTROL_WRITE : 0);
}

/* Says why an access is refused: GT_EBADF, the file was not opened for it; GT_EINVAL, it can never be. */
static int64_t refuse_access(const struct gt_control_handle *handle, unsigned access,
			     struct gt_message *message)
{
	const struct gt_control_file *file = handle->file;

	if (!(handle->access & access))
		return REFUSE(message, GT_EBADF, "not opened for %s",
			      access == GT_CONTROL_READ ? "reading" : "writing");
	if (access == GT_CONTROL_READ)
		return REFUSE(message, GT_EINVAL, "'%s' can only be written", file->path);
	return REFUSE(message, GT_EINVAL, file->refusal != NULL ? "%s" : "'%s' can only be read",
		      file->refusal != NULL ? file->refusal : file->path);
}

int gt_control_open(struct gt_control_handle *handle, const struct gt_control_node *node,
		    unsigned access, struct gt_message *message)
{
	const struct gt_control_file *file = node->file;
	struct gt_control_target *target = node->target;
	unsigned allowed;

	if (file == NULL)
		return REFUSE(message, GT_EINVAL, "this is a directory");
	allowed = gt_control_access(target, file);
	if ((access & GT_CONTROL_WRITE) && !(allowed & GT_CONTROL_WRITE) &&
	    target->kind == GT_CONTROL_RECORDING && file->write != NULL)
		return REFUSE(message, GT_EPERM, "'%s' of a recording cannot be changed",
			      file->path);
	handle->target = target;
	handle->file = file;
	handle->number = node->number;
	handle->access = access;
	handle->writer = (struct gt_control_writer){ 0 };
	handle->opened = NULL;
	handle->unset = false;
	handle->given = false;
	handle->nonblocking = false;
	handle->line = 0;
	handle->line_given = 0;
	handle->bad_at = 0;
	handle->bad_in = NULL;
	handle->bad_from = 0;
	handle->text_bytes = 0;
	/* An access that the row does not have is refused by the read or write itself. */
	return file->open != NULL
		       ? file->open(handle, access & (allowed | GT_CONTROL_TRUNCATE), message)
		       : 0;
}

uint64_t gt_control_lines_there(const struct gt_control_node *node)
{
	const struct gt_control_scope all = { .kind = GT_SCOPE_ALL };
	struct gt_control_stats stats = { 0 };
	struct gt_message message;

	if (node->target->ops->stats == NULL ||
	    node->target->ops->stats(node->target, &all, &stats, &message) != 0)
		return UINT64_MAX;
	/* A record may have a line of its own, and before it three lines of a task switch. */
	return 4 * stats.entries + 64;
}

uint64_t gt_control_lines(const char *text, size_t bytes)
{
	uint64_t lines = 0;

	for (size_t i = 0; i < bytes; i++)
		lines += text[i] == '\n' && !(i + 3 < bytes && text[i + 1] == ' ' &&
					      text[i + 2] == '=' && text[i + 3] == '>');
	return lines;
}

int64_t gt_control_read(struct gt_control_handle *handle, char *buffer, size_t bytes,
			struct gt_message *message)
{
	if (!(handle->access & gt_control_access(handle->target, handle->file) & GT_CONTROL_READ))
		return refuse_access(handle, GT_CONTROL_READ, message);
	if (bytes == 0)
		return 0;
	return handle->file->read(handle, buffer, bytes, message);
}

int64_t gt_control_write(struct gt_control_handle *handle, const char *bytes, size_t count,
			 struct gt_message *message)
{
	int64_t taken;

	if (!(handle->access & gt_control_access(handle->target, handle->file) & GT_CONTROL_WRITE))
		return refuse_access(handle, GT_CONTROL_WRITE, message);
	handle->bad_at = 0;
	handle->bad_in = NULL;
	handle->bad_from = 0;
	taken = handle->file->write(handle, bytes, count, message);
	if (taken < 0)
		gt_control_log_error(handle, bytes, count, message);
	return taken;
}

int gt_control_close(struct gt_control_handle *handle, struct gt_message *message)
{
	return handle->file->close != NULL ? handle->file->close(handle, message) : 0;
}

int gt_control_put(const struct gt_control_node *node, bool truncate, const char *bytes,
		   size_t count, struct gt_message *message)
{
	struct gt_control_handle handle;
	struct gt_message unused;
	int error = gt_control_open(
		&handle, node, GT_CONTROL_WRITE | (truncate ? GT_CONTROL_TRUNCATE : 0), message);

	if (error != 0)
		return error;
	do {
		int64_t taken = gt_control_write(&handle, bytes, count, message);

		if (taken < 0) {
			gt_control_close(&handle, &unused);
			return (int)taken;
		}
		if (taken == 0 && count > 0) {
			gt_control_close(&handle, &unused);
			return REFUSE(message, GT_EIO, "nothing was taken");
		}
		bytes += taken;
		count -= (size_t)taken;
	} while (count > 0);
	return gt_control_close(&handle, message);
}

unsigned gt_control_http_status(int64_t error)
{
	switch (error) {
	case GT_EINVAL:
	case GT_ERANGE:
	case GT_ENODEV:
	case GT_ESRCH:
	case GT_EDOM:
		return 400; /* Bad Request */
	case GT_ENOENT:
		return 404; /* Not Found */
	case GT_EPERM:
		return 405; /* Method Not Allowed */
	case GT_EBUSY:
	case GT_EEXIST:
	case GT_EBADF:
		return 409; /* Conflict */
	case GT_EGONE:
		return 410; /* Gone */
	case GT_ENOTSUP:
		return 501; /* Not Implemented */
	case GT_ENOMEM:
	case GT_EAGAIN:
		return 503; /* Service Unavailable */
	default:
		return 500; /* Internal Server Error */
	}
}

/* The name of an instance in a path; NULL: it is none. */
static const char *instance_name(struct gt_control_target *target, const char *path, size_t *bytes)
{
	while (*bytes > 0 && path[*bytes - 1] == '/')
		(*bytes)--;
	if (!below_instances(target, path, *bytes) || *bytes <= INSTANCES_BYTES + 1)
		return NULL;
	path += INSTANCES_BYTES + 1;
	*bytes -= INSTANCES_BYTES + 1;
	return component_bytes(path, *bytes) == *bytes ? path : NULL;
}

int gt_control_make(struct gt_control_target *target, const char *path, size_t bytes,
		    struct gt_message *message)
{
	const char *name = instance_name(target, path, &bytes);

	if (name == NULL || target->ops->instance_make == NULL)
		return REFUSE(message, GT_EPERM, "directories are made in instances/ only");
	if (bytes >= sizeof(((struct gt_control_entry *)0)->name))
		return REFUSE(message, GT_EINVAL, "the name is too long");
	return target->ops->instance_make(target, name, bytes, message);
}

int gt_control_remove(struct gt_control_target *target, const char *path, size_t bytes,
		      struct gt_message *message)
{
	const char *name = instance_name(target, path, &bytes);

	if (name == NULL || target->ops->instance_remove == NULL)
		return REFUSE(message, GT_EPERM, "only instances can be removed");
	return target->ops->instance_remove(target, name, bytes, message);
}
