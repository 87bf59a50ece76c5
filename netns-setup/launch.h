/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - the launcher's whole surface: one command in one sealed sandbox
 */
#ifndef NETNS_SETUP_LAUNCH_H
#define NETNS_SETUP_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

#define LAUNCH_ERROR_MAX	1024
#define LAUNCH_POLICY_MAX	96

/* The plug is 3. */
#define LAUNCH_LOGIN_FD		4
#define LAUNCH_LOGIN_FD_TEXT	"4"

struct launch_spec {
	char *const *argv;		/* the command, NULL-terminated */
	char *const *env;		/* its whole environment, NULL-terminated */
	struct str policy_text;		/* flattened; "" denies everything */
	const char *policy_name;	/* a service's own policy instead, or NULL */
	const char *run_id;
	const char *hostname;		/* inside; also the label in records */
	const char *user;		/* name of the command's id, where it has none */
	uint32_t uid, gid;		/* its number under root; 0: 1000 */
	const char *home;		/* HOME inside: fresh and empty; NULL: none */
	const char *runtime_dir;	/* XDG_RUNTIME_DIR inside, or NULL */
	const char *cwd;		/* where we are; absolute, no links in it */
	const char *plug_path;		/* a running service's socket; NULL: private */
	const char *daemon_path;	/* penstockd to start when private */
	/* Resolvers that a private one asks, as of penstockd(8), --dns-server;
	 * NULL-terminated; NULL or none: resolv.conf's. */
	const char *const *dns;
	const char *dns_ca;		/* --tls-ca of it, or NULL */
	/* Further words of its command line, NULL-terminated; or NULL. */
	const char *const *daemon_words;
	/* What it finds as LAUNCH_LOGIN_FD, above that number; 0: nothing. */
	int login_fd;
	char *const *daemon_env;	/* its whole environment; NULL: empty */
	int records_fd;			/* O_APPEND; borrowed */
	const char *control_dir;	/* where the run's owner reaches us to give
					 * it another policy; NULL: nowhere */
	/* The policy as policy_text was made, from its files as they are now.
	 * Return: 0 with @out, or -errno with words in @why. NULL: there is none. */
	int (*policy_again)(void *arg, struct buf *out,
			    char why[LAUNCH_ERROR_MAX]);
	void *policy_arg;
	bool observe;
	bool map_root;			/* appear as uid 0 inside (apt and kin) */
	const char *const *hide;	/* extra paths to cover, NULL-terminated */
	const char *const *lock;	/* paths the command may only read, even where
					 * it works; NULL-terminated; NULL: none */
	const char *const *show;	/* files to show read-only even in covered
					 * places, NULL-terminated; NULL: none */
	/* A line for the user: what is not as it could be. NULL: nobody asks. */
	void (*note)(void *arg, const char *line);
	void *note_arg;
};

struct launch_result {
	int exit_code;		/* the command's, valid when @signal is 0 */
	int signal;		/* that ended the command, or 0 */
	bool daemon_lost;	/* penstockd went away before the command ended */
	bool audit_ok;		/* every record was written */
	uint64_t records;
	bool tproxy;		/* false: wildcard listeners were in force */
	/* "name@sha256:digest" as the daemon confirmed it, the last one */
	char policy[LAUNCH_POLICY_MAX];
};

struct launch_error {
	int exit_code;		/* 125, 126 or 127 */
	char text[LAUNCH_ERROR_MAX];	/* what failed and what to do, lines */
};

/**
 * launch_run() - Run the command to its end
 *
 * Nothing of the command starts before the daemon confirmed the plug and the
 * self-test passed.  Signals INT TERM HUP QUIT USR1 USR2 reach the command;
 * a terminal is relayed through a pty.  When it returns, no process of the
 * sandbox is left.
 * Return: 0 with @ret filled, or -errno with @err filled (command not started)
 */
NODISCARD int launch_run(const struct launch_spec *spec,
			 struct launch_result *ret, struct launch_error *err);

/* Is @path @dir or below it? Both absolute and without "..". */
bool path_is_in(const char *path, const char *dir);

/* Will the command be able to write in @cwd? For what it must not find there. */
bool launch_cwd_is_writable(const char *cwd, const char *home);

/* One thing that `penstock doctor` looks at. */
struct launch_check {
	const char *what;	/* "user namespaces" */
	bool ok;
	bool needed;		/* false: works with less without it */
	char detail[256];	/* what was found */
	char mend[512];		/* what to do; "" when ok */
};

#define LAUNCH_CHECKS_MAX	16
/* Probes in throw-away namespaces; returns how many were filled. */
size_t launch_doctor(struct launch_check ret[LAUNCH_CHECKS_MAX]);

#endif /* NETNS_SETUP_LAUNCH_H */
