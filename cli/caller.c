/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller.c - the environment as typed values
 */
#include "cli/caller.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

#define NAME_BYTES	32	/* of a user's name */

/* Sanitizers are told by these; nothing else of ours reaches the daemon. */
static const struct str for_daemon[] = {
	{ "TZ=", 3 }, { "ASAN_OPTIONS=", 13 }, { "UBSAN_OPTIONS=", 14 },
	{ "LSAN_OPTIONS=", 13 },
};

const char *caller_env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

const char *caller_path(const char *name)
{
	const char *value = caller_env(name);

	return value && value[0] == '/' ? value : NULL;
}

uint32_t caller_number(const char *name)
{
	const char *value = caller_env(name);
	unsigned long n;

	if (!value || str_to_uint(str_from(value), UINT32_MAX, &n))
		return 0;
	return (uint32_t)n;
}

const char *caller_name(const char *name)
{
	const char *value = caller_env(name);

	if (!value || strlen(value) > NAME_BYTES)
		return NULL;
	for (const char *p = value; *p; p++) {
		char c = ascii_lower(*p);
		bool word = (c >= 'a' && c <= 'z') || ascii_is_digit(c);

		if (!word && (p == value || !strchr("-_.", c)))
			return NULL;
	}
	return value;
}

char *const *caller_environ(void)
{
	return environ;
}

char *const *caller_daemon_env(void)
{
	static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	static char *env[ARRAY_SIZE(for_daemon) + 2];
	size_t n = 0;

	env[n++] = path;
	for (char **e = environ; *e && n <= ARRAY_SIZE(for_daemon); e++) {
		for (size_t i = 0; i < ARRAY_SIZE(for_daemon); i++) {
			if (str_starts(str_from(*e), for_daemon[i]))
				env[n++] = *e;
		}
	}
	env[n] = NULL;
	return env;
}
