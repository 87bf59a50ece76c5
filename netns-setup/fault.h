/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.h - what went wrong before the command could start, in words
 *
 * Every step of the launcher fails into a struct launch_error: one line that
 * names the step, the kernel's word for it, and lines with the mend.
 */
#ifndef NETNS_SETUP_FAULT_H
#define NETNS_SETUP_FAULT_H

#include "base/compiler.h"
#include "netns-setup/launch.h"

/**
 * fault() - Describe a failure of our own (exit code 125)
 * @error:	positive errno, appended in words; 0: nothing is appended
 * Return: -@error, or -EINVAL when @error is 0
 */
int fault(struct launch_error *err, int error, const char *fmt, ...)
	PRINTF(3, 4);

/* Append one more line, indented: what to do about it. */
void fault_mend(struct launch_error *err, const char *fmt, ...) PRINTF(2, 3);

#endif /* NETNS_SETUP_FAULT_H */
