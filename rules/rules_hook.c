/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_hook.c - hosts that a preset takes from how the machine is set up
 *
 * apt's sources (sources.list(5)): one line a source, or paragraphs with URIs.
 * npm's registries (npmrc(5)): `registry` and `@scope:registry`.  Only names are
 * taken, of http and https; an address has to be allowed by a rule with a
 * reason, like anywhere.
 */
#include "rules/rules_hook.h"

#include <errno.h>
#include <stdio.h>

#include "rules/host_name.h"

#define FILE_MAX	(1u << 20)	/* bytes of a configuration */

struct hook {
	const struct rules_reader *reader;
	struct buf *out;
	const char *dir;		/* being listed */
	bool found;			/* what makes the fallback needless */
	int err;
};

/* Where the host of a URL with http or https begins; NONE: of another kind. */
static struct str behind_scheme(struct str url)
{
	static const char *const schemes[] = { "http://", "https://" };

	if (str_starts(url, STR("mirror+")))
		url = str_make(url.p + 7, url.n - 7);
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		struct str scheme = str_from(schemes[i]);

		if (str_starts(url, scheme))
			return str_make(url.p + scheme.n, url.n - scheme.n);
	}
	return STR_NONE;
}

static bool has_line(const struct buf *b, struct str line)
{
	struct str rest = buf_str(b), have;

	while (str_cut(&rest, '\n', &have)) {
		if (str_eq(have, line))
			return true;
	}
	return false;
}

static void take_url(struct hook *h, struct str url)
{
	struct str rest = behind_scheme(url), authority;
	struct host_name name;
	struct ip_addr addr;
	size_t at;
	uint16_t port;

	if (!rest.p || !str_cut(&rest, '/', &authority))
		return;
	at = str_chr(authority, '@');
	if (at < authority.n)
		authority = str_make(authority.p + at + 1,
				     authority.n - at - 1);
	if (authority_parse(authority, 443, &name, &addr, &port) != HOST_NAME ||
	    has_line(h->out, host_name_str(&name)))
		return;
	if (!h->err)
		h->err = buf_printf(h->out, "%s\n", name.p);
}

static void take_source(struct hook *h, struct str url)
{
	size_t before = h->out->n;

	take_url(h, url);
	h->found |= h->out->n > before;
}

static void read_config(struct hook *h, const char *path,
			void (*line_fn)(struct hook *h, struct str line))
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	struct str rest, line;
	int err = h->reader->read(h->reader->arg, path, &text);

	/* What is not there, or not ours to read, says nothing. */
	if (err == -ENOMEM)
		h->err = err;
	if (err)
		return;
	rest = buf_str(&text);
	while (str_cut(&rest, '\n', &line))
		line_fn(h, line);
}

/* --- apt ---------------------------------------------------------------------- */

/* "deb [options] URI suite ..." */
static void on_source_line(struct hook *h, struct str line)
{
	struct str word;

	if (!str_word(&line, &word) ||
	    (!str_eq(word, STR("deb")) && !str_eq(word, STR("deb-src"))))
		return;
	while (str_word(&line, &word)) {
		if (behind_scheme(word).p) {
			take_source(h, word);
			return;
		}
	}
}

/* One paragraph: "URIs: ..." with lines that go on, unless "Enabled: no". */
static void take_paragraph(struct hook *h, struct str text)
{
	struct str rest = text, line, word;
	bool uris = false;

	while (str_cut(&rest, '\n', &line)) {
		bool more = line.n > 0 && (line.p[0] == ' ' ||
					   line.p[0] == '\t');

		if (!more && line.n > 0 && line.p[0] != '#')
			uris = line.n > 5 &&
			       str_ieq(str_make(line.p, 5), STR("URIs:"));
		while (uris && line.n > 0 && line.p[0] != '#' &&
		       str_word(&line, &word))
			take_source(h, word);
	}
}

static bool is_off(struct str text)
{
	struct str rest = text, line;

	while (str_cut(&rest, '\n', &line)) {
		if (line.n > 8 &&
		    str_ieq(str_make(line.p, 8), STR("Enabled:")) &&
		    str_ieq(str_trim(str_make(line.p + 8, line.n - 8)),
			    STR("no")))
			return true;
	}
	return false;
}

static void read_paragraphs(struct hook *h, const char *path)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	struct str rest, line, paragraph;
	int err = h->reader->read(h->reader->arg, path, &text);

	if (err == -ENOMEM)
		h->err = err;
	if (err)
		return;
	rest = buf_str(&text);
	paragraph = str_make(rest.p, 0);
	while (str_cut(&rest, '\n', &line)) {
		bool end = str_empty(str_trim(line));

		if (!end)
			paragraph.n = (size_t)(line.p + line.n - paragraph.p);
		if (!end && !str_empty(rest))
			continue;
		if (!is_off(paragraph))
			take_paragraph(h, paragraph);
		paragraph = str_make(rest.p, 0);
	}
}

static void on_apt_file(void *arg, const char *name)
{
	struct hook *h = arg;
	char path[RULES_PATH_TEXT_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", h->dir, name);

	if (n < 0 || n >= (int)sizeof(path) || name[0] == '.')
		return;
	if (str_ends(str_from(name), STR(".list")))
		read_config(h, path, on_source_line);
	else if (str_ends(str_from(name), STR(".sources")))
		read_paragraphs(h, path);
}

static void apt_sources(struct hook *h)
{
	int err;

	read_config(h, "/etc/apt/sources.list", on_source_line);
	h->dir = "/etc/apt/sources.list.d";
	err = h->reader->list(h->reader->arg, h->dir, on_apt_file, h);
	if (err == -ENOMEM)
		h->err = err;
}

/* --- npm ---------------------------------------------------------------------- */

/* "registry=URL", or the same of a scope (behind "@"); only the first is for all that no
 * scope has. */
static void on_npmrc_line(struct hook *h, struct str line)
{
	size_t eq = str_chr(line, '=');
	struct str key = str_trim(str_make(line.p, eq)), value;

	if (eq == line.n || !(str_eq(key, STR("registry")) ||
			      (str_starts(key, STR("@")) &&
			       str_ends(key, STR(":registry")))))
		return;
	value = str_trim(str_make(line.p + eq + 1, line.n - eq - 1));
	if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
		value = str_make(value.p + 1, value.n - 2);
	take_url(h, value);
	h->found |= str_eq(key, STR("registry"));
}

static void npm_registry(struct hook *h)
{
	static const char *const global[] = {
		"/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc",
	};
	char path[RULES_PATH_TEXT_MAX];
	int n;

	if (h->reader->npm_registry)
		take_source(h, str_from(h->reader->npm_registry));
	n = h->reader->home ? snprintf(path, sizeof(path), "%s/.npmrc",
				       h->reader->home) : -1;
	if (n > 0 && n < (int)sizeof(path))
		read_config(h, path, on_npmrc_line);
	for (size_t i = 0; i < ARRAY_SIZE(global); i++)
		read_config(h, global[i], on_npmrc_line);
}

/* --- */

static const struct {
	const char *word;
	const char *name;
	void (*run)(struct hook *h);
} hooks[] = {
	{ "@apt-sources/", "apt's sources", apt_sources },
	{ "@npm-registry/", "npm's registries", npm_registry },
};

int rules_hook_hosts(const struct rules_reader *reader, struct str word,
		     struct buf *out, const char **ret_name)
{
	struct hook h = { .reader = reader, .out = out };

	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		struct str start = str_from(hooks[i].word);

		if (!str_starts(word, start) || word.n == start.n)
			continue;
		*ret_name = hooks[i].name;
		hooks[i].run(&h);
		if (!h.err && !h.found)
			h.err = buf_printf(out, "%.*s\n", (int)(word.n -
					   start.n), word.p + start.n);
		return h.err ? -ENOMEM : 0;
	}
	return -EINVAL;
}
