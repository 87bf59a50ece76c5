/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_listen.c - [listen NAME]: listeners on addresses of this host
 *
 * What is reached by others than this host must say by whom: a proxy or a
 * resolver that anybody may use is found and used by everybody.
 */
#include <errno.h>
#include <string.h>

#include "base/ini.h"
#include "base/ip_class.h"
#include "base/mem.h"
#include "proxy/config_own.h"

#define LISTEN_SECTION		"listen"
/* A range of clients that is wider is no range. */
#define CLIENT_BITS_MIN4	8
#define CLIENT_BITS_MIN6	16

struct listen_key {
	const char *name;
	void (*take)(struct config_reader *r, const struct listen_key *k,
		     struct str value);
	size_t offset;			/* into struct config_listen */
	uint16_t port;			/* where none is given */
	bool many;
};

bool config_is_listen(struct str section)
{
	struct str word = STR_NONE;

	return str_word(&section, &word) && str_eq(word, STR(LISTEN_SECTION));
}

static struct config_listen *current(struct config_reader *r)
{
	return &r->config->listen[r->config->nlistens - 1];
}

/* --- the section's name ---------------------------------------------------------- */

static bool is_name(struct str name, size_t max)
{
	size_t i;

	for (i = 0; i < name.n; i++)
		if (!(name.p[i] >= 'a' && name.p[i] <= 'z') && !ascii_is_digit(name.p[i]) &&
		    (i == 0 || !strchr("-_.", name.p[i])))
			return false;
	return name.n > 0 && name.n < max;
}

static const struct config_listen *find(const struct config *c,
					struct str name)
{
	size_t i;

	for (i = 0; i < c->nlistens; i++)
		if (str_eq(name, str_from(c->listen[i].name)))
			return &c->listen[i];
	return NULL;
}

/* Return: false after saying what is wrong */
static bool name_is_fine(struct config_reader *r, struct str name)
{
	const struct config_listen *twin = find(r->config, name);

	if (str_empty(name))
		config_error(r, r->line, "[listen] wants a name: [listen web]");
	else if (!is_name(name, CONFIG_LISTEN_NAME_MAX))
		config_error(r, r->line, "'%.*s' is no name of a listener: up to %d of a-z, 0-9, '-', '_' and '.', a letter or digit first",
			     STR_ARG(name), CONFIG_LISTEN_NAME_MAX - 1);
	else if (twin)
		config_error(r, r->line, "[listen %.*s] is there already, at line %u: give this one another name",
			     STR_ARG(name), twin->place.line);
	else if (r->config->nlistens == CONFIG_LISTENS_MAX)
		config_error(r, r->line, "more than %d listeners: give one of them more addresses",
			     CONFIG_LISTENS_MAX);
	else
		return true;
	return false;
}

void config_listen_begin(struct config_reader *r, struct str section)
{
	struct config *c = r->config;
	struct str word = STR_NONE;
	struct config_listen *l;

	(void)!str_word(&section, &word);
	section = str_trim(section);
	r->listen_seen = 0;
	r->listen_bad = !name_is_fine(r, section);
	if (r->listen_bad)
		return;
	if (!c->listen)
		c->listen = mem_new_array(CONFIG_LISTENS_MAX,
					  sizeof(c->listen[0]));
	if (!c->listen) {
		r->err = -ENOMEM;
		r->listen_bad = true;
		return;
	}
	l = &c->listen[c->nlistens++];
	memcpy(l->name, section.p, section.n);
	l->place = (struct config_place){ r->line, 0 };
}

/* --- addresses to listen on -------------------------------------------------------- */

static void door_add(struct config_reader *r, struct config_doors *doors,
		     struct str word, const struct config_door *door)
{
	struct config_place place = config_place_of(r, word);

	if (doors->n == CONFIG_DOORS_MAX) {
		config_error_at(r, &place, "more than %d addresses: take another section for the rest",
				CONFIG_DOORS_MAX);
		return;
	}
	doors->door[doors->n] = *door;
	doors->door[doors->n++].place = place;
}

/* "localhost" and "*" are both families; ":PORT" may follow. */
static bool is_both(struct str word, const char *what, struct str *ret_port)
{
	struct str name;

	if (!str_cut(&word, ':', &name) || !str_eq(name, str_from(what)))
		return false;
	*ret_port = word;
	return true;
}

/* What cannot be listened on, or NULL. */
static const char *door_fault(const struct ip_endpoint *at)
{
	struct ip_addr bare = ip_addr_unmapped(&at->addr);
	enum ip_class class = ip_classify(&bare);

	if (at->port == 0)
		return "has no port: say which";
	if (!ip_addr_eq(&bare, &at->addr))
		return "is an IPv4 address in IPv6: write it as IPv4";
	if (class == IP_MULTICAST)
		return "is a multicast address: a listener has one of this host";
	if (class == IP_LINK_LOCAL && at->addr.family == IP_V6)
		return "is a link-local address, which is another on each link: take one that is not";
	return NULL;
}

static void take_both(struct config_reader *r, const struct listen_key *k,
		      struct str word, struct str port, bool wildcard)
{
	struct config_doors *doors = (void *)((char *)current(r) + k->offset);
	struct config_door v4 = { 0 }, v6 = { .if_there = true };
	struct config_place place = config_place_of(r, word);
	unsigned long n = k->port;

	if (port.n > 0 && (str_to_uint(port, UINT16_MAX, &n) < 0 || n == 0)) {
		config_error_at(r, &place, "'%s' is given '%.*s', whose port is none",
				k->name, STR_ARG(word));
		return;
	}
	v4.at = (struct ip_endpoint){
		ip_addr_v4(wildcard ? 0 : INADDR_LOOPBACK), (uint16_t)n,
	};
	v6.at = (struct ip_endpoint){ { .family = IP_V6 }, (uint16_t)n };
	v6.at.addr.b[15] = !wildcard;
	door_add(r, doors, word, &v4);
	door_add(r, doors, word, &v6);
}

static void take_door(struct config_reader *r, const struct listen_key *k,
		      struct str word)
{
	struct config_doors *doors = (void *)((char *)current(r) + k->offset);
	struct config_place place = config_place_of(r, word);
	struct config_door door = { 0 };
	struct str port = STR_NONE;
	const char *fault;

	if (is_both(word, "localhost", &port)) {
		take_both(r, k, word, port, false);
		return;
	}
	if (is_both(word, "*", &port)) {
		take_both(r, k, word, port, true);
		return;
	}
	if (ip_endpoint_parse(word, k->port, &door.at) < 0) {
		config_error_at(r, &place, "'%s' is given '%.*s', which is no address to listen on: 127.0.0.1:%u, [::1]:%u, localhost:%u (both of them) or *:%u (every address)",
				k->name, STR_ARG(word), k->port, k->port,
				k->port, k->port);
		return;
	}
	fault = door_fault(&door.at);
	if (fault)
		config_error_at(r, &place, "'%s' is given '%.*s', which %s",
				k->name, STR_ARG(word), fault);
	else
		door_add(r, doors, word, &door);
}

static void take_doors(struct config_reader *r, const struct listen_key *k,
		       struct str value)
{
	struct str word;

	if (str_empty(value))
		config_error(r, r->line, "'%s' is empty: name an address to listen on, or leave the line out",
			     k->name);
	while (str_word(&value, &word))
		take_door(r, k, word);
}

/* --- the rest ---------------------------------------------------------------------- */

/* fc00::/7 (RFC 4193) and fe80::/10 are short, and nobody's but one's own. */
static bool is_everybody(const struct ip_net *net)
{
	enum ip_class class = ip_classify(&net->addr);

	if (net->addr.family == IP_V4)
		return net->bits < CLIENT_BITS_MIN4;
	if (class == IP_PRIVATE && net->bits >= 7)
		return false;
	if (class == IP_LINK_LOCAL && net->bits >= 10)
		return false;
	return net->bits < CLIENT_BITS_MIN6;
}

static void take_clients(struct config_reader *r, const struct listen_key *k,
			 struct str value)
{
	struct config_listen *l = current(r);
	struct str word;

	if (str_empty(value))
		config_error(r, r->line, "'%s' is empty: name the ranges of those who may use it, or leave the line out",
			     k->name);
	while (str_word(&value, &word)) {
		struct config_place place = config_place_of(r, word);
		struct ip_net net = { .bits = 0 };
		int err = ip_net_parse(word, &net);
		struct ip_addr bare = ip_addr_unmapped(&net.addr);
		unsigned min = net.addr.family == IP_V4 ? CLIENT_BITS_MIN4 :
							  CLIENT_BITS_MIN6;

		if (err == -ERANGE)
			config_error_at(r, &place, "'%s' is given '%.*s', an address and not a range: the bits behind its length must be zero",
					k->name, STR_ARG(word));
		else if (err < 0)
			config_error_at(r, &place, "'%s' is given '%.*s', which is no address or range (10.1.0.0/16, 2001:db8::/32)",
					k->name, STR_ARG(word));
		else if (is_everybody(&net))
			config_error_at(r, &place, "'%s' is given '%.*s', which is nearly everybody: nobody proves here who they are, so name the networks of those who may (/%u or longer)",
					k->name, STR_ARG(word), min);
		else if (!ip_addr_eq(&bare, &net.addr))
			config_error_at(r, &place, "'%s' is given '%.*s', IPv4 in IPv6: write it as IPv4",
					k->name, STR_ARG(word));
		else if (l->nclients == CONFIG_CLIENTS_MAX)
			config_error_at(r, &place, "'%s' has more than %d ranges",
					k->name, CONFIG_CLIENTS_MAX);
		else
			l->client[l->nclients++] = net;
	}
}

static void take_policy(struct config_reader *r, const struct listen_key *k,
			struct str value)
{
	struct config_listen *l = current(r);

	if (str_empty(value)) {
		config_error(r, r->line, "'%s' is empty: name one of the service's policies",
			     k->name);
		return;
	}
	l->policy_place = config_place_of(r, value);
	mem_free(l->policy);
	l->policy = mem_dup_str(value);
	if (!l->policy)
		r->err = -ENOMEM;
}

static void take_label(struct config_reader *r, const struct listen_key *k,
		       struct str value)
{
	struct config_place place = config_place_of(r, value);

	if (!is_name(value, CONFIG_LISTEN_LABEL_MAX))
		config_error_at(r, &place, "'%s' is given '%.*s': up to %d of a-z, 0-9, '-', '_' and '.', a letter or digit first",
				k->name, STR_ARG(value),
				CONFIG_LISTEN_LABEL_MAX - 1);
	else
		memcpy(current(r)->label, value.p, value.n);
}

#define SHARE_MAX	1000000000u

static void take_share(struct config_reader *r, const struct listen_key *k,
		       struct str value)
{
	uint32_t *share = (void *)((char *)current(r) + k->offset);
	struct config_place place = config_place_of(r, value);
	unsigned long n = 0;

	if (str_to_uint(value, SHARE_MAX, &n) < 0 || n == 0)
		config_error_at(r, &place, "'%s' is given '%.*s': a number from 1 to %u, of each client, or leave the line out",
				k->name, STR_ARG(value), SHARE_MAX);
	*share = (uint32_t)n;
}

#define AT(field)	offsetof(struct config_listen, field)

static const struct listen_key listen_keys[] = {
	{ "http", take_doors, AT(http), 3128, true },
	{ "socks", take_doors, AT(socks), 1080, true },
	{ "dns", take_doors, AT(dns), 53, true },
	{ "policy", take_policy, 0, 0, false },
	{ "clients", take_clients, 0, 0, true },
	{ "client_connections", take_share, AT(share.connections), 0, false },
	{ "client_new_connections", take_share, AT(share.new_connections), 0,
	  false },
	{ "client_queries", take_share, AT(share.queries), 0, false },
	{ "label", take_label, 0, 0, false },
};

static void unknown_key(struct config_reader *r, struct str key)
{
	const char *words[ARRAY_SIZE(listen_keys) + 1] = { NULL };
	const char *near;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(listen_keys); i++)
		words[i] = listen_keys[i].name;
	near = ini_did_you_mean(key, words);
	if (near)
		config_error(r, r->line, "unknown key '%.*s' in [listen %s]; did you mean '%s'?",
			     STR_ARG(key), current(r)->name, near);
	else
		config_error(r, r->line, "unknown key '%.*s' in [listen %s]; penstockd(8) lists them",
			     STR_ARG(key), current(r)->name);
}

void config_listen_key(struct config_reader *r, struct str key,
		       struct str value)
{
	size_t i;

	if (r->listen_bad)
		return;
	for (i = 0; i < ARRAY_SIZE(listen_keys); i++) {
		const struct listen_key *k = &listen_keys[i];

		if (!str_eq(key, str_from(k->name)))
			continue;
		if (r->listen_seen & BIT(i) && !k->many)
			config_error(r, r->line, "'%s' is given twice: keep one of them",
				     k->name);
		r->listen_seen |= BIT(i);
		k->take(r, k, value);
		return;
	}
	unknown_key(r, key);
}

/* --- what only the whole can be asked for -------------------------------------------- */

/* One after another, whichever key they are of. */
static const struct config_door *door_at(const struct config_listen *l,
					 size_t i, bool *ret_dns)
{
	*ret_dns = i >= l->http.n + l->socks.n;
	if (i < l->http.n)
		return &l->http.door[i];
	i -= l->http.n;
	if (i < l->socks.n)
		return &l->socks.door[i];
	i -= l->socks.n;
	return i < l->dns.n ? &l->dns.door[i] : NULL;
}

static bool is_any(const struct ip_addr *a)
{
	return ip_classify(a) == IP_UNSPECIFIED;
}

/* Do they take each other's place?  Each listener of DNS has TCP, too. */
static bool doors_clash(const struct config_door *a,
			const struct config_door *b)
{
	return a->at.port == b->at.port &&
	       a->at.addr.family == b->at.addr.family &&
	       (ip_addr_eq(&a->at.addr, &b->at.addr) || is_any(&a->at.addr) ||
		is_any(&b->at.addr));
}

/* An earlier one that has the place of number @i of @l. */
static const struct config_door *door_twin(const struct config *c,
					   const struct config_listen *l,
					   size_t i)
{
	const struct config_listen *other;
	const struct config_door *own, *d;
	bool dns;
	size_t j;

	own = door_at(l, i, &dns);
	for (other = c->listen; other <= l; other++)
		for (j = 0; (other < l || j < i) &&
			    (d = door_at(other, j, &dns)); j++)
			if (doors_clash(d, own))
				return d;
	return NULL;
}

static void check_doors(struct config_reader *r, const struct config_listen *l)
{
	char text[IP_ENDPOINT_TEXT_SIZE];
	const struct config_door *d, *twin;
	bool dns, told = false;
	size_t i;

	for (i = 0; (d = door_at(l, i, &dns)); i++) {
		struct ip_addr a = d->at.addr;

		ip_endpoint_text(&d->at, text);
		twin = door_twin(r->config, l, i);
		if (twin)
			config_error_at(r, &d->place, "%s is listened on already, by line %u: keep one of them, or take another port",
					text, twin->place.line);
		if (told || l->nclients > 0 || ip_classify(&a) == IP_LOOPBACK)
			continue;
		told = true;
		config_error_at(r, &d->place, "%s can be reached by others than this host, and [listen %s] does not say by whom: add 'clients' with their ranges (clients = 192.0.2.0/24), or listen on localhost",
				text, l->name);
	}
	if (i == 0)
		config_error_at(r, &l->place, "[listen %s] listens nowhere: add 'http', 'socks' or 'dns' with an address",
				l->name);
}

static void check_listen(struct config_reader *r,
			 const struct config_listen *l)
{
	const struct config *c = r->config;

	if (!l->policy)
		config_error_at(r, &l->place, "[listen %s] has no policy: add 'policy' with the name of one of the service's own",
				l->name);
	else if (!c->policies)
		config_error_at(r, &l->policy_place, "the policy of [listen %s] is one of the service's own: add 'policies = DIRECTORY' to [plug]",
				l->name);
	if (!c->log)
		config_error_at(r, &l->place, "[listen %s] has no place for its records: add 'log = FILE' to [service]",
				l->name);
	check_doors(r, l);
}

void config_listen_check(struct config_reader *r)
{
	const struct config *c = r->config;
	size_t i;

	for (i = 0; i < c->nlistens; i++)
		check_listen(r, &c->listen[i]);
}
