/* SPDX-License-Identifier: MIT */
/* What is to be traced: see selection.h. Asks only, and may be called by any thread that keeps the
 * selection from being changed (the session's lock). */
#define _GNU_SOURCE
#include "attach/agent/selection.h"

#include <string.h>

#include "core/trace/glob.h"

static bool any_matches(char *const *globs, const struct gt_words *words, const char *plain,
			const char *shown)
{
	if (words)
		return gt_words_match(words, plain) ||
		       (shown != plain && gt_words_match(words, shown));
	for (; globs && *globs; globs++)
		if (gt_glob_match(*globs, plain) ||
		    (shown != plain && gt_glob_match(*globs, shown)))
			return true;
	return false;
}

static bool is_root(const struct gt_asked *asked, const char *plain, const char *shown)
{
	return !asked->flat &&
	       any_matches(asked->graph, asked->words ? &asked->words->graph : NULL, plain, shown);
}

/* Whether a word glob:mod:object of the list names the function of that object. */
static bool any_of_module(const struct gt_asked *asked, char *const *globs,
			  const struct gt_catalog_file *file, const char *plain, const char *shown)
{
	const char *slash, *base;

	if (!asked->modules || !file)
		return false;
	slash = strrchr(file->path, '/');
	base = slash ? slash + 1 : file->path;
	for (; globs && *globs; globs++) {
		const char *mark = strstr(*globs, ":mod:");
		char glob[1024];

		if (!mark || strcmp(mark + 5, base) != 0 || (size_t)(mark - *globs) >= sizeof(glob))
			continue;
		memcpy(glob, *globs, (size_t)(mark - *globs));
		glob[mark - *globs] = 0;
		if (gt_glob_match(glob, plain) || (shown != plain && gt_glob_match(glob, shown)))
			return true;
	}
	return false;
}

bool gt_asked_wants(const struct gt_asked *asked, const struct gt_catalog_file *file,
		    const char *plain, const char *shown)
{
	bool filtered = asked->filter && *asked->filter;

	if (asked->off)
		return false;
	if (any_matches(asked->notrace, asked->words ? &asked->words->notrace : NULL, plain,
			shown) ||
	    any_of_module(asked, asked->notrace, file, plain, shown))
		return false;
	return !filtered || any_of_module(asked, asked->filter, file, plain, shown) ||
	       any_matches(asked->filter, asked->words ? &asked->words->filter : NULL, plain,
			   shown) ||
	       is_root(asked, plain, shown);
}

bool gt_selection_is_root(const struct gt_selection *selection, const char *plain,
			  const char *shown)
{
	uint32_t i;

	for (i = 0; i < selection->asked_count; i++)
		if (selection->asked[i] && is_root(selection->asked[i], plain, shown))
			return true;
	return false;
}

bool gt_selection_is_notrace(const struct gt_selection *selection, const char *plain,
			     const char *shown)
{
	return selection->graph_notrace &&
	       any_matches(NULL, selection->graph_notrace, plain, shown);
}

bool gt_selection_wants(const struct gt_selection *selection, const struct gt_catalog_file *file,
			const char *plain, const char *shown)
{
	uint32_t i;

	for (i = 0; i < selection->asked_count; i++)
		if (selection->asked[i] && gt_asked_wants(selection->asked[i], file, plain, shown))
			return true;
	return false;
}

bool gt_selection_takes_unprepared(const struct gt_selection *selection,
				   const struct gt_catalog_file *file)
{
	return selection->unprepared || !file->prepared;
}

static bool is_linkage_stub(const struct gt_catalog_file *file, uint32_t index)
{
	return gt_object_function(file->object, index)->flags & GT_FUNCTION_PLT;
}

bool gt_selection_takes(const struct gt_selection *selection, const struct gt_catalog_file *file,
			uint32_t index)
{
	if (is_linkage_stub(file, index))
		return selection->libcalls;
	return gt_selection_takes_unprepared(selection, file) ||
	       gt_plan_may_be_prepared(file->plan, index);
}

bool gt_selection_takes_entry(const struct gt_selection *selection,
			      const struct gt_catalog_file *file, const struct gt_plan_entry *entry)
{
	return entry->way != GT_PLAN_NONE &&
	       (!selection->uprobe_safe || entry->patch_address != entry->address) &&
	       (entry->prepared != GT_PREPARED_NONE || is_linkage_stub(file, entry->function) ||
		gt_selection_takes_unprepared(selection, file));
}

/* --lib: by the file's path, its name, or the library's; "libz" is "libz.so.1", too. */
static bool names_library(char *const *globs, const struct gt_catalog_file *file)
{
	const char *soname = gt_object_soname(file->object);
	const char *slash = strrchr(file->path, '/'), *base = slash ? slash + 1 : file->path;

	for (; globs && *globs; globs++) {
		const size_t bytes = strlen(*globs);

		if (gt_glob_match(*globs, base) || gt_glob_match(*globs, soname) ||
		    gt_glob_match(*globs, file->path))
			return true;
		if ((strncmp(base, *globs, bytes) == 0 && strncmp(base + bytes, ".so", 3) == 0) ||
		    (strncmp(soname, *globs, bytes) == 0 && strncmp(soname + bytes, ".so", 3) == 0))
			return true;
	}
	return false;
}

bool gt_selection_takes_file(const struct gt_selection *selection,
			     const struct gt_catalog_file *file)
{
	return !file->system || file->prepared || selection->libraries ||
	       names_library(selection->library_globs, file);
}
