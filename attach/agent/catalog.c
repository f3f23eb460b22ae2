/* SPDX-License-Identifier: MIT */
/*
 * The catalog: see catalog.h. Under the session's lock.
 */
#define _GNU_SOURCE
#include "attach/agent/catalog.h"
#include "attach/agent/dynamic.h"
#include "attach/agent/synthetics.h"
#include "attach/agent/syscall_events.h"
#include "attach/agent/values.h"
#include "attach/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

void gt_catalog_init(struct gt_catalog *catalog)
{
	*catalog = (struct gt_catalog){ .next_number = 1, .next_event = 1 };
}

static void free_file(struct gt_catalog_file *file)
{
	if (file->plan != NULL)
		gt_plan_destroy(file->plan);
	if (file->object != NULL)
		gt_object_close(file->object);
	if (file->fd >= 0)
		close(file->fd);
	gt_file_values_free(file->values, file->function_count);
	gt_names_fini(&file->names);
	free(file->probes);
	free(file->calls);
	free(file->entries);
	free(file->planned);
	free(file->touched);
	free(file->askers);
	free(file->path);
	free(file);
}

void gt_catalog_fini(struct gt_catalog *catalog)
{
	for (size_t i = 0; i < catalog->file_count; i++)
		free_file(catalog->files[i]);
	gt_dynamics_fini(catalog);
	gt_synthetics_fini(catalog);
	free(catalog->files);
	free(catalog->blocks);
	*catalog = (struct gt_catalog){ 0 };
}

static bool is_system(const char *path)
{
	static const char *const directories[] = { "/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/",
						   "/usr/libexec/" };

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (strncmp(path, directories[i], strlen(directories[i])) == 0)
			return true;
	return false;
}

static int read_file(void *data, uint64_t offset, void *buffer, size_t bytes)
{
	const struct gt_catalog_file *file = data;
	size_t done = 0;

	while (done < bytes) {
		ssize_t got = pread(file->fd, (char *)buffer + done, bytes - done,
				    (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? GT_EIO : GT_ECUT;
		done += (size_t)got;
	}
	return 0;
}

int gt_catalog_open_mapped(pid_t pid, const struct gt_map *map, struct stat *status)
{
	char path[4200];
	int fd;

	for (int tries = 0; tries < 3; tries++) {
		if (tries == 0)
			snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid,
				 (unsigned long long)map->start, (unsigned long long)map->end);
		else if (tries == 1)
			snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, map->path);
		else
			snprintf(path, sizeof(path), "%s", map->path);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		/* Overlay file systems show another device in maps; the number is the file's. */
		if (fstat(fd, status) == 0 && S_ISREG(status->st_mode) &&
		    status->st_ino == map->inode)
			return fd;
		close(fd);
	}
	return -1;
}

static int64_t time_of_change(const struct stat *status)
{
	return (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec;
}

/* Whether code has a wrgsbase: f3 48 0f ae /3 with a register (49: one of r8 to r15). */
static bool has_wrgsbase(const uint8_t *code, size_t bytes)
{
	const uint8_t *at = code + 3, *end = code + bytes;

	for (; at + 1 < end && (at = memchr(at, 0xae, (size_t)(end - at - 1))) != NULL; at++)
		if (at[-1] == 0x0f && (at[-2] & 0xfe) == 0x48 && at[-3] == 0xf3 &&
		    (at[1] & 0xf8) == 0xd8)
			return true;
	return false;
}

/*
 * A program may put a base of its own into %gs with the instruction, which nobody is told of; and
 * memory that it has given back by then is where the agent's next look would go (WebAssembly
 * modules compiled for that, as in Firefox's libxul.so).
 */
static bool sets_gs(const struct gt_catalog_file *file)
{
	const size_t step = 1 << 16, over = 4;
	uint8_t *code;
	bool found = false;

	code = malloc(step + over);
	for (uint32_t i = 0; code != NULL && !found && i < gt_object_segment_count(file->object);
	     i++) {
		const struct gt_object_segment *segment = gt_object_segment(file->object, i);
		ssize_t got;

		for (uint64_t at = 0; segment->execute && !found && at < segment->file_bytes;
		     at += step) {
			uint64_t left = segment->file_bytes - at;

			got = pread(file->fd, code, left < step + over ? left : step + over,
				    (off_t)(segment->file_offset + at));
			if (got < 5)
				break;
			found = has_wrgsbase(code, (size_t)got);
		}
	}
	free(code);
	return found;
}

static int plan_file(struct gt_catalog_file *file, bool breakpoints, struct gt_message *message)
{
	int error;

	error = gt_object_open_read(file->path, read_file, file, file->bytes, false, &file->object,
				    message);
	if (error == GT_ENOMEM)
		return error;
	if (error) {
		file->object = NULL; /* a font, a locale: mapped, but no object */
		return 0;
	}
	error = gt_plan_create(file->object, &file->plan, message);
	if (error)
		return error;
	gt_plan_use_cache(file->plan, NULL);
	if (breakpoints)
		gt_plan_allow_breakpoints(file->plan);
	file->function_count = gt_object_function_count(file->object);
	file->entries = calloc(file->function_count + 1, sizeof(*file->entries));
	file->planned = calloc(file->function_count + 1, 1);
	file->touched = calloc(file->function_count + 1, 1);
	if (file->entries == NULL || file->planned == NULL || file->touched == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for the functions of %s", file->path);
	file->prepared = gt_plan_is_prepared(file->plan);
	file->sets_gs = sets_gs(file);
	return 0;
}

struct gt_catalog_probe *gt_catalog_add_probe(struct gt_catalog *catalog,
					      struct gt_catalog_file *file,
					      const struct gt_probe *probe)
{
	struct gt_catalog_probe *added;

	if (file->probe_count == file->probe_room) {
		const uint32_t room = file->probe_room ? file->probe_room * 2 : 16;
		void *grown = realloc(file->probes, room * sizeof(*file->probes));

		if (grown == NULL)
			return NULL;
		file->probes = grown;
		file->probe_room = room;
	}
	added = &file->probes[file->probe_count];
	*added = (struct gt_catalog_probe){
		.probe = probe,
		.event = catalog->next_event++,
		.site = file->probe_count++,
	};
	return added;
}

/* Those of its notes, and those that were set for it before it was here. */
static int add_probes(struct gt_catalog *catalog, struct gt_catalog_file *file)
{
	uint32_t count = 0;
	const struct gt_probe *probes =
		file->object != NULL ? gt_object_probes(file->object, &count) : NULL;

	for (uint32_t i = 0; i < count; i++)
		if (gt_catalog_add_probe(catalog, file, &probes[i]) == NULL)
			return GT_ENOMEM;
	return gt_dynamics_opened(catalog, file);
}

int gt_catalog_open(struct gt_catalog *catalog, pid_t pid, const struct gt_map *map,
		    struct gt_catalog_file **found, struct gt_message *message)
{
	struct gt_catalog_file *file;
	struct stat status;
	int error, fd;

	fd = gt_catalog_open_mapped(pid, map, &status);
	if (fd < 0)
		return gt_fail(message, GT_ENOENT, "cannot open %s", map->path);
	for (size_t i = 0; i < catalog->file_count; i++) {
		file = catalog->files[i];
		if (file->inode != status.st_ino || file->device_major != major(status.st_dev) ||
		    file->device_minor != minor(status.st_dev) ||
		    file->changed != time_of_change(&status) || strcmp(file->path, map->path) != 0)
			continue;
		close(fd);
		*found = file;
		return 0;
	}
	if (catalog->file_count == catalog->file_room) {
		size_t room = catalog->file_room ? catalog->file_room * 2 : 16;
		void *files = realloc(catalog->files, room * sizeof(*catalog->files));

		if (files == NULL) {
			close(fd);
			return gt_fail(message, GT_ENOMEM, "no memory for %s", map->path);
		}
		catalog->files = files;
		catalog->file_room = room;
	}
	file = calloc(1, sizeof(*file));
	if (file != NULL)
		file->path = strdup(map->path);
	if (file == NULL || file->path == NULL) {
		free(file);
		close(fd);
		return gt_fail(message, GT_ENOMEM, "no memory for %s", map->path);
	}
	file->fd = fd;
	file->bytes = (uint64_t)status.st_size;
	file->inode = status.st_ino;
	file->device_major = major(status.st_dev);
	file->device_minor = minor(status.st_dev);
	file->changed = time_of_change(&status);
	file->system = is_system(map->path);
	file->hook_count = -1;
	file->no_demangle = catalog->no_demangle;
	error = plan_file(file, catalog->breakpoints, message);
	if (error) {
		free_file(file);
		return error;
	}
	error = add_probes(catalog, file);
	if (error) {
		free_file(file);
		return gt_fail(message, error, "no memory for the probes of %s", map->path);
	}
	catalog->files[catalog->file_count++] = file;
	*found = file;
	return 0;
}

int gt_catalog_plan(struct gt_catalog_file *file, uint32_t index,
		    const struct gt_plan_entry **entry, struct gt_message *message)
{
	int error;

	if (!file->planned[index]) {
		error = gt_plan_function(file->plan, index, &file->entries[index], message);
		if (error)
			return error;
		file->planned[index] = 1;
	}
	*entry = &file->entries[index];
	return 0;
}

int gt_catalog_hooks(struct gt_catalog_file *file)
{
	if (file->hook_count < 0) {
		int count =
			gt_hooks_find(file->object, file->plan, file->hooks, &file->switches, NULL);

		file->hook_count = count < 0 ? 0 : count;
	}
	return file->hook_count;
}

static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

/* Whether the function's first instruction is there, behind endbr64 where there is one. */
static bool is_first(const struct gt_catalog_file *file, uint32_t index, uint64_t address)
{
	const uint64_t start = gt_object_function(file->object, index)->address;
	const uint8_t *bytes;

	if (address != start + sizeof(endbr64))
		return address == start;
	bytes = gt_object_bytes(file->object, start, sizeof(endbr64));
	return bytes != NULL && memcmp(bytes, endbr64, sizeof(endbr64)) == 0;
}

/* Whether a plan of the function would take the bytes of a place there: a few bytes behind its start. */
static bool is_near_start(const struct gt_catalog_file *file, uint32_t index, uint64_t address)
{
	return address - gt_object_function(file->object, index)->address <= sizeof(endbr64);
}

/*
 * Whether the probe stands before the first instruction of a function that can be patched there: its site has the
 * function's plan then. *entry: the plan of the function that begins at the place, or NULL. goes_first: the function is
 * planned, too, if the probe is near its start. Else the probe could take bytes that the function's calls are recorded by.
 */
static int plan_entry(struct gt_catalog_file *file, struct gt_catalog_probe *probe, bool goes_first,
		      const struct gt_plan_entry **entry, struct gt_message *message)
{
	const uint64_t address = probe->probe->address;
	uint32_t index;
	int error = 0;

	*entry = NULL;
	probe->kind = GT_PROBE_PLACE;
	if (!gt_object_function_at(file->object, address, &index) &&
	    (goes_first ? is_near_start(file, index, address) : is_first(file, index, address)))
		error = gt_catalog_plan(file, index, entry, message);
	if (error)
		return error;
	probe->function = *entry != NULL ? index : 0;
	if (*entry != NULL && (*entry)->way != GT_PLAN_NONE &&
	    (address == (*entry)->address || address == (*entry)->patch_address)) {
		probe->kind = GT_PROBE_ENTRY;
		probe->plan = **entry;
	}
	return 0;
}

static int plan_dynamic(struct gt_catalog_file *file, struct gt_catalog_probe *probe,
			struct gt_message *message)
{
	const struct gt_plan_entry *entry;
	int error = plan_entry(file, probe, true, &entry, message);

	if (error)
		return error;
	if (!(probe->probe->flags & GRAFTRACE_PROBE_RETURN))
		return probe->kind == GT_PROBE_ENTRY
			       ? 0
			       : gt_plan_place(file->plan, probe->probe->address, &probe->plan,
					       message);
	if (probe->kind != GT_PROBE_ENTRY)
		probe->plan = (struct gt_plan_entry){
			.reason =
				entry != NULL && entry->reason ? entry->reason : GT_REASON_UNKNOWN,
		};
	else if (entry->entry_only)
		probe->plan.way = GT_PLAN_NONE; /* plan.reason says why */
	probe->kind = GT_PROBE_RETURN;
	return 0;
}

/* The first one at the same place; it is planned before. */
static uint32_t site_of(const struct gt_catalog_file *file, uint32_t index)
{
	const struct gt_probe *probe = file->probes[index].probe;

	for (uint32_t i = 0; i < index; i++) {
		const struct gt_probe *other = file->probes[i].probe;

		if (other->address == probe->address &&
		    (other->flags & GRAFTRACE_PROBE_RETURN) ==
			    (probe->flags & GRAFTRACE_PROBE_RETURN))
			return i;
	}
	return index;
}

/* One whose nop is a function's first instruction goes by the function's plan, which may have taken the nop before. */
static int plan_static(struct gt_catalog_file *file, uint32_t count, struct gt_message *message)
{
	struct gt_plan_entry *plans = calloc(count, sizeof(*plans));
	uint64_t *addresses = calloc(count, sizeof(*addresses));
	uint32_t *indexes = calloc(count, sizeof(*indexes));
	const struct gt_plan_entry *entry;
	uint32_t places = 0;
	int error = plans != NULL && addresses != NULL && indexes != NULL ? 0 : GT_ENOMEM;

	for (uint32_t i = 0; !error && i < count; i++) {
		error = plan_entry(file, &file->probes[i], false, &entry, message);
		if (error || file->probes[i].kind == GT_PROBE_ENTRY)
			continue;
		addresses[places] = file->probes[i].probe->address;
		indexes[places++] = i;
	}
	if (!error)
		error = gt_plan_probes(file->plan, addresses, places, plans, message);
	for (uint32_t i = 0; !error && i < places; i++)
		file->probes[indexes[i]].plan = plans[i];
	for (uint32_t i = 0; !error && i < count; i++)
		file->probes[i].planned = true;
	free(indexes);
	free(addresses);
	free(plans);
	return error;
}

int gt_catalog_plan_probes(struct gt_catalog_file *file, struct gt_message *message)
{
	uint32_t count = 0;
	int error = 0;

	if (!file->probe_count || file->probes[file->probe_count - 1].planned)
		return 0;
	gt_catalog_hooks(file); /* these go first */
	while (count < file->probe_count && file->probes[count].dynamic == NULL)
		count++;
	if (count && !file->probes[0].planned)
		error = plan_static(file, count, message);
	for (uint32_t i = count; !error && i < file->probe_count; i++) {
		struct gt_catalog_probe *probe = &file->probes[i];

		if (probe->planned)
			continue;
		probe->site = site_of(file, i);
		if (probe->site == i)
			error = plan_dynamic(file, probe, message);
		else {
			probe->kind = file->probes[probe->site].kind;
			probe->function = file->probes[probe->site].function;
		}
		probe->planned = !error;
	}
	return error;
}

void gt_catalog_describe_event(const struct gt_catalog_file *file, uint32_t index,
			       struct gt_event_format *event)
{
	const struct gt_probe *probe = file->probes[index].probe;

	*event = (struct gt_event_format){
		.number = file->probes[index].event,
		.field_count = probe->argument_count,
		.address = probe->address,
		.system = probe->system,
		.name = probe->name,
		.object = file->path,
	};
	for (uint32_t i = 0; i < probe->argument_count; i++)
		event->fields[i] = (struct gt_event_field){
			.name = probe->fields[i].name,
			.type = probe->fields[i].type,
			.bytes = probe->arguments[i].bytes,
			.is_signed = probe->arguments[i].is_signed,
			.is_string = probe->arguments[i].take == GRAFTRACE_TAKE_STRING ||
				     probe->arguments[i].take == GRAFTRACE_TAKE_STRINGS,
			.is_float = probe->fields[i].is_float,
			.show = probe->fields[i].show,
			.count = probe->arguments[i].count,
		};
}

/* The block that a function's number lies in, or NULL. */
static const struct gt_catalog_block *block_of(const struct gt_catalog *catalog, uint32_t number)
{
	size_t low = 0, high = catalog->block_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct gt_catalog_block *block = &catalog->blocks[middle];

		if (number < block->first)
			high = middle;
		else if (number - block->first >= block->count)
			low = middle + 1;
		else
			return block;
	}
	return NULL;
}

static int describe_values(const struct gt_catalog *catalog, uint32_t number,
			   struct gt_event_format *event)
{
	const uint32_t function = number & GRAFTRACE_VALUES_FUNCTION;
	const struct gt_catalog_block *block = block_of(catalog, function);

	return block != NULL
		       ? gt_values_describe(block->file, function - block->first, number, event)
		       : GT_ENOENT;
}

int gt_catalog_event(const struct gt_catalog *catalog, uint32_t number,
		     struct gt_event_format *event)
{
	if (number & GRAFTRACE_VALUES)
		return describe_values(catalog, number, event);
	if (gt_synthetics_event(catalog, number, event) == 0)
		return 0;
	if (catalog->syscall_events &&
	    number - catalog->syscall_events < gt_syscall_event_count()) {
		gt_syscall_event_describe(catalog, number - catalog->syscall_events, event);
		return 0;
	}
	for (size_t i = 0; i < catalog->file_count; i++) {
		const struct gt_catalog_file *file = catalog->files[i];
		uint32_t low = 0, high = file->probe_count;

		while (low < high) {
			const uint32_t middle = low + (high - low) / 2;

			if (file->probes[middle].event < number)
				low = middle + 1;
			else
				high = middle;
		}
		if (low == file->probe_count || file->probes[low].event != number)
			continue;
		gt_catalog_describe_event(file, low, event);
		return 0;
	}
	return GT_ENOENT;
}

uint32_t gt_catalog_take_numbers(struct gt_catalog *catalog, uint32_t count)
{
	uint32_t first = catalog->next_number;

	if (count > GRAFTRACE_SPECIAL - 1 - first)
		return 0;
	catalog->next_number += count;
	return first;
}

int gt_catalog_add_block(struct gt_catalog *catalog, const struct gt_catalog_block *block)
{
	size_t at;

	if (catalog->block_count == catalog->block_room) {
		size_t room = catalog->block_room ? catalog->block_room * 2 : 16;
		void *blocks = realloc(catalog->blocks, room * sizeof(*catalog->blocks));

		if (blocks == NULL)
			return GT_ENOMEM;
		catalog->blocks = blocks;
		catalog->block_room = room;
	}
	for (at = catalog->block_count; at > 0 && catalog->blocks[at - 1].first > block->first;
	     at--)
		catalog->blocks[at] = catalog->blocks[at - 1];
	catalog->blocks[at] = *block;
	catalog->block_count++;
	return 0;
}

void gt_catalog_describe(struct gt_catalog_file *file, uint32_t index, uint64_t bias,
			 struct gt_function *function)
{
	const struct gt_object_function *plain = gt_object_function(file->object, index);

	*function = (struct gt_function){
		.name = file->no_demangle && *plain->name
				? plain->name
				: gt_object_function_name(file->object, index),
		.object = file->path,
		.address = plain->address + bias,
		.size = plain->bytes,
	};
}

int gt_catalog_function(struct gt_catalog *catalog, uint32_t number, struct gt_function *function)
{
	const struct gt_catalog_block *block = block_of(catalog, number);

	if (block == NULL)
		return GT_ENOENT;
	gt_catalog_describe(block->file, number - block->first, block->bias, function);
	return 0;
}

int gt_catalog_function_at(struct gt_catalog *catalog, pid_t pid, uint64_t address,
			   struct gt_function *function)
{
	for (size_t i = catalog->block_count; i-- > 0;) {
		const struct gt_catalog_block *block = &catalog->blocks[i];
		uint32_t index;

		if (block->pid != pid || address < block->start || address >= block->end)
			continue;
		if (gt_object_function_at(block->file->object, address - block->bias, &index))
			return GT_ENOENT;
		gt_catalog_describe(block->file, index, block->bias, function);
		return 0;
	}
	return GT_ENOENT;
}
