/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_parent.c - [parent NAME]: proxies that flows may be sent through
 */
#include <errno.h>

#include "base/ini.h"
#include "base/mem.h"
#include "proxy/config_own.h"

#define PARENT_SECTION		"parent"

bool config_is_parent(struct str section)
{
	struct str word = STR_NONE;

	return str_word(&section, &word) && str_eq(word, STR(PARENT_SECTION));
}

static void parent_take_url(struct config_reader *r, struct str value)
{
	const char *why = "";
	int err = parent_set_url(r->parent, value, &why);

	if (err == -ENOMEM)
		r->err = err;
	else if (err < 0)
		config_error(r, r->line, "'url' %s", why);
}

static void parent_take_credentials(struct config_reader *r, struct str value)
{
	if (value.n == 0 || value.p[0] != '/') {
		config_error(r, r->line, "'credentials' wants the absolute path of a file with user:password, not '%.*s'",
			     STR_ARG(value));
		return;
	}
	mem_free(r->parent->login_file);
	r->parent->login_file = mem_dup_str(value);
	if (!r->parent->login_file)
		r->err = -ENOMEM;
}

static void parent_take_bypass(struct config_reader *r, struct str value)
{
	struct str word;
	const char *why;
	int err;

	while (str_word(&value, &word)) {
		err = parent_add_bypass(r->parent, word, &why);
		if (err == -ENOMEM)
			r->err = err;
		else if (err < 0)
			config_error(r, r->line, "'bypass' is given '%.*s', which %s",
				     STR_ARG(word), why);
	}
}

/* One of two words; false, and told, for any other. */
static bool parent_take_word(struct config_reader *r, struct str value,
			     const char *yes, const char *no, bool *ret)
{
	*ret = str_eq(value, str_from(yes));
	if (*ret || str_eq(value, str_from(no)))
		return true;
	config_error(r, r->line, "'%.*s' is neither '%s' nor '%s'",
		     STR_ARG(value), yes, no);
	return false;
}

static void parent_take_resolve(struct config_reader *r, struct str value)
{
	bool there;

	if (parent_take_word(r, value, "parent", "here", &there))
		r->parent->there = there;
}

static void parent_take_http(struct config_reader *r, struct str value)
{
	bool absolute;

	if (parent_take_word(r, value, "absolute", "connect", &absolute))
		r->parent->absolute = absolute;
}

static void parent_take_default(struct config_reader *r, struct str value)
{
	struct parents *ps = &r->config->parents;
	bool always = str_eq(value, STR("always")), yes = always;

	if (!always && !parent_take_word(r, value, "yes", "no", &yes))
		return;
	if (yes && ps->by_default) {
		config_error(r, r->line, "[parent %s] is the default already: keep one of them",
			     ps->by_default->name);
		return;
	}
	if (yes)
		ps->by_default = r->parent;
	ps->always |= always;
}

static const struct {
	const char *name;
	void (*take)(struct config_reader *r, struct str value);
	bool many;
} parent_keys[] = {
	{ "url", parent_take_url, false },
	{ "credentials", parent_take_credentials, false },
	{ "bypass", parent_take_bypass, true },
	{ "resolve", parent_take_resolve, false },
	{ "http", parent_take_http, false },
	{ "default", parent_take_default, false },
};

void config_parent_key(struct config_reader *r, struct str key,
		       struct str value)
{
	const char *words[ARRAY_SIZE(parent_keys) + 1] = { NULL };
	const char *near;
	size_t i;

	if (!r->parent)
		return;		/* that there is no such section was told */
	for (i = 0; i < ARRAY_SIZE(parent_keys); i++) {
		words[i] = parent_keys[i].name;
		if (!str_eq(key, str_from(words[i])))
			continue;
		if (r->parent_seen & BIT(i) && !parent_keys[i].many)
			config_error(r, r->line, "'%s' is given twice: keep one of them",
				     words[i]);
		r->parent_seen |= BIT(i);
		parent_keys[i].take(r, value);
		return;
	}
	near = ini_did_you_mean(key, words);
	config_error(r, r->line, near ? "unknown key '%.*s' in [parent %s]; did you mean '%s'?"
				      : "unknown key '%.*s' in [parent %s]; penstockd(8) lists them",
		     STR_ARG(key), r->parent->name, near);
}

void config_parent_begin(struct config_reader *r, struct str section)
{
	const char *why = "";
	struct str word;
	int err;

	(void)!str_word(&section, &word);
	section = str_trim(section);
	r->parent = NULL;
	r->parent_seen = 0;
	err = parents_add(&r->config->parents, section, &r->parent, &why);
	if (err == -ENOMEM)
		r->err = err;
	else if (err < 0)
		config_error(r, r->line, "'%.*s' %s", STR_ARG(section), why);
}

void config_parent_check(struct config_reader *r)
{
	const struct parents *ps = &r->config->parents;

	for (size_t i = 0; i < ps->n; i++) {
		const char *fault = parent_fault(ps->parent[i]);

		if (fault)
			config_error(r, 0, "[parent %s] %s",
				     ps->parent[i]->name, fault);
	}
}
