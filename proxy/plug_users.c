/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_users.c - what one user of the machine may take of a service
 *
 * Each run has limits, and whoever may have runs could have enough of them to
 * leave nothing to others.  So a user has just so many connections to the plug,
 * each a run or about to be one; and what all of them hold counts as the user's
 * own share before it counts for everybody (struct quota_whole).
 *
 * Root is not bounded: what starts runs for others is often root's, and who is
 * root can stop the service anyway.  Main thread only.
 */
#include "proxy/plug_users.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "proxy/config.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"
#include "proxy/worker.h"

static struct plug_user *user_of(struct list *users, uid_t uid)
{
	struct list *it, *tmp;

	list_each(users, it, tmp) {
		struct plug_user *u = container_of(it, struct plug_user, node);

		if (u->uid == uid)
			return u;
	}
	return NULL;
}

/* What it says, or half of what there is, if that is bounded. */
static size_t share_of(size_t said, size_t all)
{
	return said ? said : (all + 1) / 2;
}

static struct plug_user *user_new(struct list *users,
				  const struct plug_config *config, uid_t uid)
{
	struct plug_user *u = mem_new(sizeof(*u));
	const struct config *s = config->service;
	struct quota_whole *whole;

	if (!u)
		return NULL;
	whole = config->worker[0]->whole;
	u->uid = uid;
	u->share.whole = whole;
	u->share.why = REASON_USER_EXCEEDED;
	u->share.max = (uint32_t)share_of(s->connections_per_uid,
					  s->connections);
	u->share.memory.whole = whole ? &whole->memory : NULL;
	u->share.memory.why = REASON_USER_EXCEEDED;
	atomic_store(&u->share.memory.limit,
		     share_of(s->memory_per_uid, s->memory));
	list_add(users, &u->node);
	return u;
}

int plug_user_enter(struct list *users, const struct plug_config *config,
		    uid_t uid, struct plug_user **ret, struct plug_why *why)
{
	struct plug_user *u;
	unsigned max;

	*ret = NULL;
	if (!config->service || uid == 0)
		return 0;
	max = config->service->runs_per_uid ? config->service->runs_per_uid
					    : PLUG_RUNS_PER_UID;
	u = user_of(users, uid);
	if (u && u->conns >= max)
		return plug_refuse(why, "uid %u has %u runs here, as many as one user may: wait until one of them ends, or have 'runs_per_uid' in [plug] of the service's configuration raised",
				   (unsigned)uid, u->conns);
	return plug_user_rejoin(users, config, uid, ret, why);
}

int plug_user_rejoin(struct list *users, const struct plug_config *config,
		     uid_t uid, struct plug_user **ret, struct plug_why *why)
{
	struct plug_user *u;

	*ret = NULL;
	if (!config->service || uid == 0)
		return 0;
	u = user_of(users, uid);
	if (!u)
		u = user_new(users, config, uid);
	if (!u) {
		(void)!plug_refuse(why, "the service is out of memory: try again later");
		return -ENOMEM;
	}
	u->conns++;
	*ret = u;
	return 0;
}

int plug_user_quota(struct plug_user *user, const struct ruleset *rules,
		    struct quota **ret, struct plug_why *why)
{
	*ret = NULL;
	if (user && quota_new(rules, &user->share, ret) < 0)
		return plug_refuse(why, "the service is out of memory: try again later");
	return 0;
}

void plug_user_leave(struct plug_user *user)
{
	if (!user || --user->conns > 0)
		return;
	list_del(&user->node);
	mem_free(user);
}
