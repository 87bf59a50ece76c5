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

#include "base/str.h"
#include "proxy/opts.h"

static const char opts_usage[] =
	"Usage: penstockd --config FILE [--check]\n"
	"       penstockd --private --plug-fd N [--uid N --gid N]\n"
	"\n"
	"The gate that sandboxes are plugged into.\n"
	"\n"
	"  --config FILE       serve many sandboxes, as FILE says\n"
	"  --check             only say whether FILE is right\n"
	"  --private           serve the one sandbox whose launcher started us\n"
	"  --plug-fd N         descriptor of the connection to that launcher\n"
	"  --uid N, --gid N    ids to change to when started as root\n"
	"  --resolv-conf FILE  where the upstream resolvers stand [/etc/resolv.conf]\n"
	"  --dns-server ADDRESS   one of them instead; may be repeated\n"
	"  --tls-ca FILE       who may vouch for those that begin with tls://\n"
	"  --log-level WORD    error, warn, info or debug\n"
	"  --help, --version\n";

enum {
	OPT_CONFIG = 256, OPT_CHECK, OPT_PRIVATE, OPT_PLUG_FD, OPT_UID,
	OPT_GID, OPT_RESOLV, OPT_DNS, OPT_TLS_CA, OPT_LEVEL, OPT_HELP, OPT_VERSION,
};

static const struct option opts_table[] = {
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "private", no_argument, NULL, OPT_PRIVATE },
	{ "plug-fd", required_argument, NULL, OPT_PLUG_FD },
	{ "uid", required_argument, NULL, OPT_UID },
	{ "gid", required_argument, NULL, OPT_GID },
	{ "resolv-conf", required_argument, NULL, OPT_RESOLV },
	{ "dns-server", required_argument, NULL, OPT_DNS },
	{ "tls-ca", required_argument, NULL, OPT_TLS_CA },
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

static bool opts_take(int opt, const char *arg, struct opts *o)
{
	unsigned long v = 0;

	switch (opt) {
	case OPT_CONFIG: o->config = arg; return true;
	case OPT_CHECK: o->check = true; return true;
	case OPT_PRIVATE: o->private = true; return true;
	case OPT_RESOLV: o->resolv_conf = arg; return true;
	case OPT_DNS: return opts_dns(arg, o);
	case OPT_TLS_CA: o->tls_ca = arg; return true;
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
