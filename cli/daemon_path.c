/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_path.c - finding penstockd
 */
#include "cli/daemon_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/opts.h"

static const char *const places[] = { "penstockd", "../sbin/penstockd" };

static bool take(char ret[PATH_MAX], const char *dir, const char *name)
{
	int n = snprintf(ret, PATH_MAX, "%s/%s", dir, name);

	return n > 0 && n < PATH_MAX && access(ret, X_OK) == 0;
}

int daemon_path_find(const char *given, char ret[PATH_MAX])
{
	char self[PATH_MAX], *slash;
	ssize_t n;

	if (given) {
		n = snprintf(ret, PATH_MAX, "%s", given);
		return n > 0 && n < PATH_MAX ? 0 : -ENAMETOOLONG;
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash) {
		*slash = '\0';
		for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
			if (take(ret, self, places[i]))
				return 0;
		}
	}
	if (take(ret, PEN_SBINDIR, "penstockd"))
		return 0;
	say("penstockd is neither beside %s/penstock nor in %s: install "
	    "Penstock whole, or name it with --daemon PATH",
	    self[0] ? self : ".", PEN_SBINDIR);
	return -ENOENT;
}
