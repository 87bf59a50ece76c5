/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_reload.c - penstock reload: another policy for what runs already
 *
 * A service is asked over its plug to read its policies anew; a run, over the
 * socket in its own directory, to take a policy that comes along or to read its
 * own anew.  Both answer when every worker has it, and what is said of flows
 * has happened by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cmd.h"
#include "cli/opts.h"
#include "cli/policy_text.h"
#include "cli/run_state.h"
#include "proxy/ctl_proto.h"
#include "rules/rules.h"

/* Reading and compiling the largest policies takes seconds. */
#define ANSWER_MS	60000

enum { ID_HELP = 1, ID_RUN, ID_POLICY, ID_PLUG, ID_QUIET };

static const struct opt reload_opts[] = {
	{ ID_RUN, "run", 'r', OPT_NEEDED, "ID",
	  "a run of yours, instead of the service" },
	{ ID_POLICY, "policy", 0, OPT_NEEDED, "FILE",
	  "the run's policy from now on; without it, its own file anew" },
	{ ID_PLUG, "plug", 0, OPT_NEEDED, "PATH",
	  "the service's socket [" PLUG_DEFAULT "]" },
	{ ID_QUIET, "quiet", 'q', OPT_NONE, NULL, "say only what is wrong" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

struct reload {
	const char *run, *policy, *plug;
	bool quiet, help;
};

union answer {
	struct plug_head head;
	struct plug_refused refused;
	struct plug_swapped swapped;
	struct plug_reloaded reloaded;
};

static const char *reload_set(void *arg, int id, const char *value)
{
	struct reload *r = arg;

	switch (id) {
	case ID_RUN: r->run = value; break;
	case ID_POLICY: r->policy = value; break;
	case ID_PLUG: r->plug = value; break;
	case ID_QUIET: r->quiet = true; break;
	case ID_HELP: r->help = true; break;
	default: break;
	}
	return NULL;
}

static const struct opts_table reload_table = {
	"penstock reload", reload_opts, ARRAY_SIZE(reload_opts), reload_set
};

static void reload_usage(void)
{
	puts("Put another policy in force for what runs already:\n\n"
	     "  penstock reload                            the service's policies\n"
	     "  penstock reload --run 7f3a91               its --policy file, anew\n"
	     "  penstock reload --run 7f3a91 --policy new.ini\n\n"
	     "Every open flow is judged again; what is still allowed goes on, the\n"
	     "rest is cut.  A policy with a mistake leaves the old one in force.\n\n"
	     "Exit status: 0 when all workers have it; 1 when a policy stays as it\n"
	     "was; 2 when nobody could be asked, or FILE is not valid.\n\n"
	     "Usage: penstock reload [OPTION...]\n");
	opts_usage(&reload_table);
}

/* --- asking --------------------------------------------------------------------- */

static size_t size_of(uint16_t type)
{
	switch (type) {
	case PLUG_REFUSED:
		return sizeof(struct plug_refused);
	case PLUG_SWAPPED:
		return sizeof(struct plug_swapped);
	case PLUG_RELOADED:
		return sizeof(struct plug_reloaded);
	default:
		return 0;
	}
}

static void end_texts(union answer *a)
{
	switch (a->head.type) {
	case PLUG_REFUSED:
		a->refused.text[sizeof(a->refused.text) - 1] = '\0';
		break;
	case PLUG_SWAPPED:
		a->swapped.text[sizeof(a->swapped.text) - 1] = '\0';
		a->swapped.name[sizeof(a->swapped.name) - 1] = '\0';
		a->swapped.digest[sizeof(a->swapped.digest) - 1] = '\0';
		break;
	case PLUG_RELOADED:
		a->reloaded.text[sizeof(a->reloaded.text) - 1] = '\0';
		break;
	default:
		break;
	}
}

/* One whole answer: 0; -ETIMEDOUT, -EPIPE, -EPROTO, -errno. */
static int hear(int sock, union answer *ret)
{
	struct pollfd p = { sock, POLLIN, 0 };
	int fds[FD_PASS_MAX], n = poll(&p, 1, ANSWER_MS), e;
	size_t bytes, nfds;

	if (n <= 0)
		return n == 0 ? -ETIMEDOUT : -errno;
	memset(ret, 0, sizeof(*ret));
	e = fd_recv_msg(sock, ret, sizeof(*ret), &bytes, fds, &nfds);
	if (e)
		return e;
	while (nfds > 0)
		close(fds[--nfds]);
	if (bytes == 0)
		return -EPIPE;
	if (bytes < sizeof(ret->head) || ret->head.magic != PLUG_MAGIC ||
	    ret->head.version != PLUG_VERSION ||
	    bytes != size_of(ret->head.type))
		return -EPROTO;
	end_texts(ret);
	return 0;
}

static int no_answer(int e)
{
	if (e == -ETIMEDOUT)
		say("no answer within %d seconds: what is in force is not "
		    "known", ANSWER_MS / 1000);
	else if (e == -EPIPE || e == -ECONNRESET)
		say("the other side went away without an answer: the old "
		    "policy is in force, or the run is over");
	else if (e == -EPROTO)
		say("penstock and the other side do not speak the same "
		    "version: install both from one release");
	else
		say("no answer: %s", strerror(-e));
	return EXIT_USAGE;
}

static int connect_to(const char *path, int *ret_sock)
{
	CLEANUP(fd_closep) int sock = -1;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t n = strlen(path);

	if (n >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	memcpy(a.sun_path, path, n);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock == -1 ||
	    connect(sock, (const struct sockaddr *)&a, sizeof(a)))
		return -errno;
	*ret_sock = fd_take(&sock);
	return 0;
}

static void say_flows(uint32_t kept, uint32_t ended)
{
	printf("%" PRIu32 " open flow%s kept, %" PRIu32 " cut\n", kept,
	       kept == 1 ? "" : "s", ended);
}

/* --- the service ------------------------------------------------------------------ */

static int tell_service(const struct reload *r, const union answer *a)
{
	const struct plug_reloaded *m = &a->reloaded;

	if (a->head.type == PLUG_REFUSED) {
		say_lines(a->refused.text);
		return EXIT_NEGATIVE;
	}
	if (a->head.type != PLUG_RELOADED)
		return no_answer(-EPROTO);
	if (!m->ok) {
		say_lines(m->text);
		say("%" PRIu32 " of the policies stay%s as %s", m->failed,
		    m->failed == 1 ? "s" : "", m->failed == 1 ? "it was" :
		    "they were");
	}
	if (!r->quiet) {
		printf("%" PRIu32 " polic%s in force; %" PRIu32 " run%s got "
		       "another: ", m->policies, m->policies == 1 ? "y" :
		       "ies", m->runs, m->runs == 1 ? "" : "s");
		say_flows(m->kept, m->ended);
	}
	return m->ok ? 0 : EXIT_NEGATIVE;
}

static int reload_service(const struct reload *r)
{
	static const struct plug_head ask = { PLUG_MAGIC, PLUG_VERSION,
					      PLUG_RELOAD };
	const char *path = r->plug ? r->plug : PLUG_DEFAULT;
	CLEANUP(fd_closep) int sock = -1;
	union answer a;
	int e = connect_to(path, &sock);

	if (e) {
		say("cannot reach the service at %s: %s", path, strerror(-e));
		say_lines("  Is it running?  For a run with a daemon of its "
			  "own: penstock reload --run ID");
		return EXIT_USAGE;
	}
	e = fd_send_msg(sock, &ask, sizeof(ask), NULL, 0);
	/* One that refuses at once has said why, and closed. */
	if (!e || e == -EPIPE)
		e = hear(sock, &a);
	return e ? no_answer(e) : tell_service(r, &a);
}

/* --- a run ------------------------------------------------------------------------- */

/* Compiled as a proof, so that what is wrong is said with the file's name. */
static int open_policy(const char *path, int *ret_fd)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PLUG_POLICY_MAX);
	CLEANUP(rules_unrefp) struct ruleset *rules = NULL;
	int e = policy_load_text(path, NULL, NULL, &text, &rules);

	if (e) {
		say("the policy is not valid; the old one stays in force");
		return e;
	}
	e = fd_memfd("policy", buf_str(&text), ret_fd);
	if (e)
		say("cannot pass the policy on: %s", strerror(-e));
	return e;
}

static int say_no_run(const char *id, int e)
{
	if (e == -EINVAL)
		say("'%s' is no run id: it is six hex digits, and the summary "
		    "of a run begins with it", id);
	else if (e == -ENOENT || e == -ECONNREFUSED)
		say("no run %s of yours is going on", id);
	else
		say("cannot reach run %s: %s", id, strerror(-e));
	return EXIT_USAGE;
}

/* By its directory's descriptor: a path of any length works. */
static int connect_run(const char *id, int *ret_sock)
{
	char dir[RUN_PATH_MAX], path[64];
	CLEANUP(fd_closep) int fd = -1;
	int e = run_state_find_dir(id, dir), n;

	if (e)
		return e;
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return -errno;
	n = snprintf(path, sizeof(path), "/proc/self/fd/%d/" CONTROL_NAME, fd);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return connect_to(path, ret_sock);
}

static int tell_run(const struct reload *r, const union answer *a)
{
	const struct plug_swapped *m = &a->swapped;

	if (a->head.type != PLUG_SWAPPED)
		return no_answer(-EPROTO);
	if (!m->ok) {
		say_lines(m->text[0] ? m->text : "refused");
		say("the policy of run %s stays as it was", r->run);
		return EXIT_NEGATIVE;
	}
	if (r->quiet)
		return 0;
	printf("run %s: %s@sha256:%s is in force, %" PRIu32 " rule%s; ",
	       r->run, m->name, m->digest, m->rules, m->rules == 1 ? "" : "s");
	say_flows(m->kept, m->ended);
	return 0;
}

static int reload_run(const struct reload *r)
{
	static const struct plug_swap ask = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_SWAP },
		.serial = 1,
	};
	CLEANUP(fd_closep) int sock = -1;
	CLEANUP(fd_closep) int policy = -1;
	union answer a;
	int e;

	if (r->policy && open_policy(r->policy, &policy))
		return EXIT_USAGE;
	e = connect_run(r->run, &sock);
	if (e)
		return say_no_run(r->run, e);
	e = fd_send_msg(sock, &ask, sizeof(ask), &policy, policy >= 0);
	if (!e)
		e = hear(sock, &a);
	return e ? no_answer(e) : tell_run(r, &a);
}

int cmd_reload(int argc, char **argv)
{
	struct reload r = { .run = NULL };
	int first;

	if (opts_parse_all(&reload_table, argc, argv, &r, &first))
		return EXIT_USAGE;
	if (r.help) {
		reload_usage();
		return 0;
	}
	if (first < argc) {
		say_of(reload_table.command, "'%s' is too much: it takes no "
		       "argument", argv[first]);
		return EXIT_USAGE;
	}
	if (r.policy && !r.run) {
		say_of(reload_table.command, "--policy needs --run ID; the "
		       "service's policies are files in its directory");
		return EXIT_USAGE;
	}
	if (r.plug && r.run) {
		say_of(reload_table.command, "--plug is of a service and --run "
		       "of a run: give one of them");
		return EXIT_USAGE;
	}
	return r.run ? reload_run(&r) : reload_service(&r);
}
