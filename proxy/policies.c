/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policies.c - a service's own policies, by the names that runs give
 */
#include "proxy/policies.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/compiler.h"
#include "proxy/ctl_proto.h"
#include "proxy/plug_check.h"
#include "proxy/plug_peer.h"
#include "rules/rules.h"
#include "rules/rules_load.h"

/* --- the table ----------------------------------------------------------------- */

struct policy *policies_find(const struct policies *ps, struct str name)
{
	size_t i;

	for (i = 0; i < ps->n; i++)
		if (str_eq(name, str_from(ps->policy[i].name)))
			return &ps->policy[i];
	return NULL;
}

size_t policies_count(const struct policies *ps)
{
	size_t i, n = 0;

	for (i = 0; i < ps->n; i++)
		n += !ps->policy[i].gone;
	return n;
}

static int policies_add(struct policies *ps, struct str name,
			struct policy **ret, struct plug_why *why)
{
	struct policy *p;

	if (!ps->policy)
		ps->policy = mem_new_array(POLICIES_MAX, sizeof(*ps->policy));
	if (ps->policy && ps->n == POLICIES_MAX)
		return plug_refuse(why, "more than %d policies", POLICIES_MAX);
	p = ps->policy ? &ps->policy[ps->n] : NULL;
	if (!p || !(p->name = mem_dup_str(name))) {
		plug_refuse(why, "out of memory");
		return -ENOMEM;
	}
	ps->n++;
	*ret = p;
	return 0;
}

/* Takes @rules on success. */
static int policy_set(struct policy *p, struct str text,
		      struct ruleset *rules, struct plug_why *why)
{
	char *copy = mem_dup_str(text);

	if (!copy) {
		plug_refuse(why, "out of memory");
		return -ENOMEM;
	}
	mem_free((void *)(uintptr_t)p->text.p);
	p->text = str_make(copy, text.n);
	rules_unref(p->rules);
	p->rules = rules;
	p->seen = true;
	p->gone = false;
	return 1;
}

bool policies_has(const struct policies *ps, const struct policy_file *file,
		  bool anew)
{
	const struct policy *p = policies_find(ps, file->name);

	return p && !anew && str_eq(p->text, file->text);
}

static int policies_compile(const struct policy_file *file,
			    struct ruleset **ret, struct plug_why *why)
{
	struct compile *done = file->compiled;

	if (!done)
		return plug_compile(file->path, file->text, false, ret, why);
	if (done->err < 0) {
		*why = done->why;
		return done->err;
	}
	*ret = done->rules;
	done->rules = NULL;
	return 0;
}

int policies_take(struct policies *ps, const struct policy_file *file,
		  bool anew, struct policy **ret, struct plug_why *why)
{
	CLEANUP(rules_unrefp) struct ruleset *rules = NULL;
	struct policy *p = policies_find(ps, file->name);
	int err;

	*ret = p;
	if (p)
		p->seen = true;
	if (policies_has(ps, file, anew)) {
		p->gone = false;
		return 0;
	}
	err = policies_compile(file, &rules, why);
	if (err == 0)
		err = plug_suits(ps->parents, rules, why);
	if (err == 0 && !p)
		err = policies_add(ps, file->name, &p, why);
	if (err < 0)
		return err;
	err = policy_set(p, file->text, rules, why);
	if (err < 0) {
		/* One without rules could be named: it is not there. */
		p->gone = !p->rules;
		return err;
	}
	rules = NULL;
	*ret = p;
	return 1;
}

void policies_done(struct policies *ps)
{
	size_t i;

	for (i = 0; i < ps->n; i++) {
		mem_free(ps->policy[i].name);
		mem_free((void *)(uintptr_t)ps->policy[i].text.p);
		rules_unref(ps->policy[i].rules);
	}
	mem_free(ps->policy);
	*ps = (struct policies){ .n = 0 };
}

/* --- their files ----------------------------------------------------------------- */

static void dir_closep(DIR **d)
{
	if (*d)
		closedir(*d);
}

int policies_list(const char *dir, policies_list_fn *fn, void *arg)
{
	CLEANUP(dir_closep) DIR *d = opendir(dir);
	const struct dirent *e;
	char path[PATH_MAX];
	int err = 0, n;

	if (!d)
		return -errno;
	while (err == 0 && (errno = 0, e = readdir(d))) {
		struct str name = str_from(e->d_name);

		if (name.p[0] == '.' || !str_ends(name, STR(POLICIES_ENDING)))
			continue;
		name.n -= sizeof(POLICIES_ENDING) - 1;
		n = snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (n < 0 || (size_t)n >= sizeof(path))
			return -ENAMETOOLONG;
		err = fn(arg, name, path);
	}
	return err ? err : -errno;
}

struct reading {
	policies_read_fn *fn;
	void *arg;
};

/* The policy's own file is for whoever asked for it to tell of; those that it
 * names are told of here, where they are read. */
struct own_file {
	const char *path;
	int err;
};

static int read_file(void *arg, const char *path, struct buf *out)
{
	struct own_file *own = arg;
	int err = files_read(NULL, path, out);

	if (strcmp(path, own->path) == 0)
		own->err = err;
	return err;
}

static void on_load_fault(void *arg, const struct rules_diag *d)
{
	const struct own_file *own = arg;

	if (!own->err)
		log_error("%s:%u:%u: %s", d->file, d->line, d->column,
			  d->message);
}

static int read_one(void *arg, struct str name, const char *path)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PLUG_POLICY_MAX);
	CLEANUP(rules_loaded_done) struct rules_loaded l = { .n_texts = 0 };
	const struct reading *r = arg;
	struct policy_file file = { .name = name, .path = path };
	struct own_file own = { .path = path };
	const struct rules_reader reader = {
		.read = read_file, .list = files_list, .arg = &own,
		.presets = PEN_DATADIR "/presets",
	};
	const struct rules_wanted wanted = { .policy = path };

	file.err = rules_load(&reader, &wanted, on_load_fault, &own, &l);
	if (own.err)
		file.err = own.err;
	/* Without what it names it is refused, with the place that names it. */
	if (file.err == -EINVAL && !own.err && l.b.n > 0)
		file.err = rules_bundle_write(l.b.source, 1, &text);
	else if (file.err == 0)
		file.err = rules_bundle_write(l.b.source, l.b.n, &text);
	if (file.err == 0)
		file.text = buf_str(&text);
	return r->fn(r->arg, &file);
}

int policies_read(const char *dir, policies_read_fn *fn, void *arg)
{
	struct reading r = { fn, arg };

	return policies_list(dir, read_one, &r);
}
