/* SPDX-License-Identifier: MIT */
/*
 * snapshot: a copy of the ring at one moment. Taking it empties the ring, as in Linux, where the
 * buffers are swapped. Behaviour and text: kernel/trace/trace.c (tracing_snapshot_write,
 * print_snapshot_help).
 */
#include "core/control/control_row.h"
#include "core/control/control_table.h"

static bool can_snapshot(const struct gt_control_target *target)
{
	return target->ops->snapshot != NULL;
}

static void append_help(struct gt_control_handle *handle, bool allocated, bool whole)
{
	uint64_t tracer = 0;

	if (handle->target->ops->get != NULL)
		handle->target->ops->get(handle->target, GT_CONTROL_TRACER, &tracer);
	append(handle, "# tracer: %s\n#\n", gt_control_tracer_name((uint32_t)tracer));
	append(handle, "#\n# * Snapshot is %s *\n#\n# Snapshot commands:\n",
	       allocated ? "allocated" : "freed");
	if (whole)
		append(handle, "%s",
		       "# echo 0 > snapshot : Clears and frees snapshot buffer\n"
		       "# echo 1 > snapshot : Allocates snapshot buffer, if not already "
		       "allocated.\n"
		       "#                      Takes a snapshot of the main buffer.\n"
		       "# echo 2 > snapshot : Clears snapshot buffer (but does not allocate or "
		       "free)\n"
		       "#                      (Doesn't have to be '2' works with any number that\n"
		       "#                       is not a '0' or '1')\n");
	else
		append(handle, "%s",
		       "# echo 0 > snapshot : Invalid for per_cpu snapshot file.\n"
		       "# echo 1 > snapshot : Not supported with this kernel.\n"
		       "#                     Must use main snapshot file to allocate.\n"
		       "# echo 2 > snapshot : Clears this cpu's snapshot buffer (but does not "
		       "allocate)\n"
		       "#                      (Doesn't have to be '2' works with any number that\n"
		       "#                       is not a '0' or '1')\n");
}

static int open_snapshot(struct gt_control_handle *handle, unsigned access,
			 struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_scope scope = gt_row_scope(handle);
	int state;

	if (!(access & GT_CONTROL_READ))
		return 0;
	state = target->ops->snapshot_open(target, &scope, &handle->opened, message);
	if (state == GT_SNAPSHOT_FREED || state == GT_SNAPSHOT_EMPTY)
		append_help(handle, state == GT_SNAPSHOT_EMPTY, scope.kind == GT_SCOPE_ALL);
	return state < 0 ? state : 0;
}

static int64_t read_snapshot(struct gt_control_handle *handle, char *buffer, size_t bytes,
			     struct gt_message *message)
{
	if (handle->opened == NULL)
		return gt_row_read_text(handle, buffer, bytes, message);
	return handle->target->ops->text_read(handle->target, handle->opened, buffer, bytes,
					      message);
}

static int64_t write_snapshot(struct gt_control_handle *handle, const char *bytes, size_t count,
			      struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_scope scope = gt_row_scope(handle);
	uint64_t value = 0;
	int error = gt_row_number(bytes, count, UINT64_MAX, &value, message);

	if (error != 0)
		return error;
	if (scope.kind != GT_SCOPE_ALL && value < 2)
		return REFUSE(message, GT_EINVAL,
			      "the snapshot is taken and freed as a whole: the file snapshot at "
			      "the top");
	error = target->ops->snapshot(target,
				      value == 0   ? GT_SNAPSHOT_FREE
				      : value == 1 ? GT_SNAPSHOT_TAKE
						   : GT_SNAPSHOT_CLEAR,
				      &scope, message);
	return error != 0 ? error : (int64_t)count;
}

static int close_snapshot(struct gt_control_handle *handle, struct gt_message *message)
{
	(void)message;
	if (handle->opened != NULL)
		handle->target->ops->text_close(handle->target, handle->opened);
	return 0;
}

static const struct gt_control_file files[] = {
	ROW("snapshot",
	    "the trace at a moment: 1 takes it and empties the ring, 0 frees it, 2 clears",
	    GT_CONTROL_LIVE, .exists = can_snapshot, .open = open_snapshot, .read = read_snapshot,
	    .write = write_snapshot, .close = close_snapshot),
	ROW("per_cpu/cpu#/snapshot", "the same of one CPU", GT_CONTROL_LIVE,
	    .numbers = &gt_row_cpus, .exists = can_snapshot, .argument = GT_SCOPE_CPU,
	    .open = open_snapshot, .read = read_snapshot, .write = write_snapshot,
	    .close = close_snapshot),
};

const struct gt_control_group gt_control_snapshot_files = { files, COUNT(files) };
