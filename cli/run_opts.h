/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_opts.h - the options of penstock run
 */
#ifndef CLI_RUN_OPTS_H
#define CLI_RUN_OPTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "cli/run_parent.h"

#define RUN_ALLOW_MAX	1024	/* --allow options of one run */
#define RUN_LABEL_DEFAULT	"sandbox"	/* host name inside */
#define RUN_PRESETS_MAX	32	/* --preset options */
#define RUN_DNS_MAX	8	/* --dns-server options */

struct run_opts {
	const char *policy;		/* file, or NULL */
	const char *policy_name;	/* a service's own */
	struct buf allow;		/* policy text that --allow stands for */
	unsigned nallow;
	const char *preset[RUN_PRESETS_MAX];
	size_t npresets;
	const char *preset_dir;		/* NULL: the one that is installed */
	const char *write_policy, *records, *json_file;
	const char *name, *plug, *daemon;
	const char *dns[RUN_DNS_MAX + 1];	/* NULL-terminated */
	const char *dns_ca;
	struct run_parent parent;
	bool observe, json, summary, quiet, no_proxy_env, socks, map_root, private;
	bool help;
};

#define RUN_OPTS_INIT	{ .allow = BUF_INIT(1u << 20), \
			  .parent = RUN_PARENT_INIT }

/**
 * run_opts_parse() - Parse and check; says on stderr what is wrong
 * @ret_first:	index of the command in @argv
 * Return: 0 or -EINVAL
 */
NODISCARD int run_opts_parse(int argc, char **argv, struct run_opts *ret,
			     int *ret_first);
void run_opts_done(struct run_opts *o);
void run_opts_usage(void);

#endif /* CLI_RUN_OPTS_H */
