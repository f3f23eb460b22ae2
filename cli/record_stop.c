/* SPDX-License-Identifier: MIT */
/*
 * Ends a recording on conditions. Conditions on functions are triggers: the program's own thread
 * switches tracing off at that moment, and here only the recording is ended. The death of a process
 * is noticed after it.
 */
#include "cli/record_stop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "core/trace/glob.h"

bool gt_record_stop_init(struct gt_record_stop *stop, const struct gt_record_options *options)
{
	*stop = (struct gt_record_stop){ .options = options };
	stop->triggers = calloc(options->stop_count + 1, sizeof(*stop->triggers));
	if (stop->triggers == NULL)
		return false;
	for (size_t i = 0; i < options->stop_count; i++) {
		if (gt_stop_trigger(&options->stops[i], &stop->triggers[stop->trigger_count]))
			stop->trigger_count++;
		if (options->stops[i].kind == GT_STOP_SIGNAL ||
		    options->stops[i].kind == GT_STOP_CRASH)
			stop->ends = true;
		if (options->stops[i].kind == GT_STOP_SIGNAL)
			stop->signals |= UINT64_C(1) << (options->stops[i].signal - 1);
	}
	return true;
}

void gt_record_stop_fini(struct gt_record_stop *stop)
{
	free(stop->triggers);
}

static void on_hit(void *data, const struct gt_trigger_hit *hit)
{
	struct gt_record_stop *stop = data;
	char took[64] = "was called";

	if (hit->action != GT_TRIGGER_STOP)
		stop->command(stop->command_data, hit);
	if (hit->action != GT_TRIGGER_STOP || stop->stopped)
		return;
	if (hit->took_ns != 0)
		snprintf(took, sizeof(took), "took %" PRIu64 ".%03" PRIu64 " ms",
			 hit->took_ns / 1000000, hit->took_ns / 1000 % 1000);
	snprintf(stop->why, sizeof(stop->why), "'%.300s' %s in thread %u of process %u",
		 hit->function.name, took, hit->tid, hit->pid);
	stop->stopped = true;
}

struct search {
	const struct gt_record_stop *stop;
	struct {
		bool matched;
		struct gt_proposal nearest;
		char name
			[64]; /* of `nearest`: names of functions live no longer than the callback */
	} * found;	      /* one for each trigger */
};

static int look(void *data, uint32_t number, const struct gt_function *function, bool enabled)
{
	struct search *search = data;

	(void)number;
	(void)enabled;
	for (size_t i = 0; i < search->stop->trigger_count; i++) {
		const char *glob = search->stop->triggers[i].glob;
		const char *before = search->found[i].nearest.word;

		search->found[i].matched |= gt_glob_match(glob, function->name);
		gt_propose(&search->found[i].nearest, glob, function->name);
		if (search->found[i].nearest.word == before)
			continue;
		snprintf(search->found[i].name, sizeof(search->found[i].name), "%s",
			 function->name);
		search->found[i].nearest.word = search->found[i].name;
	}
	return 0;
}

void gt_record_stop_watch(struct gt_record_stop *stop, struct gt_session *session)
{
	struct search search = { stop, calloc(stop->trigger_count + 1, sizeof(*search.found)) };

	gt_session_trigger_handler(session, on_hit, stop);
	if (search.found == NULL)
		return;
	if (stop->trigger_count > 0)
		gt_session_each_function(session, look, &search);
	for (size_t i = 0; i < stop->trigger_count; i++) {
		const char *near = search.found[i].nearest.word;

		if (!search.found[i].matched)
			gt_complain("record",
				    "--stop-when: there is no function '%s'%s%s%s; 'graftrace "
				    "functions' lists them, --libs takes in the system's libraries",
				    stop->triggers[i].glob, near != NULL ? "; did you mean '" : "",
				    near != NULL ? near : "", near != NULL ? "'?" : "");
	}
	free(search.found);
}

static bool wants_death(const struct gt_record_stop *stop, int signal)
{
	for (size_t i = 0; i < stop->options->stop_count; i++) {
		const struct gt_stop_condition *condition = &stop->options->stops[i];

		if (condition->kind == GT_STOP_CRASH && gt_signal_is_crash(signal))
			return true;
		if (condition->kind == GT_STOP_SIGNAL && condition->signal == signal)
			return true;
	}
	return false;
}

bool gt_record_stop_now(struct gt_record_stop *stop, struct gt_session *session)
{
	struct gt_session_death deaths[GT_SESSION_DEATHS];
	uint32_t count;
	char name[64];

	if (stop->stopped || stop->options->stop_count == 0)
		return stop->stopped;
	count = gt_session_deaths(session, deaths, GT_SESSION_DEATHS);
	for (uint32_t i = 0; i < count && !stop->stopped; i++) {
		if (!wants_death(stop, deaths[i].signal))
			continue;
		stop->stopped = true;
		snprintf(stop->why, sizeof(stop->why), "process %d died of %s", (int)deaths[i].pid,
			 gt_stop_signal_name(deaths[i].signal, name, sizeof(name)));
	}
	return stop->stopped;
}
