/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller.h - who calls and from where: the one place that reads the environment
 */
#ifndef CLI_CALLER_H
#define CLI_CALLER_H

#include <limits.h>
#include <stdint.h>

#include "base/compiler.h"

/* The variable's value, or NULL; "" counts as not set. */
const char *caller_env(const char *name);

/* @name's value when it is an absolute path, else NULL. */
const char *caller_path(const char *name);

/* SUDO_UID and its kin as a number; 0 when there is none. */
uint32_t caller_number(const char *name);

/* A name that /etc/passwd could hold, or NULL. */
const char *caller_name(const char *name);

/* What the daemon may know of our environment; NULL-terminated. */
char *const *caller_daemon_env(void);

/* All of it, NULL-terminated, borrowed. */
char *const *caller_environ(void);

#endif /* CLI_CALLER_H */
