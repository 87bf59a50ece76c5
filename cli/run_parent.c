/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_parent.c - the proxy that a run's own daemon sends flows through
 *
 * A password out of the environment goes to the daemon in a file without a name,
 * since whoever may list processes reads their command lines.
 */
#include "cli/run_parent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ip_addr.h"
#include "cli/caller.h"
#include "cli/opts.h"
#include "netns-setup/launch.h"
#include "rules/host_name.h"

#define LOGIN_MAX	1024

static const char no_memory[] = "out of memory";

const char *run_parent_add_word(struct run_parent *p, const char *option,
				const char *value)
{
	if (!*value)
		return "is empty";
	if (p->n + 2 > RUN_PARENT_WORDS - 8)
		return "too many";
	p->word[p->n++] = option;
	p->word[p->n++] = value;
	return NULL;
}

const char *run_parent_add(struct run_parent *p, const char *option,
			   const char *value)
{
	if (strcmp(option, "--parent") == 0 && strcmp(value, "env") == 0) {
		if (p->named || p->env)
			return "'env' stands alone: it is the caller's one proxy";
		p->env = true;
		return NULL;
	}
	if (strcmp(option, "--parent") == 0)
		p->named = true;
	else if (!p->named && !p->env)
		return "comes behind the --parent that it speaks of";
	return run_parent_add_word(p, option, value);
}

/* --- HTTPS_PROXY ------------------------------------------------------------ */

static int hex(char c)
{
	c = ascii_lower(c);
	return ascii_is_digit(c) ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decoded; a "%" that is none stands for itself, as with curl. */
static int add_decoded(struct str s, struct buf *out)
{
	int err = 0;

	for (size_t i = 0; i < s.n && err == 0; i++) {
		bool code = s.p[i] == '%' && i + 2 < s.n &&
			    hex(s.p[i + 1]) >= 0 && hex(s.p[i + 2]) >= 0;

		err = buf_add_char(out, code ?
				   (char)(hex(s.p[i + 1]) << 4 |
					  hex(s.p[i + 2])) : s.p[i]);
		i += code ? 2 : 0;
	}
	return err;
}

static int add_login(struct str user, struct buf *login)
{
	struct str rest = user, name;
	int err;

	(void)!str_cut(&rest, ':', &name);
	err = add_decoded(name, login);
	if (err == 0)
		err = buf_add_char(login, ':');
	return err ? err : add_decoded(rest, login);
}

/* Where the last @c stands, or s.n. */
static size_t last_of(struct str s, char c)
{
	for (size_t i = s.n; i > 0; i--)
		if (s.p[i - 1] == c)
			return i - 1;
	return s.n;
}

static bool has_port(struct str host)
{
	size_t colon = last_of(host, ':');

	return colon < host.n &&
	       (host.p[0] != '[' || last_of(host, ']') < colon);
}

const char *run_parent_url(struct str text, struct buf *url,
			   struct buf *login)
{
	size_t at = str_find(text, STR("://")), user;
	struct str scheme = STR("http"), host = text;
	bool socks;
	int err = 0;

	if (at < text.n) {
		scheme = str_make(text.p, at);
		host = str_make(text.p + at + 3, text.n - at - 3);
	}
	socks = str_starts(scheme, STR("socks"));
	user = last_of(host, '@');
	if (user < host.n) {
		err = add_login(str_make(host.p, user), login);
		host = str_make(host.p + user + 1, host.n - user - 1);
	}
	host.n = str_chr(host, '/');
	if (host.n == 0)
		return "has no host";
	if (err == 0)
		err = buf_printf(url, "%.*s://%.*s%s", STR_ARG(scheme),
				 STR_ARG(host), has_port(host) ? "" :
				 socks ? ":1080" : ":80");
	return err ? no_memory : NULL;
}

/* --- NO_PROXY --------------------------------------------------------------- */

/* Clients agree on this much: a name stands for itself and for what is below. */
static bool add_word(struct str word, struct buf *out)
{
	struct host_name name;
	struct ip_net net;
	int err;

	if (ip_net_parse(word, &net) == 0) {
		err = buf_printf(out, "%.*s ", STR_ARG(word));
		return err == 0;
	}
	if (str_starts(word, STR("*.")))
		word = str_make(word.p + 2, word.n - 2);
	else if (str_starts(word, STR(".")))
		word = str_make(word.p + 1, word.n - 1);
	if (word.n && word.p[0] == '[' && str_ends(word, STR("]")))
		return add_word(str_make(word.p + 1, word.n - 2), out);
	word.n = str_chr(word, ':');
	if (host_name_parse(word, &name) < 0)
		return false;
	err = buf_printf(out, "%s *.%s ", name.p, name.p);
	return err == 0;
}

size_t run_parent_bypass(struct str text, struct buf *out, bool *ret_all)
{
	struct str part, word;
	size_t left_out = 0;

	*ret_all = false;
	while (str_cut(&text, ',', &part)) {
		while (str_word(&part, &word)) {
			if (str_eq(word, STR("*")))
				*ret_all = true;
			else if (!add_word(word, out))
				left_out++;
		}
	}
	return left_out;
}

/* --- both ------------------------------------------------------------------- */

static const char *first_of(const char *const *names, const char **ret_name)
{
	for (; *names; names++) {
		const char *value = caller_env(*names);

		if (value) {
			*ret_name = *names;
			return value;
		}
	}
	return NULL;
}

/* In a place where no descriptor that is put somewhere else can hit it. */
static int keep_login(struct run_parent *p, struct str login)
{
	CLEANUP(fd_closep) int fd = -1;
	int err = fd_memfd("login", login, &fd);

	if (err == 0 && fchmod(fd, 0600) < 0)
		err = -errno;
	if (err < 0)
		return err;
	p->login = fcntl(fd, F_DUPFD_CLOEXEC, LAUNCH_LOGIN_FD + 1);
	return p->login < 0 ? -errno : 0;
}

static void put(struct run_parent *p, size_t *at, const char *option,
		const char *value)
{
	p->word[(*at)++] = option;
	p->word[(*at)++] = value;
}

/* The words of "env" stand in front of those that speak of it. */
static int put_env(struct run_parent *p)
{
	const char *said[RUN_PARENT_WORDS];
	const char *url = buf_cstr(&p->url), *bypass = buf_cstr(&p->bypass);
	size_t n = p->n, at = 0;

	if (!url || !bypass)
		return -ENOMEM;
	memcpy(said, p->word, sizeof(said));
	put(p, &at, "--parent", url);
	if (p->login >= 0)
		put(p, &at, "--parent-credentials",
		    "/proc/self/fd/" LAUNCH_LOGIN_FD_TEXT);
	if (p->bypass.n)
		put(p, &at, "--parent-bypass", bypass);
	memcpy(p->word + at, said, n * sizeof(said[0]));
	p->n = at + n;
	p->word[p->n] = NULL;
	return 0;
}

static int take_env(struct run_parent *p, const char *name, const char *value)
{
	char room[LOGIN_MAX + 1];
	struct buf login = { room, 0, sizeof(room), LOGIN_MAX, NULL };
	const char *wrong = run_parent_url(str_from(value), &p->url, &login);
	int err = 0;

	if (wrong) {
		say("--parent env: %s %s", name, wrong);
		err = -EINVAL;
	} else if (login.n) {
		err = keep_login(p, buf_str(&login));
	}
	explicit_bzero(room, sizeof(room));
	return err;
}

int run_parent_find(struct run_parent *p)
{
	static const char *const proxies[] = {
		"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
		"http_proxy", "HTTP_PROXY", NULL
	};
	static const char *const excepts[] = { "no_proxy", "NO_PROXY", NULL };
	const char *name = "", *value, *except;
	size_t left_out;
	bool all;
	int err;

	if (!p->env)
		return 0;
	value = first_of(proxies, &name);
	if (!value) {
		say("--parent env: there is no https_proxy in the environment; "
		    "name the proxy: --parent http://HOST:PORT");
		return -ENOENT;
	}
	err = take_env(p, name, value);
	if (err < 0)
		return err;
	except = first_of(excepts, &name);
	left_out = run_parent_bypass(str_from(except), &p->bypass, &all);
	if (all) {
		say("--parent env: %s is '*', so that nothing would go through "
		    "the proxy; leave --parent out", name);
		return -EINVAL;
	}
	if (left_out)
		say("note: %zu words of %s are no names, addresses or networks; "
		    "what they may mean goes through the proxy", left_out,
		    name);
	return put_env(p);
}

void run_parent_done(struct run_parent *p)
{
	fd_closep(&p->login);
	buf_done(&p->url);
	buf_done(&p->bypass);
}
