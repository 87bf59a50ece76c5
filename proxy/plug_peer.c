/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_peer.c - who is at the other end of a plug, and which policy they get
 *
 * The kernel says who connected (SO_PEERCRED, SO_PEERGROUPS); the service's
 * configuration says who may bring a policy and who may only name one of the
 * service's own.  On a private plug there is nobody but who started us.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "proxy/parents.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"
#include "proxy/plug_peer.h"
#include "proxy/policies.h"
#include "rules/rules_bundle.h"

/* The peer's groups, its own first; what does not fit is no membership. */
static size_t plug_peer_groups(int fd, gid_t own,
			       gid_t ret[PLUG_GROUPS_MAX + 1])
{
	socklen_t bytes = PLUG_GROUPS_MAX * sizeof(gid_t);

	ret[0] = own;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, ret + 1, &bytes) < 0)
		return 1;
	return 1 + bytes / sizeof(gid_t);
}

int plug_peer_init(const struct plug_config *config, int fd,
		   struct plug_peer *ret, struct plug_why *why)
{
	gid_t groups[PLUG_GROUPS_MAX + 1];
	const struct config *s = config->service;
	struct ucred cred = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
	socklen_t len = sizeof(cred);
	size_t n;

	*ret = (struct plug_peer){ .uid = (uid_t)-1 };
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return plug_refuse(why, "the plug is no local socket");
	ret->uid = cred.uid;
	if (!s) {
		ret->may_bring = true;
		return 0;
	}
	n = plug_peer_groups(fd, cred.gid, groups);
	ret->may_bring = config_who_has(&s->bring, cred.uid, groups, n);
	ret->may_name = ret->may_bring ||
			config_who_has(&s->name, cred.uid, groups, n);
	ret->may_upgrade = cred.uid == 0 || cred.uid == config->own_uid;
	return ret->may_upgrade ? 0 : plug_peer_may_run(config, ret, why);
}

int plug_peer_may_run(const struct plug_config *config,
		      const struct plug_peer *peer, struct plug_why *why)
{
	if (config->service && !peer->may_name)
		return plug_refuse(why, "uid %u may not use this service: its configuration lists who may (allow_policy_uid, allow_named_uid and their groups in [plug])",
				   (unsigned)peer->uid);
	return 0;
}

/* --- compiling ------------------------------------------------------------------ */

/* What is kept free for the last line. */
#define PLUG_MORE_SIZE	80

struct plug_diags {
	struct plug_why *why;
	size_t n;		/* bytes in use */
	unsigned untold;	/* that there was no room for */
};

static void plug_on_diag(void *arg, const struct rules_diag *diag)
{
	struct plug_diags *d = arg;
	char column[16] = "";
	size_t room = sizeof(d->why->text) - PLUG_MORE_SIZE - d->n;
	int n;

	if (diag->severity != RULES_ERROR)
		return;
	if (diag->column > 0 &&
	    snprintf(column, sizeof(column), ":%u", diag->column) < 0)
		column[0] = '\0';
	n = snprintf(d->why->text + d->n, room, "%s%s:%u%s: %s",
		     d->n ? "\n" : "", diag->file, diag->line, column,
		     diag->message);
	if (d->untold == 0 && n > 0 && (size_t)n < room) {
		d->n += (size_t)n;
		return;
	}
	d->why->text[d->n] = '\0';
	d->untold++;
}

/* Whole lines, and how many more there are. */
static void plug_end_diags(struct plug_diags *d)
{
	if (d->untold == 0)
		return;
	if (snprintf(d->why->text + d->n, sizeof(d->why->text) - d->n,
		     "%sand %u more errors: penstock policy check tells them "
		     "all", d->n ? "\n" : "", d->untold) < 0)
		d->why->text[d->n] = '\0';
}

int plug_compile(const char *name, struct str text, bool observe,
		 struct ruleset **ret, struct plug_why *why)
{
	struct plug_diags diags = { .why = why };
	struct ruleset *rules = NULL;
	int err;

	why->text[0] = '\0';
	err = rules_compile_text(text, name, plug_on_diag, &diags, &rules);
	plug_end_diags(&diags);
	if (err == -EINVAL && why->text[0] != '\0')
		return -EPROTO;
	if (err < 0)
		return plug_refuse(why, "%s: cannot compile the policy: %s",
				   name, strerror(-err));
	if (observe)
		rules_set_observe(rules);
	*ret = rules;
	return 0;
}

int plug_suits(const struct parents *parents, const struct ruleset *rules,
	       struct plug_why *why)
{
	char words[PARENTS_WHY_SIZE];

	if (parents_suit(parents, rules, words))
		return 0;
	return plug_refuse(why, "%s", words);
}

int plug_peer_brought(const struct plug_config *config, int fd, uint32_t flags,
		      struct ruleset **ret, struct plug_why *why)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PLUG_POLICY_MAX);
	CLEANUP(rules_unrefp) struct ruleset *rules = NULL;
	int err = plug_read_policy(fd, &text, why);

	if (err == 0)
		err = plug_compile(PLUG_BROUGHT_NAME, buf_str(&text),
				   flags & PLUG_FLAG_OBSERVE, &rules, why);
	if (err == 0)
		err = plug_suits(config->parents, rules, why);
	if (err < 0)
		return err;
	*ret = rules;
	rules = NULL;
	return 0;
}

int plug_peer_named(const struct policy *policy, uint32_t flags,
		    struct ruleset **ret, struct plug_why *why)
{
	if (!(flags & PLUG_FLAG_OBSERVE))
		*ret = rules_ref(policy->rules);
	else if (rules_observing(policy->rules, ret) < 0)
		return plug_refuse(why, "out of memory");
	return 0;
}

static int plug_policy_by_name(const struct plug_config *config,
			       const struct plug_open *open,
			       struct ruleset **ret, struct plug_why *why)
{
	const struct policy *p = config->policies ?
		policies_find(config->policies, str_from(open->policy)) : NULL;

	if (p && !p->gone)
		return plug_peer_named(p, open->flags, ret, why);
	return plug_refuse(why, "the service has no policy '%s': its configuration names their directory ('policies' in [plug])",
			   open->policy);
}

int plug_peer_policy(const struct plug_config *config,
		     const struct plug_peer *peer,
		     const struct plug_open *open, int fd,
		     struct ruleset **ret, struct plug_why *why)
{
	if (!peer->may_bring && (fd >= 0 || open->flags & PLUG_FLAG_OBSERVE))
		return plug_refuse(why, "uid %u may name a policy of the service but not bring one or observe: name one, or be listed in allow_policy_uid",
				   (unsigned)peer->uid);
	if (fd >= 0)
		return plug_peer_brought(config, fd, open->flags, ret, why);
	return plug_policy_by_name(config, open, ret, why);
}
