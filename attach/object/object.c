/* SPDX-License-Identifier: MIT */
/*
 * An object's life, and what it is asked. Nothing is mapped: a mapped file that is cut meanwhile would
 * end us by SIGBUS.
 */
#include "attach/object/object_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES 4096ull

static int read_file(void *data, uint64_t offset, void *buffer, size_t bytes)
{
	const int fd = *(const int *)data;
	uint8_t *to = buffer;

	while (bytes) {
		const ssize_t got = pread(fd, to, bytes, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return GT_EIO;
		if (got == 0)
			return GT_ECUT; /* cut since it was opened */
		to += got;
		offset += (uint64_t)got;
		bytes -= (size_t)got;
	}
	return 0;
}

static int create(const char *path, struct gt_object **object, struct gt_message *message)
{
	struct gt_object *created = calloc(1, sizeof(*created));

	*object = NULL;
	if (created != NULL)
		created->path = strdup(path);
	if (created == NULL || created->path == NULL) {
		free(created);
		return gt_fail(message, GT_ENOMEM, "'%s': no memory", path);
	}
	created->fd = -1;
	*object = created;
	return 0;
}

static int open_file(const char *path,
		     int (*fill)(struct gt_object *object, struct gt_message *message),
		     struct gt_object **object, struct gt_message *message)
{
	struct gt_object *created;
	struct stat status;
	int error;

	*object = NULL;
	error = create(path, &created, message);
	if (error)
		return error;
	/* O_NONBLOCK: a FIFO without a writer must not hold us. */
	created->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (created->fd < 0 || fstat(created->fd, &status) < 0) {
		const int why = errno;

		error = gt_fail(message,
				why == ENOENT || why == ENOTDIR ? GT_ENOENT
				: why == EACCES || why == EPERM ? GT_EPERM
								: GT_EIO,
				"cannot open '%s': %s", path, strerror(why));
		goto close_object;
	}
	if (!S_ISREG(status.st_mode)) {
		error = gt_fail(message, GT_ENOTSUP, "'%s' is %s, no program", path,
				S_ISDIR(status.st_mode) ? "a directory" : "no regular file");
		goto close_object;
	}
	created->read = read_file;
	created->read_data = &created->fd;
	created->size = (uint64_t)status.st_size;
	error = fill(created, message);
	if (error)
		goto close_object;
	*object = created;
	return 0;

close_object:
	gt_object_close(created);
	return error;
}

int gt_object_open(const char *path, struct gt_object **object, struct gt_message *message)
{
	return open_file(path, gt_object_load_all, object, message);
}

int gt_object_open_names(const char *path, struct gt_object **object, struct gt_message *message)
{
	return open_file(path, gt_object_load_names_only, object, message);
}

int gt_object_open_read(const char *path, gt_object_read *read, void *data, uint64_t size,
			bool memory, struct gt_object **object, struct gt_message *message)
{
	struct gt_object *created;
	int error;

	*object = NULL;
	error = create(path, &created, message);
	if (error)
		return error;
	created->read = read;
	created->read_data = data;
	created->size = size;
	created->memory = memory;
	error = gt_object_load_all(created, message);
	if (error) {
		gt_object_close(created);
		return error;
	}
	*object = created;
	return 0;
}

void gt_object_close(struct gt_object *object)
{
	if (object == NULL)
		return;
	for (uint32_t i = 0; object->names != NULL && i < object->function_count; i++)
		free(object->names[i]);
	free(object->names);
	free(object->functions);
	free(object->strings);
	gt_object_free_symbols(object);
	gt_object_free_notes(object);
	free(object->needed);
	free(object->interpreter);
	free(object->sections);
	free(object->section_names);
	free(object->section_headers);
	for (uint32_t i = 0; object->segment_bytes != NULL && i < object->segment_count; i++)
		free(object->segment_bytes[i].bytes);
	free(object->segment_bytes);
	free(object->segments);
	free(object->program_headers);
	if (object->fd >= 0)
		close(object->fd);
	free(object->path);
	free(object);
}

const char *gt_object_path(const struct gt_object *object)
{
	return object->path;
}

static const char *dynamic_string(const struct gt_object *object, bool there, uint64_t offset)
{
	const struct gt_symbol_table *table = &object->tables[1];

	return there && table->strings != NULL && offset < table->string_bytes
		       ? table->strings + offset
		       : NULL;
}

const char *gt_object_soname(const struct gt_object *object)
{
	const char *name =
		dynamic_string(object, object->dynamic.has_soname, object->dynamic.soname);
	const char *slash = strrchr(object->path, '/');

	return name != NULL && *name ? name : slash != NULL ? slash + 1 : object->path;
}

uint32_t gt_object_build_id(const struct gt_object *object, const uint8_t **build_id)
{
	*build_id = object->build_id;
	return object->build_id_bytes;
}

const char *gt_object_interpreter(const struct gt_object *object)
{
	return object->interpreter;
}

bool gt_object_is_loader(const struct gt_object *object)
{
	const char *name = gt_object_soname(object);

	return object->header.e_type == ET_DYN && object->interpreter == NULL &&
	       !object->needed_count &&
	       (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-musl", 7) == 0 ||
		strncmp(name, "libc.musl", 9) == 0 || strcmp(name, "ld.so") == 0);
}

bool gt_object_is_program(const struct gt_object *object)
{
	return object->header.e_entry != 0 && !gt_object_is_loader(object) &&
	       (object->header.e_type == ET_EXEC || (object->dynamic.flags_1 & DF_1_PIE) ||
		(object->interpreter != NULL && !object->dynamic.has_soname));
}

bool gt_object_is_fixed(const struct gt_object *object)
{
	return object->header.e_type == ET_EXEC;
}

bool gt_object_catches(const struct gt_object *object)
{
	return object->catches;
}

uint32_t gt_object_needed_count(const struct gt_object *object)
{
	return object->needed_count;
}

const char *gt_object_needed(const struct gt_object *object, uint32_t index)
{
	return index < object->needed_count ? object->needed[index] : NULL;
}

const char *gt_object_runpath(const struct gt_object *object, bool *is_rpath)
{
	const struct gt_dynamic *dynamic = &object->dynamic;

	if (is_rpath != NULL)
		*is_rpath = !dynamic->has_runpath && dynamic->has_rpath;
	return dynamic->has_runpath ? dynamic_string(object, true, dynamic->runpath)
				    : dynamic_string(object, dynamic->has_rpath, dynamic->rpath);
}

uint32_t gt_object_segment_count(const struct gt_object *object)
{
	return object->segment_count;
}

const struct gt_object_segment *gt_object_segment(const struct gt_object *object, uint32_t index)
{
	return index < object->segment_count ? &object->segments[index] : NULL;
}

/* Index of the segment whose file bytes hold the address, -1 none. */
static int segment_at(const struct gt_object *object, uint64_t address)
{
	for (uint32_t i = 0; i < object->segment_count; i++) {
		const struct gt_object_segment *segment = &object->segments[i];

		if (address >= segment->address && address - segment->address < segment->file_bytes)
			return (int)i;
	}
	return -1;
}

/* Where the segment's bytes are to be read from. */
static uint64_t place_of_segment(const struct gt_object *object,
				 const struct gt_object_segment *segment)
{
	return object->memory ? segment->address - object->span_start : segment->file_offset;
}

const uint8_t *gt_object_bytes(struct gt_object *object, uint64_t address, uint64_t bytes)
{
	const int index = segment_at(object, address);
	const struct gt_object_segment *segment;
	struct gt_segment_bytes *part;
	uint64_t offset;

	if (index < 0)
		return NULL;
	segment = &object->segments[index];
	part = &object->segment_bytes[index];
	offset = address - segment->address;
	if (bytes > segment->file_bytes - offset || part->failed)
		return NULL;
	if (part->bytes == NULL) {
		void *loaded;

		part->failed = gt_object_load(object, place_of_segment(object, segment),
					      segment->file_bytes, "a segment", &loaded, NULL) != 0;
		if (part->failed)
			return NULL;
		part->bytes = loaded;
	}
	return part->bytes + offset;
}

uint8_t *gt_object_copy_bytes(struct gt_object *object, uint64_t address, uint64_t bytes)
{
	const int index = segment_at(object, address);
	const struct gt_object_segment *segment;
	uint64_t offset;
	void *copy;

	if (index < 0)
		return NULL;
	segment = &object->segments[index];
	offset = address - segment->address;
	if (bytes > segment->file_bytes - offset ||
	    gt_object_load(object, place_of_segment(object, segment) + offset, bytes, "a part",
			   &copy, NULL) != 0)
		return NULL;
	return copy;
}

uint64_t gt_object_code_bytes_at(const struct gt_object *object, uint64_t address)
{
	const int index = segment_at(object, address);

	if (index < 0 || !object->segments[index].execute)
		return 0;
	return object->segments[index].file_bytes - (address - object->segments[index].address);
}

int gt_object_address_of_offset(const struct gt_object *object, uint64_t file_offset,
				uint64_t *address)
{
	for (uint32_t i = 0; i < object->segment_count; i++) {
		const struct gt_object_segment *segment = &object->segments[i];

		if (file_offset >= segment->file_offset &&
		    file_offset - segment->file_offset < segment->file_bytes) {
			*address = segment->address + (file_offset - segment->file_offset);
			return 0;
		}
	}
	/* The page that a segment begins in is mapped from its start. */
	for (uint32_t i = 0; i < object->segment_count; i++) {
		const struct gt_object_segment *segment = &object->segments[i];

		if (file_offset < segment->file_offset &&
		    segment->file_offset - file_offset < PAGE_BYTES &&
		    (file_offset & -PAGE_BYTES) == (segment->file_offset & -PAGE_BYTES)) {
			*address = segment->address - (segment->file_offset - file_offset);
			return 0;
		}
	}
	return GT_ENOENT;
}

uint32_t gt_object_section_count(const struct gt_object *object)
{
	return object->section_count;
}

const struct gt_object_section *gt_object_section(const struct gt_object *object, uint32_t index)
{
	return index < object->section_count ? &object->sections[index] : NULL;
}

const struct gt_object_section *gt_object_section_named(const struct gt_object *object,
							const char *name)
{
	for (uint32_t i = 0; i < object->section_count; i++)
		if (strcmp(object->sections[i].name, name) == 0)
			return &object->sections[i];
	return NULL;
}
