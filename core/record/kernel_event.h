/* SPDX-License-Identifier: MIT */
/* What the sources of a kernel's events share: static ones (kernel_event.c) and probes (kernel_probe.c). */
#ifndef GT_CORE_RECORD_KERNEL_EVENT_H
#define GT_CORE_RECORD_KERNEL_EVENT_H

#include "core/record/event.h"

/* The event is gathered: it is recorded, and all else that its rules say is done. Interrupts off, and the recorder is
 * not at work (thread->busy). saved: of gt_arch_interrupts_off. */
void gt_kernel_event_conclude(struct gt_thread *thread, struct gt_event *event, uint64_t saved);

#endif
