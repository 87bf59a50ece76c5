/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_opts.c - penstock run's table of options
 */
#include "cli/run_opts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/opts.h"
#include "proxy/ctl_proto.h"
#include "resolver/resolver.h"
#include "rules/rules.h"

enum {
	ID_ALLOW = 1, ID_PRESET, ID_PRESET_DIR, ID_POLICY, ID_POLICY_NAME,
	ID_OBSERVE, ID_WRITE_POLICY, ID_RECORDS, ID_JSON, ID_SUMMARY, ID_QUIET,
	ID_NO_PROXY_ENV, ID_SOCKS, ID_MAP_ROOT, ID_NAME, ID_PRIVATE, ID_PLUG, ID_DAEMON,
	ID_DNS_SERVER, ID_DNS_CA, ID_PARENT, ID_PARENT_LOGIN,
	ID_PARENT_BYPASS, ID_PARENT_RESOLVE, ID_PARENT_HTTP, ID_SOURCE,
	ID_MARK,
	ID_HELP,
};

static const struct opt opts[] = {
	{ ID_ALLOW, "allow", 0, OPT_NEEDED, "HOST[:PORT]",
	  "let HOST be reached: https and http, or PORT; may be repeated" },
	{ ID_POLICY, "policy", 0, OPT_NEEDED, "FILE",
	  "the policy, see penstock.ini(5)" },
	{ ID_PRESET, "preset", 0, OPT_NEEDED, "NAME",
	  "what NAME needs: pypi, npm, debian, ...; may be repeated" },
	{ ID_OBSERVE, "observe", 0, OPT_NONE, NULL,
	  "let every name through and record what would be refused" },
	{ ID_WRITE_POLICY, "write-policy", 0, OPT_NEEDED, "FILE",
	  "write the policy that would have allowed what was refused" },
	{ ID_SUMMARY, "summary", 0, OPT_NONE, NULL,
	  "the summary on stderr even if it is no terminal" },
	{ ID_JSON, "json", 0, OPT_MAYBE, "FILE",
	  "the summary as one JSON object, on stderr or in FILE" },
	{ ID_QUIET, "quiet", 'q', OPT_NONE, NULL,
	  "neither summary nor notes" },
	{ ID_RECORDS, "records", 0, OPT_NEEDED, "FILE",
	  "append the records to FILE instead of the state directory" },
	{ ID_NO_PROXY_ENV, "no-proxy-env", 0, OPT_NONE, NULL,
	  "do not set http_proxy and its kin inside" },
	{ ID_SOCKS, "socks", 0, OPT_NONE, NULL,
	  "set ALL_PROXY inside, too, for programs that need it" },
	{ ID_MAP_ROOT, "map-root", 0, OPT_NONE, NULL,
	  "appear as root inside, for programs that insist on it" },
	{ ID_NAME, "name", 0, OPT_NEEDED, "LABEL",
	  "host name inside, and the run's label in records" },
	{ ID_DNS_SERVER, "dns-server", 0, OPT_NEEDED, "ADDRESS",
	  "ask this resolver, not resolv.conf's; tls://... by TLS; may be repeated" },
	{ ID_DNS_CA, "dns-ca", 0, OPT_NEEDED, "FILE",
	  "who may vouch for tls:// resolvers, instead of the system's" },
	{ ID_SOURCE, "source", 0, OPT_NEEDED, "ADDRESS",
	  "of this machine, that flows leave from; or one of each family" },
	{ ID_MARK, "mark", 0, OPT_NEEDED, "N",
	  "that sockets of flows bear (SO_MARK); as root" },
	{ ID_PARENT, "parent", 0, OPT_NEEDED, "[NAME=]URL",
	  "a proxy that flows go through, http://... or socks5://...; env: "
	  "your own" },
	{ ID_PARENT_LOGIN, "parent-credentials", 0, OPT_NEEDED, "FILE",
	  "with user:password for it, readable by nobody else" },
	{ ID_PARENT_BYPASS, "parent-bypass", 0, OPT_NEEDED, "WORDS",
	  "names, *.NAMEs and networks that it is not asked for" },
	{ ID_PARENT_RESOLVE, "parent-resolve", 0, OPT_NEEDED, "here|parent",
	  "who looks names up [here]" },
	{ ID_PARENT_HTTP, "parent-http", 0, OPT_NEEDED, "connect|absolute",
	  "how plain HTTP is sent to it [connect]" },
	{ ID_PRIVATE, "private", 0, OPT_NONE, NULL,
	  "a penstockd of this run's own, even if a service is there" },
	{ ID_PLUG, "plug", 0, OPT_NEEDED, "PATH",
	  "the service's socket [/run/penstock/plug.sock]" },
	{ ID_POLICY_NAME, "policy-name", 0, OPT_NEEDED, "NAME",
	  "a policy that the service has, by its name" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
	{ ID_DAEMON, "daemon", 0, OPT_NEEDED, "PATH", NULL },
	{ ID_PRESET_DIR, "preset-dir", 0, OPT_NEEDED, "DIR", NULL },
};

/* Letters, digits and "-._", as a host name and the plug want it. */
static const char *check_label(const char *value, size_t cap)
{
	size_t n = strlen(value);

	if (n == 0 || n >= cap)
		return "between 1 and 63 characters are wanted";
	for (size_t i = 0; i < n; i++) {
		char c = ascii_lower(value[i]);
		bool word = (c >= 'a' && c <= 'z') || ascii_is_digit(c);

		if (!word && (i == 0 || !strchr("-._", c)))
			return "letters, digits, '-', '.' and '_' are wanted";
	}
	return NULL;
}

static const char *set_allow(struct run_opts *o, const char *value)
{
	const char *why = NULL;
	int e;

	if (o->nallow == RUN_ALLOW_MAX)
		return "too many: write a policy file";
	e = rules_allow_text(str_from(value), ++o->nallow, &o->allow, &why);
	if (!e)
		return NULL;
	return why ? why : strerror(-e);
}

static const char *set_preset(struct run_opts *o, const char *value)
{
	if (o->npresets == RUN_PRESETS_MAX)
		return "too many: write a policy file";
	o->preset[o->npresets++] = value;
	return NULL;
}

static const char *set_dns(struct run_opts *o, const char *value)
{
	struct resolver_server server;
	const char *why;
	size_t n = 0;

	while (o->dns[n])
		n++;
	if (n == RUN_DNS_MAX)
		return "too many";
	if (!*value)
		return "is empty";
	/* penstockd says the same, but when half of the run is there. */
	if (resolver_parse_server(str_from(value), &server, &why) < 0)
		return why;
	o->dns[n] = value;
	return NULL;
}

static const char *set_flag(struct run_opts *o, int id)
{
	switch (id) {
	case ID_OBSERVE:
		o->observe = true;
		break;
	case ID_SUMMARY:
		o->summary = true;
		break;
	case ID_QUIET:
		o->quiet = true;
		break;
	case ID_NO_PROXY_ENV:
		o->no_proxy_env = true;
		break;
	case ID_SOCKS:
		o->socks = true;
		break;
	case ID_MAP_ROOT:
		o->map_root = true;
		break;
	case ID_PRIVATE:
		o->private = true;
		break;
	default:
		o->help = true;
		break;
	}
	return NULL;
}

static const char *set_once(const char **to, const char *value)
{
	if (*to)
		return "given twice";
	if (!*value)
		return "is empty";
	*to = value;
	return NULL;
}

/* What is written is a file: the streams are the command's. */
static const char *set_output(const char **to, const char *value)
{
	if (strcmp(value, "-") == 0)
		return "standard output is the command's: name a file";
	return set_once(to, value);
}

static const char *set(void *arg, int id, const char *value)
{
	struct run_opts *o = arg;
	const char *wrong;

	switch (id) {
	case ID_ALLOW:
		return set_allow(o, value);
	case ID_PRESET:
		return set_preset(o, value);
	case ID_PRESET_DIR:
		return set_once(&o->preset_dir, value);
	case ID_POLICY:
		return set_once(&o->policy, value);
	case ID_POLICY_NAME:
		wrong = check_label(value, PLUG_NAME_MAX);
		return wrong ? wrong : set_once(&o->policy_name, value);
	case ID_WRITE_POLICY:
		return set_output(&o->write_policy, value);
	case ID_RECORDS:
		return set_output(&o->records, value);
	case ID_JSON:
		o->json = true;
		return value ? set_output(&o->json_file, value) : NULL;
	case ID_NAME:
		wrong = check_label(value, PLUG_LABEL_MAX);
		return wrong ? wrong : set_once(&o->name, value);
	case ID_PLUG:
		return set_once(&o->plug, value);
	case ID_DNS_SERVER:
		return set_dns(o, value);
	case ID_DNS_CA:
		return set_once(&o->dns_ca, value);
	case ID_SOURCE:
		return run_parent_add_word(&o->parent, "--source", value);
	case ID_MARK:
		return run_parent_add_word(&o->parent, "--mark", value);
	case ID_PARENT:
		return run_parent_add(&o->parent, "--parent", value);
	case ID_PARENT_LOGIN:
		return run_parent_add(&o->parent, "--parent-credentials",
				      value);
	case ID_PARENT_BYPASS:
		return run_parent_add(&o->parent, "--parent-bypass", value);
	case ID_PARENT_RESOLVE:
		return run_parent_add(&o->parent, "--parent-resolve", value);
	case ID_PARENT_HTTP:
		return run_parent_add(&o->parent, "--parent-http", value);
	case ID_DAEMON:
		return set_once(&o->daemon, value);
	default:
		return set_flag(o, id);
	}
}

static const struct opts_table table = {
	"penstock run", opts, ARRAY_SIZE(opts), set
};

static const char *contradiction(const struct run_opts *o)
{
	if (o->private && o->plug)
		return "--private and --plug exclude each other";
	if (o->policy_name && (o->policy || o->nallow || o->npresets))
		return "--policy-name is the service's policy: without "
		       "--policy and --allow";
	if (o->dns[0] && o->plug)
		return "--dns-server is for a penstockd of the run's own, "
		       "not for --plug: a service has resolvers of its own";
	if ((o->parent.n || o->parent.env) && o->plug)
		return "--parent, --source and --mark are for a penstockd of "
		       "the run's own, not for --plug: a service has its own";
	if (o->dns_ca && !o->dns[0])
		return "--dns-ca needs a --dns-server that begins with tls://";
	if (o->policy_name && o->private)
		return "--policy-name needs a service, not --private";
	return NULL;
}

int run_opts_parse(int argc, char **argv, struct run_opts *ret, int *ret_first)
{
	const char *wrong;

	if (opts_parse(&table, argc, argv, ret, ret_first))
		return -EINVAL;
	if (ret->help)
		return 0;
	wrong = contradiction(ret);
	if (!wrong && *ret_first >= argc)
		wrong = "which command? (penstock run [OPTION]... -- COMMAND "
			"[ARGUMENT]...)";
	if (!wrong && !argv[*ret_first][0])
		wrong = "the command is an empty word; is a variable not set?";
	if (wrong)
		say_of(table.command, "%s", wrong);
	return wrong ? -EINVAL : 0;
}

void run_opts_done(struct run_opts *o)
{
	buf_done(&o->allow);
	run_parent_done(&o->parent);
}

void run_opts_usage(void)
{
	puts("Run a command that reaches what you allow, and nothing else:\n\n"
	     "  penstock run --allow pypi.org --allow files.pythonhosted.org "
	     "-- \\\n      pip install requests\n"
	     "  penstock run --policy coding-agent.ini -- ./agent\n"
	     "  penstock run -- bash                     (no network at all)\n"
	     "  penstock run --observe --write-policy new.ini -- make\n\n"
	     "The command may write to the working directory and to a fresh "
	     "home and /tmp;\nthe rest of the machine is read-only or hidden.  "
	     "Its exit status is ours:\n125 means that it was not started, 126 "
	     "that it is not executable, 127 that it\nis not there.\n\n"
	     "Usage: penstock run [OPTION]... [--] COMMAND [ARGUMENT]...\n");
	opts_usage(&table);
}
