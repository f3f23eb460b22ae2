/* SPDX-License-Identifier: MIT */
/* What is to be traced: see selection.h. Asks only, and may be called by any thread that keeps the
 * selection from being changed (the session's lock). */
#define _GNU_SOURCE
#include "attach/agent/selection.h"

#include <string.h>

#include "core/trace/glob.h"

static bool any_matches(const struct gt_word_list *list, const char *plain, const char *shown)
{
	return gt_word_list_match(list, plain) ||
	       (shown != plain && gt_word_list_match(list, shown));
}

/* Also by a word that is for functions of this file alone; NULL: there is no file. */
static bool any_matches_in(const struct gt_word_list *list, const struct gt_catalog_file *file,
			   const char *plain, const char *shown)
{
	if (any_matches(list, plain, shown))
		return true;
	return file != NULL &&
	       (gt_word_list_match_module(list, file->path, plain) ||
		(shown != plain && gt_word_list_match_module(list, file->path, shown)));
}

static bool is_root(const struct gt_asked *asked, const char *plain, const char *shown)
{
	return !asked->flat && any_matches(asked->settings->lists[GT_LIST_GRAPH], plain, shown);
}

bool gt_asked_wants(const struct gt_asked *asked, const struct gt_catalog_file *file,
		    const char *plain, const char *shown)
{
	struct gt_word_list *const *lists = asked->settings->lists;

	if (asked->off || any_matches_in(lists[GT_LIST_NOTRACE], file, plain, shown))
		return false;
	return lists[GT_LIST_FILTER] == NULL ||
	       any_matches_in(lists[GT_LIST_FILTER], file, plain, shown) ||
	       is_root(asked, plain, shown);
}

bool gt_selection_is_root(const struct gt_selection *selection, const char *plain,
			  const char *shown)
{
	for (uint32_t i = 0; i < selection->asked_count; i++)
		if (selection->asked[i] != NULL && is_root(selection->asked[i], plain, shown))
			return true;
	return false;
}

bool gt_selection_is_notrace(const struct gt_selection *selection, const char *plain,
			     const char *shown)
{
	return any_matches(selection->graph_notrace, plain, shown);
}

bool gt_selection_wants(const struct gt_selection *selection, const struct gt_catalog_file *file,
			const char *plain, const char *shown)
{
	for (uint32_t i = 0; i < selection->asked_count; i++)
		if (selection->asked[i] != NULL &&
		    gt_asked_wants(selection->asked[i], file, plain, shown))
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
	const char *slash = strrchr(file->path, '/'),
		   *base = slash != NULL ? slash + 1 : file->path;

	for (; globs != NULL && *globs != NULL; globs++) {
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
