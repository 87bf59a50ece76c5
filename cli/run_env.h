/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_env.h - the command's environment
 */
#ifndef CLI_RUN_ENV_H
#define CLI_RUN_ENV_H

#include <stdbool.h>

#include "base/compiler.h"

struct run_env_config {
	char *const *from;	/* ours */
	const char *run_id;
	const char *home;	/* HOME inside */
	const char *user;	/* USER and LOGNAME; NULL keeps them */
	const char *runtime_dir;
	bool proxy;		/* set the proxy variables */
	bool socks;		/* set ALL_PROXY */
};

/**
 * run_env_make() - The caller's environment, less what leads out of the sandbox
 * @ret:		NULL-terminated; free with run_env_free()
 * @ret_ignored:	a proxy setting of the caller's that was left out, its
 *			name in ours; or NULL
 */
NODISCARD int run_env_make(const struct run_env_config *c, char ***ret,
			   const char **ret_ignored);
void run_env_free(char **env);

/* Variables that name a file of certificates, NULL ends: shown inside. */
extern const char *const run_env_ca_files[];

#endif /* CLI_RUN_ENV_H */
