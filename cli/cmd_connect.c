/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_connect.c - penstock connect: one connection through the proxy, on
 *                 standard input and output
 */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/caller.h"
#include "cli/cmd.h"
#include "cli/opts.h"
#include "cli/proxy_hop.h"
#include "cli/proxy_url.h"
#include "cli/stdio_pump.h"
#include "proxy/ctl_proto.h"
#include "rules/rules_target.h"

#define COMMAND	"penstock connect"

struct connect {
	const char *proxy;
	bool help;
};

enum { ID_PROXY = 1, ID_HELP };

static const struct opt options[] = {
	{ ID_PROXY, "proxy", 0, OPT_NEEDED, "URL",
	  "by this proxy: http://[USER:PASSWORD@]HOST:PORT, or socks5h://" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

static const char *set(void *arg, int id, const char *value)
{
	struct connect *c = arg;

	if (id == ID_HELP)
		c->help = true;
	else if (c->proxy)
		return "given twice";
	else
		c->proxy = value;
	return NULL;
}

static const struct opts_table table = {
	COMMAND, options, ARRAY_SIZE(options), set
};

static void usage(void)
{
	puts("Connect standard input and output with a port of a host, through "
	     "the proxy:\n\n"
	     "  penstock connect git.example.com 22\n"
	     "  ssh -o ProxyCommand='penstock connect %h %p' git@git.example.com\n"
	     "  penstock connect --proxy socks5h://127.0.0.1:1080 db.example.com "
	     "5432\n\n"
	     "The proxy is that of https_proxy, http_proxy or all_proxy, in "
	     "either spelling;\ninside a sandbox without them, the sandbox's "
	     "own.  NO_PROXY is not looked at.\n\n"
	     "Exit status: 0 when both ends have closed; 1 when the proxy "
	     "refuses; 2 for wrong\nusage; 125 when there is no proxy, the "
	     "host cannot be reached, or the\nconnection broke.\n\n"
	     "Usage: penstock connect [OPTION]... HOST PORT\n");
	opts_usage(&table);
}

/* --- which proxy ---------------------------------------------------------------- */

static const char *from_environment(const char **ret_name)
{
	static const char *const names[] = {
		"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY",
		"all_proxy", "ALL_PROXY",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = caller_env(names[i]);

		*ret_name = names[i];
		if (value)
			return value;
	}
	return NULL;
}

/* The URL may hold a password, so it is not shown. */
static int find_proxy(const struct connect *c, struct proxy_url *ret)
{
	static const char own[] = "http://" PLUG_HTTP_ADDR ":3128";
	const char *name = "--proxy", *text = c->proxy, *why;

	_Static_assert(PLUG_HTTP_PORT == 3128, "the port in own[]");
	if (!text)
		text = from_environment(&name);
	if (!text && caller_env("PENSTOCK_SANDBOX"))
		text = own;
	if (!text) {
		say_of(COMMAND, "through which proxy? Set https_proxy, or give "
		       "--proxy http://HOST:PORT");
		return -EINVAL;
	}
	if (proxy_url_parse(str_from(text), ret, &why)) {
		say_of(COMMAND, "%s is no proxy's URL: %s", name, why);
		return -EINVAL;
	}
	return 0;
}

/* --- whereto --------------------------------------------------------------------- */

static int find_port(const char *text, uint16_t *ret)
{
	const struct servent *known;
	unsigned long n;

	if (str_to_uint(str_from(text), 65535, &n) == 0 && n > 0) {
		*ret = (uint16_t)n;
		return 0;
	}
	known = *text && !ascii_is_digit(*text) ? getservbyname(text, "tcp") :
						  NULL;
	if (known) {
		*ret = ntohs((uint16_t)known->s_port);
		return 0;
	}
	say_of(COMMAND, "'%s' is no port: a number from 1 to 65535 is wanted, "
	       "or a service of /etc/services", text);
	return -EINVAL;
}

static int find_host(const char *text, struct rules_target *ret)
{
	const char *why;

	if (strpbrk(text, "/@")) {
		say_of(COMMAND, "'%s' is no host: give its name or address, "
		       "and the port behind it", text);
		return -EINVAL;
	}
	if (rules_target_parse(str_from(text), ret, &why)) {
		say_of(COMMAND, "'%s' is no host: %s", text, why);
		return -EINVAL;
	}
	if (ret->port_given) {
		say_of(COMMAND, "'%s' has a port in it: write the port as a "
		       "word of its own", text);
		return -EINVAL;
	}
	return 0;
}

static int find_target(int argc, char **argv, struct rules_target *ret)
{
	if (argc != 2) {
		say_of(COMMAND, argc < 2 ? "whereto? (penstock connect HOST "
		       "PORT)" : "HOST and PORT are wanted, and no more");
		return -EINVAL;
	}
	if (find_host(argv[0], ret))
		return -EINVAL;
	return find_port(argv[1], &ret->port);
}

/* --- the connection --------------------------------------------------------------- */

static int tell(const struct rules_target *to, const struct hop_why *why)
{
	const struct proxy_url at = { .name = to->host, .addr = to->addr,
				      .port = to->port };
	char where[PROXY_URL_TEXT_SIZE];

	proxy_url_text(&at, where);
	say_of(COMMAND, "%s %s: %s", where, why->fault == HOP_REFUSED ?
	       "refused" : "failed", why->word);
	if (why->sentence[0])
		say_more("%s", why->sentence);
	if (why->mend[0])
		say_more("%s", why->mend);
	return why->fault == HOP_REFUSED ? EXIT_NEGATIVE : EXIT_OWN;
}

static int carry(const struct proxy_url *proxy, const struct rules_target *to)
{
	struct buf early = BUF_INIT(PUMP_CHUNK);
	struct hop_why why;
	int fd = -1, code = 0, e;

	e = hop_open(proxy, to, &fd, &early, &why);
	if (e) {
		code = tell(to, &why);
	} else {
		e = stdio_pump(STDIN_FILENO, STDOUT_FILENO, fd, &early);
		code = e ? EXIT_OWN : 0;
		/* A reader that has left knows it. */
		if (e && e != -EPIPE)
			say_of(COMMAND, "the connection broke: %s",
			       strerror(-e));
	}
	fd_closep(&fd);
	buf_done(&early);
	return code;
}

int cmd_connect(int argc, char **argv)
{
	struct connect c = { .proxy = NULL };
	struct rules_target to;
	struct proxy_url proxy;
	int first;

	if (opts_parse_all(&table, argc, argv, &c, &first))
		return EXIT_USAGE;
	if (c.help) {
		usage();
		return 0;
	}
	if (find_target(argc - first, argv + first, &to) ||
	    find_proxy(&c, &proxy))
		return EXIT_USAGE;
	signal(SIGPIPE, SIG_IGN);	/* a write then says EPIPE */
	return carry(&proxy, &to);
}
