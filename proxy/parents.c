/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parents.c - the proxies that flows may be sent through
 *
 * Their addresses are the operator's word, so that they may be private or of
 * this host; that opens them for nobody else, since a flow is judged by where it
 * goes and never by the way.
 *
 * Logins are read once, at the start, and kept as they are sent.  They stand in
 * no log, record or answer; this process leaves no core and cannot be traced.
 */
#include "proxy/parents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/ip_class.h"
#include "base/log.h"
#include "base/mem.h"
#include "resolver/name_map.h"

#define LOGIN_FILE_MAX	4096
#define SOCKS_PORT	1080

static int fault(const char **why, const char *words)
{
	*why = words;
	return -EINVAL;
}

/* --- making ----------------------------------------------------------------- */

static bool is_plain_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = ascii_lower(s.p[i]);

		if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c) &&
		    c != '.' && c != '_' && c != '-')
			return false;
	}
	return s.n > 0;
}

int parents_add(struct parents *ps, struct str name, struct parent **ret,
		const char **why)
{
	struct parent *p;

	if (!is_plain_word(name) || name.n > RULES_PARENT_MAX)
		return fault(why, "is no name of a parent: write up to 32 letters, digits, '.', '_' and '-'");
	if (str_eq(name, STR(RULES_PARENT_NONE)) || str_eq(name, STR("env")))
		return fault(why, "means something else where a parent is named: call it otherwise");
	if (parents_find(ps, name))
		return fault(why, "is there already: join the two, or call one otherwise");
	if (ps->n == PARENTS_MAX)
		return fault(why, "is one parent too many: there can be 32");
	p = mem_new(sizeof(*p));
	if (!p)
		return -ENOMEM;
	memcpy(p->name, name.p, name.n);
	ps->parent[ps->n++] = p;
	*ret = p;
	return 0;
}

/* Takes "SCHEME://" off the front. */
static int take_scheme(struct parent *p, struct str *url, const char **why)
{
	static const struct {
		struct str front;
		enum parent_kind kind;
		bool there;
	} schemes[] = {
		{ { "http://", 7 }, PARENT_HTTP, false },
		{ { "socks5://", 9 }, PARENT_SOCKS5, false },
		{ { "socks5h://", 10 }, PARENT_SOCKS5, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (!str_starts(*url, schemes[i].front))
			continue;
		p->kind = schemes[i].kind;
		p->there |= schemes[i].there;
		url->p += schemes[i].front.n;
		url->n -= schemes[i].front.n;
		return 0;
	}
	if (str_starts(*url, STR("https://")))
		return fault(why, "asks for TLS to the parent itself, which is not supported: write http:// with its plain port");
	return fault(why, "is no URL of a parent: write http://HOST:PORT or socks5://HOST:PORT");
}

/* No proxy is there, or it would be ourselves. */
static bool is_nowhere(const struct ip_addr *a)
{
	enum ip_class class = ip_classify(a);

	return class == IP_UNSPECIFIED || class == IP_MULTICAST ||
	       name_map_is_synthetic(a);
}

int parent_set_url(struct parent *p, struct str url, const char **why)
{
	enum host_kind kind;
	int err = take_scheme(p, &url, why);

	if (err < 0)
		return err;
	if (str_ends(url, STR("/")))
		url.n--;
	if (str_chr(url, '@') < url.n)
		return fault(why, "has a user in it: put user:password into a file, and name that in 'credentials'");
	kind = authority_parse(url, p->kind == PARENT_SOCKS5 ? SOCKS_PORT : 0,
			       &p->host, &p->addr, &p->port);
	if (kind == HOST_BAD)
		return fault(why, "has no host and port: write http://proxy.example.com:3128, with an IPv6 address in brackets");
	if (kind == HOST_NAME)
		p->addr.family = IP_NONE;
	else
		p->host.n = 0;
	if (kind == HOST_ADDRESS && is_nowhere(&p->addr))
		return fault(why, "has an address where no proxy can be");
	return 0;
}

int parent_add_bypass(struct parent *p, struct str word, const char **why)
{
	struct parent_bypass b = { .below = str_starts(word, STR("*.")) };
	struct str name = word;

	if (b.below) {
		name.p += 2;
		name.n -= 2;
	}
	if (!p->bypass)
		p->bypass = mem_new_array(PARENT_BYPASS_MAX,
					  sizeof(*p->bypass));
	if (!p->bypass)
		return -ENOMEM;
	if (p->n_bypass == PARENT_BYPASS_MAX)
		return fault(why, "is one too many: there can be 256, and wildcards and networks stand for many");
	if ((b.below || ip_net_parse(word, &b.net) < 0) &&
	    host_name_parse(name, &b.name) < 0)
		return fault(why, "is no name, *.NAME, address or network (without bits behind its mask)");
	p->bypass[p->n_bypass++] = b;
	return 0;
}

static void secret_done(struct str *s)
{
	char *p = (char *)(uintptr_t)s->p;

	if (p)
		explicit_bzero(p, s->n);
	mem_free(p);
	*s = STR_NONE;
}

static int secret_set(struct str *to, struct str value)
{
	char *copy = mem_dup_str(value);

	if (!copy)
		return -ENOMEM;
	secret_done(to);
	*to = str_make(copy, value.n);
	return 0;
}

/* RFC 7617 2: no control characters, and no colon in the user's name. */
static bool is_clean(struct str login)
{
	for (size_t i = 0; i < login.n; i++)
		if ((uint8_t)login.p[i] < 0x20 || login.p[i] == 0x7f)
			return false;
	return true;
}

int parent_set_login(struct parent *p, struct str login, const char **why)
{
	char room[2 * (2 * PARENT_LOGIN_MAX + 2)];
	struct buf basic = { room, 0, sizeof(room), sizeof(room), NULL };
	size_t colon = str_chr(login, ':');
	struct str password;
	int err;

	if (colon == 0 || colon == login.n || !is_clean(login))
		return fault(why, "has no line of the form user:password");
	password = str_make(login.p + colon + 1, login.n - colon - 1);
	if (colon > PARENT_LOGIN_MAX || password.n > PARENT_LOGIN_MAX)
		return fault(why, "has a user or a password of more than 255 bytes");
	err = parent_msg_basic(login, &basic);
	if (err == 0)
		err = secret_set(&p->user, str_make(login.p, colon));
	if (err == 0)
		err = secret_set(&p->password, password);
	if (err == 0)
		err = secret_set(&p->basic, buf_str(&basic));
	explicit_bzero(room, sizeof(room));
	return err;
}

static int say(char why[PARENTS_WHY_SIZE], const char *path, const char *words)
{
	(void)!snprintf(why, PARENTS_WHY_SIZE, "%s %s", path, words);
	return -EINVAL;
}

int parent_read_login(struct parent *p, const char *path,
		      char why[PARENTS_WHY_SIZE])
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC |
					 O_NONBLOCK | O_NOCTTY);
	char room[LOGIN_FILE_MAX + 1];
	struct buf text = { room, 0, sizeof(room), LOGIN_FILE_MAX, NULL };
	struct str rest, line = STR_NONE;
	const char *words = "cannot be read";
	struct stat st;
	int err;

	if (fd < 0 || fstat(fd, &st) < 0)
		return say(why, path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return say(why, path, "is no file");
	if (st.st_mode & (S_IROTH | S_IWOTH))
		return say(why, path, "can be read or written by everybody: chmod 600 it");
	err = fd_read_all(fd, &text);
	rest = buf_str(&text);
	if (err == 0)
		(void)!str_cut(&rest, '\n', &line);
	if (err == 0 && str_ends(line, STR("\r")))
		line.n--;
	if (err == 0)
		err = parent_set_login(p, line, &words);
	explicit_bzero(room, sizeof(room));
	return err == -ENOMEM ? err : err < 0 ? say(why, path, words) : 0;
}

int parents_read_logins(struct parents *ps)
{
	char why[PARENTS_WHY_SIZE] = "out of memory";
	int err = 0;

	for (size_t i = 0; i < ps->n && err == 0; i++) {
		struct parent *p = ps->parent[i];

		if (!p->login_file)
			continue;
		err = parent_read_login(p, p->login_file, why);
		if (err < 0)
			log_error("parent '%s': the credentials %s", p->name,
				  why);
	}
	return err;
}

const char *parent_fault(const struct parent *p)
{
	if (p->port == 0)
		return "has no 'url': write url = http://HOST:PORT";
	if (p->absolute && p->kind != PARENT_HTTP)
		return "has 'http = absolute', which only a parent of http:// can do: take it out";
	/* RFC 9112 3.2.2: the next hop takes the host from the target, and an
	 * address there would be the origin's Host. */
	if (p->absolute && !p->there)
		return "has 'http = absolute', by which the parent is sent names: add 'resolve = parent', or write 'http = connect'";
	return NULL;
}

void parents_done(struct parents *ps)
{
	for (size_t i = 0; i < ps->n; i++) {
		struct parent *p = ps->parent[i];

		secret_done(&p->user);
		secret_done(&p->password);
		secret_done(&p->basic);
		mem_free(p->login_file);
		mem_free(p->bypass);
		mem_free(p);
	}
	*ps = (struct parents){ .n = 0 };
}

/* --- asking ----------------------------------------------------------------- */

const struct parent *parents_find(const struct parents *ps, struct str name)
{
	for (size_t i = 0; i < ps->n; i++)
		if (str_eq(name, str_from(ps->parent[i]->name)))
			return ps->parent[i];
	return NULL;
}

static bool is_below(struct str host, struct str name)
{
	return host.n > name.n && str_ends(host, name) &&
	       host.p[host.n - name.n - 1] == '.';
}

static bool is_bypassed(const struct parent *p, struct str host,
			const struct ip_addr *addr)
{
	for (size_t i = 0; i < p->n_bypass; i++) {
		const struct parent_bypass *b = &p->bypass[i];
		struct str name = host_name_str(&b->name);

		if (name.n == 0 && addr && ip_net_has(&b->net, addr))
			return true;
		if (name.n && (b->below ? is_below(host, name) :
					  str_eq(host, name)))
			return true;
	}
	return false;
}

int parents_pick(const struct parents *ps, const char *word, struct str host,
		 const struct ip_addr *addr, const struct parent **ret)
{
	const struct parent *p = ps ? ps->by_default : NULL;
	bool named = word && strcmp(word, RULES_PARENT_NONE) != 0;

	if (word)
		p = named && ps ? parents_find(ps, str_from(word)) : NULL;
	if (named && !p)
		return -ENOENT;
	*ret = p && is_bypassed(p, host, addr) ? NULL : p;
	return 0;
}
