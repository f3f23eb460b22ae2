/* SPDX-License-Identifier: MIT */
/*
 * A dry run of the dynamic loader's search. The cache's format is glibc's "glibc-ld.so.cache1.1"; a
 * cache that is broken counts as missing.
 */
#define _GNU_SOURCE /* asprintf */
#include "attach/object/libraries.h"
#include "attach/object/object_private.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARIES_MAX 4096u
#define CACHE_MAGIC   "glibc-ld.so.cache1.1"
#define CACHE_OLD     "ld.so-1.7.0"
#define CACHE_X86_64  0x303 /* ELF, libc 6, x86-64 */

struct cache_header {
	char magic[20];
	uint32_t count;
	uint32_t string_bytes;
	uint8_t flags[4];
	uint32_t extension;
	uint32_t unused[3];
};

struct cache_entry {
	int32_t flags;
	uint32_t key;
	uint32_t value;
	uint32_t os_version;
	uint64_t hwcap;
};

struct search {
	const struct gt_object *program;
	char *cache; /* whole file and a zero byte, NULL none */
	size_t cache_bytes;
	size_t cache_start; /* of the header that offsets count from */
	struct gt_libraries *libraries;
};

static const char *const system_directories[] = {
	"/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu",
	"/lib64",
	"/usr/lib64",
	"/lib",
	"/usr/lib",
};

static void load_cache(struct search *search)
{
	struct cache_header header;
	struct stat status;
	uint32_t count;
	const int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && status.st_size > (off_t)sizeof(header) &&
	    status.st_size < 1 << 28)
		search->cache = malloc((size_t)status.st_size + 1);
	if (search->cache != NULL &&
	    read(fd, search->cache, (size_t)status.st_size) == (ssize_t)status.st_size) {
		search->cache_bytes = (size_t)status.st_size;
		search->cache[search->cache_bytes] = 0;
	}
	close(fd);
	/* Older systems have an old table in front: 16 bytes, then entries of 12. */
	if (search->cache_bytes > 16 && memcmp(search->cache, CACHE_OLD, strlen(CACHE_OLD)) == 0) {
		memcpy(&count, search->cache + 12, sizeof(count));
		search->cache_start = (16 + (size_t)count * 12 + 7) & ~(size_t)7;
	}
	if (search->cache_start + sizeof(header) > search->cache_bytes)
		goto none;
	memcpy(&header, search->cache + search->cache_start, sizeof(header));
	if (memcmp(header.magic, CACHE_MAGIC, sizeof(header.magic)) != 0 ||
	    header.count > (search->cache_bytes - search->cache_start - sizeof(header)) /
				   sizeof(struct cache_entry))
		goto none;
	return;

none:
	free(search->cache);
	search->cache = NULL;
}

static char *find_in_cache(const struct search *search, const char *name)
{
	const char *start = search->cache != NULL ? search->cache + search->cache_start : NULL;
	const size_t bytes = search->cache_bytes - search->cache_start;
	struct cache_header header;

	if (start == NULL)
		return NULL;
	memcpy(&header, start, sizeof(header));
	for (uint32_t i = 0; i < header.count; i++) {
		struct cache_entry entry;

		memcpy(&entry, start + sizeof(header) + i * sizeof(entry), sizeof(entry));
		if (entry.flags == CACHE_X86_64 && entry.hwcap == 0 && entry.key < bytes &&
		    entry.value < bytes && strcmp(start + entry.key, name) == 0)
			return strdup(start + entry.value);
	}
	return NULL;
}

static bool is_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* One directory of a search path: $ORIGIN and ${ORIGIN} stand for where `origin` lies. */
static char *find_in(const char *directory, size_t bytes, const char *origin, const char *name)
{
	static const char *const tokens[] = { "$ORIGIN", "${ORIGIN}" };
	const char *slash = strrchr(origin, '/');
	const int origin_bytes = slash != NULL ? (int)(slash - origin) : 1;
	char *path = NULL;

	for (uint32_t i = 0; i < 2; i++) {
		const size_t length = strlen(tokens[i]);

		if (bytes >= length && strncmp(directory, tokens[i], length) == 0) {
			if (asprintf(&path, "%.*s%.*s/%s", origin_bytes, slash ? origin : ".",
				     (int)(bytes - length), directory + length, name) < 0)
				return NULL;
			break;
		}
	}
	if (path == NULL &&
	    (bytes == 0 ? asprintf(&path, "./%s", name)
			: asprintf(&path, "%.*s/%s", (int)bytes, directory, name)) < 0)
		return NULL;
	if (is_file(path))
		return path;
	free(path);
	return NULL;
}

static char *find_along(const char *directories, const char *separators, const char *origin,
			const char *name)
{
	while (directories != NULL && *directories) {
		const size_t bytes = strcspn(directories, separators);
		char *found = find_in(directories, bytes, origin, name);

		if (found != NULL)
			return found;
		directories += bytes + (directories[bytes] != 0);
	}
	return NULL;
}

static char *find_library(const struct search *search, const struct gt_object *needing,
			  const char *name)
{
	bool is_rpath = false, program_rpath = false;
	const char *path = gt_object_runpath(needing, &is_rpath);
	const char *program = gt_object_runpath(search->program, &program_rpath);
	char *found = NULL;

	if (strchr(name, '/') != NULL)
		return is_file(name) ? strdup(name) : NULL;
	if (is_rpath)
		found = find_along(path, ":", gt_object_path(needing), name);
	if (found == NULL && program_rpath && (path == NULL || is_rpath))
		found = find_along(program, ":", gt_object_path(search->program), name);
	if (found == NULL)
		found = find_along(getenv("LD_LIBRARY_PATH"), ":;", gt_object_path(search->program),
				   name);
	if (found == NULL && !is_rpath)
		found = find_along(path, ":", gt_object_path(needing), name);
	if (found == NULL)
		found = find_in_cache(search, name);
	for (uint32_t i = 0;
	     found == NULL && i < sizeof(system_directories) / sizeof(*system_directories); i++)
		found = find_in(system_directories[i], strlen(system_directories[i]), "", name);
	return found;
}

/* Where the system's package manager puts libraries, whatever link leads there. */
static bool is_system(const char *path)
{
	char real[PATH_MAX];

	if (realpath(path, real) == NULL)
		return false;
	for (uint32_t i = 0; i < sizeof(system_directories) / sizeof(*system_directories); i++) {
		const size_t bytes = strlen(system_directories[i]);

		if (strncmp(real, system_directories[i], bytes) == 0 && real[bytes] == '/')
			return true;
	}
	return false;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

static int add_library(struct search *search, const struct gt_object *needing, const char *name)
{
	struct gt_libraries *libraries = search->libraries;
	struct gt_library *grown;

	for (uint32_t i = 0; i < libraries->count; i++)
		if (strcmp(libraries->list[i].name, name) == 0)
			return 0;
	if (libraries->count == LIBRARIES_MAX)
		return 0;
	grown = realloc(libraries->list, (libraries->count + 1) * sizeof(*grown));
	if (grown == NULL)
		return GT_ENOMEM;
	libraries->list = grown;
	grown += libraries->count;
	grown->name = strdup(name);
	if (grown->name == NULL)
		return GT_ENOMEM;
	libraries->count++;
	grown->path = find_library(search, needing, name);
	grown->system = grown->path != NULL && is_system(grown->path);
	/* Found under another name already? The loader often is. */
	for (uint32_t i = 0; grown->path != NULL && i + 1 < libraries->count; i++)
		if (libraries->list[i].path != NULL &&
		    is_same_file(libraries->list[i].path, grown->path)) {
			free(grown->path);
			free(grown->name);
			libraries->count--;
			return 0;
		}
	return 0;
}

static int add_needed(struct search *search, const struct gt_object *needing)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < gt_object_needed_count(needing); i++)
		error = add_library(search, needing, gt_object_needed(needing, i));
	return error;
}

int gt_libraries_find(const struct gt_object *program, struct gt_libraries *libraries,
		      struct gt_message *message)
{
	struct search search = { .program = program, .libraries = libraries };
	const char *interpreter = gt_object_interpreter(program);
	int error;

	libraries->list = NULL;
	libraries->count = 0;
	load_cache(&search);
	error = add_needed(&search, program);
	for (uint32_t i = 0; !error && i < libraries->count; i++) {
		struct gt_object *library;

		/* The list grows while it is walked: breadth first. */
		if (libraries->list[i].path == NULL ||
		    gt_object_open_names(libraries->list[i].path, &library, NULL) != 0)
			continue;
		error = add_needed(&search, library);
		gt_object_close(library);
	}
	if (!error && interpreter != NULL)
		error = add_library(&search, program, interpreter);
	free(search.cache);
	if (error) {
		gt_libraries_free(libraries);
		return gt_fail(message, error, "'%s': no memory for its libraries",
			       gt_object_path(program));
	}
	return 0;
}

void gt_libraries_free(struct gt_libraries *libraries)
{
	for (uint32_t i = 0; i < libraries->count; i++) {
		free(libraries->list[i].path);
		free(libraries->list[i].name);
	}
	free(libraries->list);
	libraries->list = NULL;
	libraries->count = 0;
}
