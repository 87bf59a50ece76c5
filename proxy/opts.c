/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opts.c - penstockd's command line, and the environment that it heeds
 */
#include <getopt.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <config.h>

#include "base/mem.h"
#include "base/str.h"
#include "proxy/marker.h"
#include "proxy/opts.h"

static const char opts_usage[] =
	"Usage: penstockd --config FILE [--check | --upgrade]\n"
	"       penstockd --private --plug-fd N [--uid N --gid N]\n"
	"\n"
	"The gate that sandboxes are plugged into.\n"
	"\n"
	"  --config FILE       serve many sandboxes, as FILE says\n"
	"  --check             only say whether FILE is right\n"
	"  --upgrade           take the service over from the penstockd that has it,\n"
	"                      with its runs and listeners, and go to the background\n"
	"  --private           serve the one sandbox whose launcher started us\n"
	"  --plug-fd N         descriptor of the connection to that launcher\n"
	"  --uid N, --gid N    ids to change to when started as root\n"
	"  --resolv-conf FILE  where the upstream resolvers stand [/etc/resolv.conf]\n"
	"  --dns-server ADDRESS   one of them instead; may be repeated\n"
	"  --tls-ca FILE       who may vouch for those that begin with tls://\n"
	"  --source ADDRESS    that flows leave from, or one of each family\n"
	"  --mark N            that sockets to origins and parents bear; as root\n"
	"  --parent [NAME=]URL  a proxy that flows go through; may be repeated\n"
	"  --parent-credentials FILE, --parent-bypass WORDS,\n"
	"  --parent-resolve here|parent, --parent-http connect|absolute\n"
	"                      of the --parent before them\n"
	"  --log-level WORD    error, warn, info or debug\n"
	"  --help, --version\n"
	"\n"
	"FILE, and all of this at length: penstockd(8).\n";

enum {
	OPT_CONFIG = 256, OPT_CHECK, OPT_UPGRADE, OPT_PRIVATE, OPT_PLUG_FD, OPT_UID,
	OPT_GID, OPT_RESOLV, OPT_DNS, OPT_TLS_CA, OPT_PARENT, OPT_PARENT_LOGIN,
	OPT_PARENT_BYPASS, OPT_PARENT_RESOLVE, OPT_PARENT_HTTP, OPT_LEVEL,
	OPT_SOURCE, OPT_MARK, OPT_HELP, OPT_VERSION,
};

static const struct option opts_table[] = {
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "upgrade", no_argument, NULL, OPT_UPGRADE },
	{ "private", no_argument, NULL, OPT_PRIVATE },
	{ "plug-fd", required_argument, NULL, OPT_PLUG_FD },
	{ "uid", required_argument, NULL, OPT_UID },
	{ "gid", required_argument, NULL, OPT_GID },
	{ "resolv-conf", required_argument, NULL, OPT_RESOLV },
	{ "dns-server", required_argument, NULL, OPT_DNS },
	{ "tls-ca", required_argument, NULL, OPT_TLS_CA },
	{ "source", required_argument, NULL, OPT_SOURCE },
	{ "mark", required_argument, NULL, OPT_MARK },
	{ "parent", required_argument, NULL, OPT_PARENT },
	{ "parent-credentials", required_argument, NULL, OPT_PARENT_LOGIN },
	{ "parent-bypass", required_argument, NULL, OPT_PARENT_BYPASS },
	{ "parent-resolve", required_argument, NULL, OPT_PARENT_RESOLVE },
	{ "parent-http", required_argument, NULL, OPT_PARENT_HTTP },
	{ "log-level", required_argument, NULL, OPT_LEVEL },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static bool opts_bad(const char *what, const char *given)
{
	fprintf(stderr, "penstockd: %s%s%s%s\n", what, given ? " '" : "",
		given ? given : "", given ? "'" : "");
	return false;
}

static bool opts_number(const char *text, unsigned long min,
			unsigned long max, unsigned long *ret,
			const char *what)
{
	unsigned long v;

	if (str_to_uint(str_from(text), max, &v) < 0 || v < min)
		return opts_bad(what, text);
	*ret = v;
	return true;
}

static bool opts_level(const char *text, struct opts *o)
{
	static const char *const words[] = { "error", "warn", "info",
					     "debug" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(str_from(text), str_from(words[i]))) {
			o->has_level = true;
			o->level = (enum log_level)i;
			return true;
		}
	return opts_bad("--log-level wants error, warn, info or debug, not",
			text);
}

static bool opts_dns(const char *text, struct opts *o)
{
	struct resolver_servers *s = &o->dns;
	const char *why = "";

	if (s->n == RESOLVER_SERVERS_MAX)
		return opts_bad("too many of --dns-server, at", text);
	if (resolver_parse_server(str_from(text), &s->server[s->n], &why) < 0) {
		fprintf(stderr, "penstockd: --dns-server is given '%s', which %s\n",
			text, why);
		return false;
	}
	s->n++;
	return true;
}

static bool opts_source(const char *text, struct opts *o)
{
	const char *why;

	if (source_parse(str_from(text), &o->source, &why) == 0)
		return true;
	fprintf(stderr, "penstockd: --source is given '%s', which %s\n", text,
		why);
	return false;
}

static bool opts_mark(const char *text, struct opts *o)
{
	const char *why;

	if (marker_parse(str_from(text), &o->mark, &why) == 0)
		return true;
	fprintf(stderr, "penstockd: --mark is given '%s', which %s\n", text,
		why);
	return false;
}

static bool opts_parent(const char *text, struct opts *o)
{
	struct str url = str_from(text), name = STR("parent");
	size_t equals = str_chr(url, '=');
	const char *why = "out of memory";
	struct parent *p;

	if (equals < str_chr(url, ':')) {
		name = str_make(url.p, equals);
		url = str_make(url.p + equals + 1, url.n - equals - 1);
	}
	if (parents_add(&o->parents, name, &p, &why) < 0) {
		fprintf(stderr, "penstockd: --parent: '%.*s' %s\n",
			STR_ARG(name), why);
		return false;
	}
	if (o->parents.n == 1)
		o->parents.by_default = p;
	if (parent_set_url(p, url, &why) == 0)
		return true;
	/* It may hold a login. */
	fprintf(stderr, "penstockd: --parent %s\n", why);
	return false;
}

static bool opts_parent_bypass(struct parent *p, const char *text)
{
	struct str rest = str_from(text), word;
	const char *why = "out of memory";

	while (str_word(&rest, &word)) {
		if (parent_add_bypass(p, word, &why) == 0)
			continue;
		fprintf(stderr, "penstockd: --parent-bypass is given '%.*s', which %s\n",
			STR_ARG(word), why);
		return false;
	}
	return true;
}

static bool opts_either(const char *text, const char *yes, const char *no,
			bool *ret)
{
	*ret = str_eq(str_from(text), str_from(yes));
	if (*ret || str_eq(str_from(text), str_from(no)))
		return true;
	fprintf(stderr, "penstockd: write '%s' or '%s', not '%s'\n", yes, no,
		text);
	return false;
}

/* About the parent that was named last. */
static bool opts_of_parent(int opt, const char *arg, struct opts *o)
{
	struct parent *p;

	if (o->parents.n == 0)
		return opts_bad("--parent comes before what is said of it",
				NULL);
	p = o->parents.parent[o->parents.n - 1];
	switch (opt) {
	case OPT_PARENT_BYPASS:
		return opts_parent_bypass(p, arg);
	case OPT_PARENT_RESOLVE:
		return opts_either(arg, "parent", "here", &p->there);
	case OPT_PARENT_HTTP:
		return opts_either(arg, "absolute", "connect", &p->absolute);
	default:
		mem_free(p->login_file);
		p->login_file = mem_dup_str(str_from(arg));
		return p->login_file || opts_bad("out of memory", NULL);
	}
}

static bool opts_take(int opt, const char *arg, struct opts *o)
{
	unsigned long v = 0;

	switch (opt) {
	case OPT_CONFIG: o->config = arg; return true;
	case OPT_CHECK: o->check = true; return true;
	case OPT_UPGRADE: o->upgrade = true; return true;
	case OPT_PRIVATE: o->private = true; return true;
	case OPT_RESOLV: o->resolv_conf = arg; return true;
	case OPT_DNS: return opts_dns(arg, o);
	case OPT_TLS_CA: o->tls_ca = arg; return true;
	case OPT_SOURCE: return opts_source(arg, o);
	case OPT_MARK: return opts_mark(arg, o);
	case OPT_PARENT: return opts_parent(arg, o);
	case OPT_PARENT_LOGIN:
	case OPT_PARENT_BYPASS:
	case OPT_PARENT_RESOLVE:
	case OPT_PARENT_HTTP: return opts_of_parent(opt, arg, o);
	case OPT_LEVEL: return opts_level(arg, o);
	case OPT_PLUG_FD:
		if (!opts_number(arg, 3, INT_MAX, &v,
				 "--plug-fd wants a descriptor above 2, not"))
			return false;
		o->plug_fd = (int)v;
		return true;
	case OPT_UID:
		if (!opts_number(arg, 1, UINT32_MAX - 1, &v,
				 "--uid wants a user id other than 0, not"))
			return false;
		o->ids.uid = (uid_t)v;
		return true;
	case OPT_GID:
		if (!opts_number(arg, 1, UINT32_MAX - 1, &v,
				 "--gid wants a group id other than 0, not"))
			return false;
		o->ids.gid = (gid_t)v;
		return true;
	default:
		return false;
	}
}

static bool opts_check(struct opts *o)
{
	if (o->private == (o->config != NULL))
		return opts_bad("give either --config FILE or --private; --help says more",
				NULL);
	if (o->upgrade && (o->private || o->check))
		return opts_bad("--upgrade goes with --config FILE, and alone",
				NULL);
	if (o->private && o->plug_fd < 0)
		return opts_bad("--private needs --plug-fd N", NULL);
	if (!o->private && o->plug_fd >= 0)
		return opts_bad("--plug-fd goes with --private", NULL);
	if (!o->private && (o->ids.uid || o->ids.gid))
		return opts_bad("--uid and --gid go with --private; a service has 'user' in its configuration",
				NULL);
	if (!o->private && (o->dns.n || o->tls_ca))
		return opts_bad("--dns-server and --tls-ca go with --private; a service has [dns] in its configuration",
				NULL);
	if (!o->private && source_is_set(&o->source))
		return opts_bad("--source goes with --private; a service has 'source' in its configuration",
				NULL);
	if (!o->private && o->mark)
		return opts_bad("--mark goes with --private; a service has 'mark' in its configuration",
				NULL);
	if (!o->private && o->parents.n)
		return opts_bad("--parent goes with --private; a service has [parent NAME] in its configuration",
				NULL);
	for (size_t i = 0; i < o->parents.n; i++)
		if (parent_fault(o->parents.parent[i])) {
			fprintf(stderr, "penstockd: parent '%s' %s\n",
				o->parents.parent[i]->name,
				parent_fault(o->parents.parent[i]));
			return false;
		}
	if (o->dns.n && o->resolv_conf)
		return opts_bad("--dns-server and --resolv-conf both say who is asked: give one of them",
				NULL);
	if (o->tls_ca && !resolver_want_tls(&o->dns))
		return opts_bad("--tls-ca needs a --dns-server that begins with tls://",
				NULL);
	if ((o->ids.uid != 0) != (o->ids.gid != 0))
		return opts_bad("--uid and --gid go together", NULL);
	o->has_ids = o->ids.uid != 0;
	return true;
}

enum opts_result opts_parse(int argc, char *const *argv, struct opts *ret)
{
	struct opts o = { .plug_fd = -1 };
	int opt;

	while ((opt = getopt_long(argc, argv, "", opts_table, NULL)) != -1) {
		if (opt == OPT_HELP) {
			fputs(opts_usage, stdout);
			return OPTS_DONE;
		}
		if (opt == OPT_VERSION) {
			puts("penstockd " PACKAGE_VERSION);
			return OPTS_DONE;
		}
		if (!opts_take(opt, optarg, &o))
			return OPTS_BAD;
	}
	if (optind < argc) {
		opts_bad("what is this argument for:", argv[optind]);
		return OPTS_BAD;
	}
	if (!opts_check(&o))
		return OPTS_BAD;
	o.notify_socket = getenv("NOTIFY_SOCKET");
	*ret = o;
	return OPTS_RUN;
}
