/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - the service's configuration: `penstockd --config FILE`
 *
 * A table of keys, each with the function that takes its value.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/ini.h"
#include "base/mem.h"
#include "proxy/config_own.h"
#include "proxy/marker.h"

#define CONFIG_PLUG_DEFAULT	"/run/penstock/plug.sock"
#define CONFIG_RESOLV_DEFAULT	"/etc/resolv.conf"
#define CONFIG_DRAIN_DEFAULT_S	10
#define CONFIG_UPGRADE_DRAIN_DEFAULT_S	86400
#define CONFIG_MESSAGE_MAX	512

struct config_key {
	const char *section, *name;
	void (*take)(struct config_reader *r, const struct config_key *k,
		     struct str value);
	size_t offset;			/* into struct config */
	unsigned long min, max;		/* of numbers */
};

static void config_tell(struct config_reader *r,
			const struct config_place *place, const char *fmt,
			va_list ap) PRINTF(3, 0);

static void config_tell(struct config_reader *r,
			const struct config_place *place, const char *fmt,
			va_list ap)
{
	char text[CONFIG_MESSAGE_MAX] = "";

	/* What does not fit is cut: the line and the key come first. */
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	r->err = r->err ? r->err : -EINVAL;
	r->fn(r->arg, place, text);
}

void config_error(struct config_reader *r, unsigned line, const char *fmt, ...)
{
	const struct config_place place = { line, 0 };
	va_list ap;

	va_start(ap, fmt);
	config_tell(r, &place, fmt, ap);
	va_end(ap);
}

void config_error_at(struct config_reader *r, const struct config_place *place,
		     const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	config_tell(r, place, fmt, ap);
	va_end(ap);
}

struct config_place config_place_of(const struct config_reader *r,
				    struct str word)
{
	const char *p = word.p;

	while (p > r->text.p && p[-1] != '\n')
		p--;
	return (struct config_place){ r->line, (unsigned)(word.p - p) + 1 };
}

static void *config_field(struct config_reader *r, const struct config_key *k)
{
	return (char *)r->config + k->offset;
}

/* --- values ------------------------------------------------------------------ */

static void config_take_path(struct config_reader *r,
			     const struct config_key *k, struct str value)
{
	char **path = config_field(r, k);

	if (value.n == 0 || value.p[0] != '/') {
		config_error(r, r->line, "'%s' wants an absolute path, not '%.*s'",
			     k->name, STR_ARG(value));
		return;
	}
	mem_free(*path);
	*path = mem_dup_str(value);
	if (!*path)
		r->err = -ENOMEM;
}

static void config_take_number(struct config_reader *r,
			       const struct config_key *k, struct str value)
{
	unsigned *to = config_field(r, k);
	unsigned long v;

	if (str_to_uint(value, k->max, &v) < 0 || v < k->min) {
		config_error(r, r->line, "'%s' wants a number from %lu to %lu, not '%.*s'",
			     k->name, k->min, k->max, STR_ARG(value));
		return;
	}
	*to = (unsigned)v;
}

/* "64M", "4G": of a size that is worth a limit. */
static void config_take_bytes(struct config_reader *r,
			      const struct config_key *k, struct str value)
{
	size_t *to = config_field(r, k);
	char last = value.n ? value.p[value.n - 1] : '\0';
	unsigned shift = last == 'G' ? 30 : last == 'M' ? 20 : 0;
	unsigned long v;

	if (!shift || str_to_uint(str_make(value.p, value.n - 1), k->max,
				  &v) < 0 || v << shift < k->min) {
		config_error(r, r->line, "'%s' wants bytes as 512M or 4G, and at least %luM, not '%.*s'",
			     k->name, k->min >> 20, STR_ARG(value));
		return;
	}
	*to = (size_t)v << shift;
}

static void config_take_level(struct config_reader *r,
			      const struct config_key *k, struct str value)
{
	static const char *const words[] = {
		[LOG_ERROR] = "error", [LOG_WARN] = "warn",
		[LOG_INFO] = "info", [LOG_DEBUG] = "debug",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(value, str_from(words[i]))) {
			r->config->log_level = (enum log_level)i;
			return;
		}
	config_error(r, r->line, "'%s' wants error, warn, info or debug, not '%.*s'",
		     k->name, STR_ARG(value));
}

static void config_take_source(struct config_reader *r,
			       const struct config_key *k, struct str value)
{
	const char *why;

	if (source_parse(value, config_field(r, k), &why) < 0)
		config_error(r, r->line, "'%s' is given '%.*s', which %s",
			     k->name, STR_ARG(value), why);
}

static void config_take_mark(struct config_reader *r,
			     const struct config_key *k, struct str value)
{
	const char *why;

	if (marker_parse(value, config_field(r, k), &why) < 0)
		config_error(r, r->line, "'%s' is given '%.*s', which %s",
			     k->name, STR_ARG(value), why);
}

static void config_take_user(struct config_reader *r,
			     const struct config_key *k, struct str value)
{
	char name[64] = "";
	const struct passwd *pw;

	if (value.n && value.n < sizeof(name))
		memcpy(name, value.p, value.n);
	pw = name[0] ? getpwnam(name) : NULL;
	if (!pw)
		config_error(r, r->line, "'%s' names '%.*s', and there is no such user: make it (systemd-sysusers) or name another",
			     k->name, STR_ARG(value));
	else if (pw->pw_uid == 0 || pw->pw_gid == 0)
		config_error(r, r->line, "'%s' must not be root: the daemon needs no privilege",
			     k->name);
	if (!pw)
		return;
	r->config->has_user = true;
	r->config->uid = pw->pw_uid;
	r->config->gid = pw->pw_gid;
}

static bool config_name_to_id(struct str word, bool group, uint32_t *ret)
{
	char name[64] = "";
	const struct passwd *pw;
	const struct group *gr;

	if (word.n == 0 || word.n >= sizeof(name))
		return false;
	memcpy(name, word.p, word.n);
	if (group) {
		gr = getgrnam(name);
		*ret = gr ? gr->gr_gid : 0;
		return gr;
	}
	pw = getpwnam(name);
	*ret = pw ? pw->pw_uid : 0;
	return pw;
}

/* "1000", "1000-1999" or a name. */
static bool config_parse_range(struct str word, bool group,
			       struct config_range *ret)
{
	unsigned long first, last;
	struct str rest = word, part;

	if (!ascii_is_digit(word.p[0])) {
		if (!config_name_to_id(word, group, &ret->first))
			return false;
		ret->last = ret->first;
		return true;
	}
	str_cut(&rest, '-', &part);
	if (str_to_uint(part, UINT32_MAX - 1, &first) < 0)
		return false;
	last = first;
	if (part.n < word.n && str_to_uint(rest, UINT32_MAX - 1, &last) < 0)
		return false;
	ret->first = (uint32_t)first;
	ret->last = (uint32_t)last;
	return first <= last;
}

static void config_take_ranges(struct config_reader *r,
			       const struct config_key *k, struct str value,
			       bool group)
{
	struct config_who *who = config_field(r, k);
	struct config_range *range = group ? who->gid : who->uid;
	size_t *n = group ? &who->ngids : &who->nuids;
	struct str word;

	if (str_empty(value))
		config_error(r, r->line, "'%s' is empty: name who is meant, or leave the line out",
			     k->name);
	while (str_word(&value, &word)) {
		if (*n == CONFIG_RANGES_MAX) {
			config_error(r, r->line, "'%s' has more than %d entries: use ranges",
				     k->name, CONFIG_RANGES_MAX);
			return;
		}
		if (!config_parse_range(word, group, &range[*n])) {
			config_error(r, r->line, "'%s' is given '%.*s', which is no id, range of ids (1000-1999) or name of a %s",
				     k->name, STR_ARG(word),
				     group ? "group" : "user");
			continue;
		}
		(*n)++;
	}
}

static void config_take_uids(struct config_reader *r,
			     const struct config_key *k, struct str value)
{
	config_take_ranges(r, k, value, false);
}

static void config_take_gids(struct config_reader *r,
			     const struct config_key *k, struct str value)
{
	config_take_ranges(r, k, value, true);
}

static void config_take_servers(struct config_reader *r,
				const struct config_key *k, struct str value)
{
	struct resolver_servers *s = config_field(r, k);
	const char *why;
	struct str word;

	if (str_empty(value))
		config_error(r, r->line, "'%s' is empty: name a resolver, or leave the line out to use resolv.conf's",
			     k->name);
	while (str_word(&value, &word)) {
		if (s->n == RESOLVER_SERVERS_MAX) {
			config_error(r, r->line, "'%s' has more than %d resolvers",
				     k->name, RESOLVER_SERVERS_MAX);
			return;
		}
		if (resolver_parse_server(word, &s->server[s->n], &why) < 0)
			config_error(r, r->line, "'%s' is given '%.*s', which %s",
				     k->name, STR_ARG(word), why);
		else
			s->n++;
	}
}

/* --- keys ---------------------------------------------------------------------- */

#define AT(field)	offsetof(struct config, field)

static const struct config_key config_keys[] = {
	{ "service", "plug", config_take_path, AT(plug), 0, 0 },
	{ "service", "log", config_take_path, AT(log), 0, 0 },
	{ "service", "resolv_conf", config_take_path, AT(resolv_conf), 0, 0 },
	{ "service", "workers", config_take_number, AT(workers), 1,
	  CONFIG_WORKERS_MAX },
	{ "service", "drain_seconds", config_take_number, AT(drain_s), 0,
	  CONFIG_DRAIN_MAX_S },
	{ "service", "upgrade_drain_seconds", config_take_number,
	  AT(upgrade_drain_s), 0, CONFIG_UPGRADE_DRAIN_MAX_S },
	{ "service", "log_level", config_take_level, 0, 0, 0 },
	{ "service", "source", config_take_source, AT(source), 0, 0 },
	{ "service", "mark", config_take_mark, AT(mark), 0, 0 },
	{ "service", "user", config_take_user, 0, 0, 0 },
	{ "plug", "allow_policy_uid", config_take_uids, AT(bring), 0, 0 },
	{ "plug", "allow_policy_group", config_take_gids, AT(bring), 0, 0 },
	{ "plug", "allow_named_uid", config_take_uids, AT(name), 0, 0 },
	{ "plug", "allow_named_group", config_take_gids, AT(name), 0, 0 },
	{ "plug", "policies", config_take_path, AT(policies), 0, 0 },
	{ "plug", "runs_per_uid", config_take_number, AT(runs_per_uid), 1,
	  65536 },
	{ "dns", "servers", config_take_servers, AT(dns), 0, 0 },
	{ "dns", "tls_ca", config_take_path, AT(tls_ca), 0, 0 },
	{ "limits", "connections", config_take_number, AT(connections), 1,
	  1000000000 },
	{ "limits", "memory", config_take_bytes, AT(memory), 64 << 20,
	  1000000 },
	{ "limits", "connections_per_uid", config_take_number,
	  AT(connections_per_uid), 1, 1000000000 },
	{ "limits", "memory_per_uid", config_take_bytes, AT(memory_per_uid),
	  64 << 20, 1000000 },
	{ "limits", "descriptors_reserve", config_take_number, AT(reserve), 16,
	  65536 },
};
_Static_assert(ARRAY_SIZE(config_keys) <= 32, "one bit a key in 'seen'");

static const char *const config_sections[] = {
	"service", "plug", "dns", "listen", "parent", "limits", NULL
};

static void config_on_section(void *arg, unsigned line, struct str name)
{
	struct config_reader *r = arg;
	const char *near;
	size_t i;

	r->line = line;
	if (config_is_listen(name)) {
		config_listen_begin(r, name);
		return;
	}
	if (config_is_parent(name)) {
		config_parent_begin(r, name);
		return;
	}
	for (i = 0; config_sections[i]; i++)
		if (str_eq(name, str_from(config_sections[i])))
			return;
	near = ini_did_you_mean(name, config_sections);
	if (near)
		config_error(r, line, "unknown section [%.*s]; did you mean [%s]?",
			     STR_ARG(name), near);
	else
		config_error(r, line, "unknown section [%.*s]; there are [service], [plug], [dns], [limits], [listen NAME] and [parent NAME]",
			     STR_ARG(name));
}

static void config_unknown_key(struct config_reader *r, struct str section,
			       struct str key)
{
	const char *words[ARRAY_SIZE(config_keys) + 1] = { NULL };
	const char *near;
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(config_keys); i++)
		if (str_eq(section, str_from(config_keys[i].section)))
			words[n++] = config_keys[i].name;
	near = ini_did_you_mean(key, words);
	if (n && near)
		config_error(r, r->line, "unknown key '%.*s' in [%.*s]; did you mean '%s'?",
			     STR_ARG(key), STR_ARG(section), near);
	else if (n)
		config_error(r, r->line, "unknown key '%.*s' in [%.*s]; penstockd(8) lists them",
			     STR_ARG(key), STR_ARG(section));
	else if (str_empty(section))
		config_error(r, r->line, "key '%.*s' stands before the first section: put [service] above it",
			     STR_ARG(key));
}

static void config_on_key(void *arg, unsigned line, struct str section,
			  struct str key, struct str value)
{
	struct config_reader *r = arg;
	size_t i;

	r->line = line;
	if (config_is_listen(section)) {
		config_listen_key(r, key, value);
		return;
	}
	if (config_is_parent(section)) {
		config_parent_key(r, key, value);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(config_keys); i++) {
		const struct config_key *k = &config_keys[i];
		bool many = k->take == config_take_uids ||
			    k->take == config_take_gids ||
			    k->take == config_take_servers;

		if (!str_eq(section, str_from(k->section)) ||
		    !str_eq(key, str_from(k->name)))
			continue;
		if (r->seen & BIT(i) && !many)
			config_error(r, line, "'%s' is given twice: keep one of them",
				     k->name);
		r->seen |= BIT(i);
		k->take(r, k, value);
		return;
	}
	config_unknown_key(r, section, key);
}

static void config_on_error(void *arg, unsigned line, unsigned column,
			    const char *message)
{
	const struct config_place place = { line, column };

	config_error_at(arg, &place, "%s", message);
}

static int config_defaults(struct config *c)
{
	c->plug = mem_dup_str(STR(CONFIG_PLUG_DEFAULT));
	c->resolv_conf = mem_dup_str(STR(CONFIG_RESOLV_DEFAULT));
	c->drain_s = CONFIG_DRAIN_DEFAULT_S;
	c->upgrade_drain_s = CONFIG_UPGRADE_DRAIN_DEFAULT_S;
	c->log_level = LOG_INFO;
	return c->plug && c->resolv_conf ? 0 : -ENOMEM;
}

static bool config_has(const struct config_reader *r, const char *section,
		       const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(config_keys); i++)
		if (strcmp(config_keys[i].section, section) == 0 &&
		    strcmp(config_keys[i].name, name) == 0)
			return r->seen & BIT(i);
	return false;
}

static void config_check_dns(struct config_reader *r)
{
	const struct config *c = r->config;

	if (c->tls_ca && !resolver_want_tls(&c->dns))
		config_error(r, 0, "tls_ca is for resolvers that are asked by TLS: begin one of 'servers' in [dns] with tls://, or take tls_ca out");
	if (c->dns.n > 0 && config_has(r, "service", "resolv_conf"))
		config_error(r, 0, "'servers' in [dns] and 'resolv_conf' in [service] both say who is asked: keep one of them");
}

/* What only the whole can be asked for. */
static void config_check(struct config_reader *r)
{
	const struct config *c = r->config;
	bool named = c->name.nuids + c->name.ngids > 0;

	config_listen_check(r);
	if (!named && c->nlistens == 0 &&
	    c->bring.nuids + c->bring.ngids == 0)
		config_error(r, 0, "nobody may plug a sandbox: add allow_policy_uid, allow_policy_group, allow_named_uid or allow_named_group to [plug], or a [listen NAME]");
	if (named && !c->policies)
		config_error(r, 0, "allow_named_uid and allow_named_group need the policies that may be named: add 'policies = DIRECTORY' to [plug]");
	config_check_dns(r);
	config_parent_check(r);
}

int config_parse(struct str text, config_error_fn *fn, void *arg,
		 struct config *ret)
{
	static const struct ini_handler handler = {
		config_on_section, config_on_key, config_on_error,
	};
	struct config c = { 0 };
	struct config_reader r = {
		.config = &c, .text = text, .fn = fn, .arg = arg,
	};
	int err;

	r.err = config_defaults(&c);
	err = r.err ? r.err : ini_read(text, &handler, &r);
	if (r.err == 0 && err == 0)
		config_check(&r);
	err = r.err ? r.err : err;
	if (err < 0) {
		config_done(&c);
		return err;
	}
	*ret = c;
	return 0;
}

void config_done(struct config *c)
{
	size_t i;

	mem_free(c->plug);
	mem_free(c->log);
	mem_free(c->resolv_conf);
	mem_free(c->policies);
	mem_free(c->tls_ca);
	for (i = 0; i < c->nlistens; i++)
		mem_free(c->listen[i].policy);
	mem_free(c->listen);
	parents_done(&c->parents);
	*c = (struct config){ 0 };
}

static bool config_in(const struct config_range *range, size_t n, uint32_t id)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (range[i].first <= id && id <= range[i].last)
			return true;
	return false;
}

bool config_who_has(const struct config_who *who, uid_t uid,
		    const gid_t *gid, size_t ngids)
{
	size_t i;

	if (config_in(who->uid, who->nuids, uid))
		return true;
	for (i = 0; i < ngids; i++)
		if (config_in(who->gid, who->ngids, gid[i]))
			return true;
	return false;
}
