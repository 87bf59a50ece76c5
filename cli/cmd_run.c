/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_run.c - penstock run: from options to a launch_spec, and the summary
 *
 * Everything that can be wrong is looked at before anything is started: usage,
 * policy, records file, output files.  Output files are opened before the
 * command starts and hidden from it, since it may be able to write the
 * directory they are in.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/query.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/caller.h"
#include "cli/cmd.h"
#include "cli/daemon_path.h"
#include "cli/opts.h"
#include "cli/run_env.h"
#include "cli/run_opts.h"
#include "cli/run_policy.h"
#include "cli/run_state.h"
#include "cli/steady.h"
#include "cli/summary.h"
#include "netns-setup/launch.h"
#include "proxy/ctl_proto.h"
#include "rules/rules_load.h"

#define HOME_DEFAULT	"/tmp/home"
#define RUNTIME_DIR	"/run/user/sandbox"
#define STATE_OF_ROOT	"/var/lib/penstock"
#define PATHS_MAX	(RULES_FILES_MAX + 32)

/* Paths as they are without links, kept until the run is over. */
struct paths {
	char *path[PATHS_MAX + 1];
	size_t n;
};

struct run {
	struct run_opts opts;
	struct buf policy;
	struct run_state state;
	struct paths hide, lock, show;
	char cwd[PATH_MAX], home[PATH_MAX];	/* real; cwd "": none */
	const char *home_env;
	char **env;
	char daemon[PATH_MAX];
	int write_policy, json;		/* descriptors, or -1 */
	int64_t duration_ms;
	struct launch_result result;
};

static void paths_add(struct paths *p, const char *path)
{
	char real[PATH_MAX];

	if (p->n == PATHS_MAX || !realpath(path, real))
		return;
	p->path[p->n] = mem_dup_str(str_from(real));
	if (p->path[p->n])
		p->n++;
}

/* A device or a pipe is nobody's to hide. */
static void paths_add_file(struct paths *p, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		paths_add(p, path);
}

static void paths_done(struct paths *p)
{
	while (p->n > 0)
		mem_free(p->path[--p->n]);
}

static void run_done(struct run *r)
{
	run_opts_done(&r->opts);
	buf_done(&r->policy);
	run_state_done(&r->state);
	paths_done(&r->hide);
	paths_done(&r->lock);
	paths_done(&r->show);
	run_env_free(r->env);
	fd_closep(&r->write_policy);
	fd_closep(&r->json);
}

/* --- before ----------------------------------------------------------------- */

/* A link that the command could let lead elsewhere leads to no file of ours. */
static int look_for_link(const struct run *r, const char *path,
			 const char *what)
{
	char link[PATH_MAX];
	int e;

	if (!path || !r->cwd[0] || !launch_cwd_is_writable(r->cwd, r->home))
		return 0;
	e = steady_find_link(path, r->cwd, link);
	if (e == -ELOOP) {
		say("%s: the way to %s leads over the link %s", what, path,
		    link);
		say_lines("  It is in the working directory, where the command "
			  "could let it lead elsewhere:\n"
			  "  name the file itself, or start from another "
			  "directory.");
	} else if (e) {
		say("%s: cannot look at %s: %s", what, path, strerror(-e));
	}
	return e;
}

/* A file that makes the policy.  The command must not write what the next run
 * is allowed by, as long as this one lasts. */
static int on_policy_file(void *arg, const char *path)
{
	struct run *r = arg;
	int e = look_for_link(r, path, "the policy");

	paths_add_file(&r->lock, path);
	return e;
}

static int load_policy(struct run *r)
{
	int e = run_policy_load(&r->opts, &r->policy, stderr, on_policy_file,
				r);

	if (e == -EINVAL)
		say("the policy is not valid; nothing was started");
	return e;
}

static int look_for_links(const struct run *r)
{
	int e = look_for_link(r, r->opts.records, "--records");

	if (!e)
		e = look_for_link(r, r->opts.policy, "--policy");
	if (!e)
		e = look_for_link(r, r->opts.write_policy, "--write-policy");
	if (!e)
		e = look_for_link(r, r->opts.json_file, "the summary");
	return e;
}

/* The same where it is no condition. */
static bool has_link(const struct run *r, const char *path)
{
	char link[PATH_MAX];

	return r->cwd[0] && steady_find_link(path, r->cwd, link) != 0;
}

static bool same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	if (stat(a, &sa) == -1 || stat(b, &sb) == -1)
		return strcmp(a, b) == 0;
	return S_ISREG(sa.st_mode) && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

/* An output that is also something else would empty it. */
static int check_outputs(const struct run_opts *o)
{
	const struct {
		const char *option, *path;
	} file[] = {
		{ "--policy", o->policy },
		{ "--records", o->records },
		{ "--write-policy", o->write_policy },
		{ "--json", o->json_file },
	};

	for (size_t i = 0; i < ARRAY_SIZE(file); i++) {
		for (size_t j = i + 1; j < ARRAY_SIZE(file); j++) {
			if (!file[i].path || !file[j].path ||
			    !same_file(file[i].path, file[j].path))
				continue;
			say("%s and %s are the same file, %s: name another",
			    file[i].option, file[j].option, file[j].path);
			return -EINVAL;
		}
	}
	return 0;
}

static int open_outputs(struct run *r)
{
	int e = check_outputs(&r->opts);

	if (!e)
		e = run_state_open(r->opts.records, &r->state);
	if (!e && r->state.own_dir && has_link(r, r->state.base))
		run_state_forget_dir(&r->state);
	if (!e && r->state.base[0])
		e = look_for_link(r, r->state.base, "records");
	if (!e && r->opts.write_policy)
		e = run_state_output(r->opts.write_policy, &r->write_policy);
	if (!e && r->opts.json_file)
		e = run_state_output(r->opts.json_file, &r->json);
	if (e)
		return e;
	if (r->opts.records)
		paths_add_file(&r->hide, r->state.records);
	if (r->state.base[0])
		paths_add(&r->hide, r->state.base);
	paths_add(&r->hide, STATE_OF_ROOT);
	if (r->opts.write_policy)
		paths_add_file(&r->hide, r->opts.write_policy);
	if (r->opts.json_file)
		paths_add_file(&r->hide, r->opts.json_file);
	return 0;
}

/* The caller's home is covered by an empty one of the same name. */
static void find_home(struct run *r)
{
	static const char fallback[] = HOME_DEFAULT;
	const char *home = caller_path("HOME");
	struct stat st;

	if (home && realpath(home, r->home) && strcmp(r->home, "/") != 0 &&
	    stat(r->home, &st) == 0 && S_ISDIR(st.st_mode)) {
		r->home_env = home;
		return;
	}
	memcpy(r->home, fallback, sizeof(fallback));
	r->home_env = fallback;
}

static void find_places(struct run *r)
{
	const char *runtime = caller_path("XDG_RUNTIME_DIR");

	if (!getcwd(r->cwd, sizeof(r->cwd)) || r->cwd[0] != '/')
		r->cwd[0] = '\0';
	find_home(r);
	if (runtime)
		paths_add(&r->hide, runtime);
	for (size_t i = 0; run_env_ca_files[i]; i++) {
		const char *file = caller_path(run_env_ca_files[i]);

		if (file)
			paths_add_file(&r->show, file);
	}
}

static const char *user_inside(const struct run *r)
{
	const char *name;

	if (r->opts.map_root)
		return "root";
	name = caller_name(geteuid() == 0 ? "SUDO_USER" : "USER");
	return name && strcmp(name, "root") != 0 ? name : RUN_LABEL_DEFAULT;
}

static void note(void *arg, const char *line)
{
	(void)arg;
	say("note: %s", line);
}

static int make_env(struct run *r)
{
	bool renamed = geteuid() == 0 || r->opts.map_root;
	const struct run_env_config config = {
		.from = caller_environ(),
		.run_id = r->state.id,
		.home = r->home_env,
		.user = renamed ? user_inside(r) : NULL,
		.runtime_dir = RUNTIME_DIR,
		.proxy = !r->opts.no_proxy_env,
		.socks = r->opts.socks,
	};
	const char *ignored;
	int e = run_env_make(&config, &r->env, &ignored);

	if (e) {
		say("cannot make the environment: %s", strerror(-e));
		return e;
	}
	if (ignored && !r->opts.quiet && !r->opts.parent.env)
		say("note: your %.*s does not count inside; the sandbox has "
		    "its own proxy", (int)strcspn(ignored, "="), ignored);
	return 0;
}

/* NULL: a private daemon.  A service that is there is never passed by, also
 * where it cannot be reached. */
static const char *find_plug(const struct run *r)
{
	if (r->opts.private)
		return NULL;
	if (r->opts.plug)
		return r->opts.plug;
	return access(PLUG_DEFAULT, W_OK) == 0 || errno != ENOENT ?
	       PLUG_DEFAULT : NULL;
}

static int prepare(struct run *r)
{
	int e;

	find_places(r);
	e = look_for_links(r);
	if (!e)
		e = load_policy(r);
	if (!e)
		e = open_outputs(r);
	if (!e && run_parent_find(&r->opts.parent))
		e = EXIT_OWN;
	return e ? e : make_env(r);
}

static int policy_again(void *arg, struct buf *out,
			char why[LAUNCH_ERROR_MAX])
{
	const struct run *r = arg;
	struct run_policy_place place = {
		.opts = &r->opts,
		.cwd = r->cwd[0] && launch_cwd_is_writable(r->cwd, r->home) ?
		       r->cwd : NULL,
	};

	return run_policy_again(&place, out, why, LAUNCH_ERROR_MAX);
}

static int launch(struct run *r, char **command)
{
	struct launch_error err;
	struct launch_spec spec = {
		.argv = command,
		.env = r->env,
		.policy_text = buf_str(&r->policy),
		.policy_name = r->opts.policy_name,
		.run_id = r->state.id,
		.hostname = r->opts.name ? r->opts.name : RUN_LABEL_DEFAULT,
		.user = user_inside(r),
		.uid = caller_number("SUDO_UID"),
		.gid = caller_number("SUDO_GID"),
		.home = r->home,
		.runtime_dir = RUNTIME_DIR,
		.cwd = r->cwd[0] ? r->cwd : NULL,
		.plug_path = find_plug(r),
		.daemon_path = r->daemon,
		.dns = r->opts.dns,
		.dns_ca = r->opts.dns_ca,
		.daemon_words = r->opts.parent.word,
		.login_fd = MAX(r->opts.parent.login, 0),
		.daemon_env = caller_daemon_env(),
		.records_fd = r->state.fd,
		.control_dir = r->state.dir[0] ? r->state.dir : NULL,
		.policy_again = policy_again,
		.policy_arg = r,
		.observe = r->opts.observe,
		.map_root = r->opts.map_root,
		.hide = (const char *const *)r->hide.path,
		.lock = (const char *const *)r->lock.path,
		.show = (const char *const *)r->show.path,
		.note = r->opts.quiet ? NULL : note,
	};
	int64_t begin = clock_mono_ms();

	if (!spec.plug_path && r->opts.policy_name) {
		say("--policy-name needs a service, and there is none at "
		    PLUG_DEFAULT " (penstockd(8) tells how to set one up)");
		return EXIT_OWN;
	}
	if (spec.plug_path && r->opts.dns[0]) {
		say("--dns-server is for a penstockd of the run's own, and a "
		    "service is there: add --private, or let the service ask "
		    "its own resolvers");
		return EXIT_OWN;
	}
	if (spec.plug_path && r->opts.parent.n) {
		say("--parent, --source and --mark are for a penstockd of the "
		    "run's own, and a service is there: add --private, or name a "
		    "parent of the service's in the policy");
		return EXIT_OWN;
	}
	if (!spec.plug_path && daemon_path_find(r->opts.daemon, r->daemon))
		return EXIT_OWN;
	if (launch_run(&spec, &r->result, &err)) {
		say_lines(err.text);
		return err.exit_code;
	}
	r->duration_ms = clock_mono_ms() - begin;
	return 0;
}

/* --- after ------------------------------------------------------------------ */

static int write_text(int fd, const struct buf *text, const char *what)
{
	int e = fd_write_all(fd, text->p, text->n);

	if (e)
		say("cannot write %s: %s", what, strerror(-e));
	return e;
}

/* "\n" becomes "\r\n" nowhere: the terminal is ours again by now. */
static int tell(struct run *r, const struct query_summary *flows)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(SUMMARY_MAX);
	const struct summary s = {
		.run = r->state.id,
		.result = &r->result,
		.flows = flows,
		.duration_ms = r->duration_ms,
		.records = r->state.records,
		.home = r->home,
		.has_file = r->opts.policy != NULL,
		.has_name = r->opts.policy_name != NULL,
		.observe = r->opts.observe,
	};
	/* Never both in one place. */
	bool words = (!r->opts.json || r->json >= 0) && !r->opts.quiet &&
		     (r->opts.summary || isatty(STDERR_FILENO));
	int e = 0;

	if (r->opts.json)
		e = summary_json(&s, &text);
	if (!e && r->opts.json)
		e = write_text(r->json >= 0 ? r->json : STDERR_FILENO, &text,
			       "the summary");
	buf_reset(&text);
	if (!e && words)
		e = summary_text(&s, &text);
	if (!e && words)
		e = write_text(STDERR_FILENO, &text, "the summary");
	return e;
}

static int write_policy(struct run *r, const struct query_summary *flows)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(SUMMARY_MAX);
	const struct query_wish wish = { .run = r->state.id, .refused = true };
	int e;

	if (r->write_policy < 0)
		return 0;
	e = query_policy(flows, &wish, &text);
	return e ? e : write_text(r->write_policy, &text, "the policy");
}

static void after(struct run *r)
{
	CLEANUP(fd_closep) int fd = -1;
	struct query_summary flows = { 0 };
	bool wanted = r->opts.json || r->opts.summary || r->write_policy >= 0 ||
		      isatty(STDERR_FILENO);
	int e = 0;

	if (!wanted || (r->opts.quiet && !r->opts.json && r->write_policy < 0))
		return;
	e = run_state_reopen(&r->state, &fd);
	/* What is no file has no beginning either: nothing is read back. */
	if (!e && lseek(fd, r->state.start, SEEK_SET) != -1)
		e = query_summarise(fd, &flows);
	if (e)
		say("cannot read the records back: %s", strerror(-e));
	e = tell(r, &flows);
	if (!e)
		e = write_policy(r, &flows);
	if (e)
		say("cannot sum the run up: %s", strerror(-e));
	query_summary_done(&flows);
}

/* The way the command ended is the way we end. */
static int end_by(int number)
{
	const struct rlimit none = { 0, 0 };
	sigset_t set;

	/* The core that matters was the command's. */
	setrlimit(RLIMIT_CORE, &none);
	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(number);
	return 128 + number;
}

int cmd_run(int argc, char **argv)
{
	struct run r = {
		.opts = RUN_OPTS_INIT,
		.policy = BUF_INIT(PLUG_POLICY_MAX),
		.state = RUN_STATE_INIT,
		.write_policy = -1,
		.json = -1,
	};
	int first = 0, code = EXIT_OWN;

	if (run_opts_parse(argc, argv, &r.opts, &first)) {
		code = EXIT_OWN;
	} else if (r.opts.help) {
		run_opts_usage();
		code = 0;
	} else if (!prepare(&r)) {
		code = launch(&r, argv + first);
		if (!code) {
			after(&r);
			code = r.result.exit_code;
		}
	}
	if (r.result.signal)
		code = end_by(r.result.signal);
	run_done(&r);
	return code;
}
