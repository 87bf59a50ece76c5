/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_users.h - what one user of the machine may take of a service
 */
#ifndef PROXY_PLUG_USERS_H
#define PROXY_PLUG_USERS_H

#include <sys/types.h>

#include "base/compiler.h"
#include "base/list.h"
#include "proxy/quota.h"

struct plug_config;
struct plug_why;

/* Where the configuration does not say: runs, and questions for a reload. */
#define PLUG_RUNS_PER_UID	1024

/* There as long as one of the user's connections is. */
struct plug_user {
	struct list node;
	uid_t uid;
	unsigned conns;
	struct quota_whole share;	/* of all of the user's runs */
};

/**
 * plug_user_enter() - One connection more of a user's
 * @users:	list of struct plug_user.node
 * @ret:	for plug_user_leave(); NULL where nothing is bounded: root's, and
 *		on a private plug
 * Return: 0, -EPROTO with @why, or -ENOMEM with it
 */
NODISCARD int plug_user_enter(struct list *users,
			      const struct plug_config *config, uid_t uid,
			      struct plug_user **ret, struct plug_why *why);
/* The same for a run that is there already: it is one more than there may be,
 * if need be. */
NODISCARD int plug_user_rejoin(struct list *users,
			       const struct plug_config *config, uid_t uid,
			       struct plug_user **ret, struct plug_why *why);
/* The counters of a run of the user's: as quota_new(); NULL for NULL. */
NODISCARD int plug_user_quota(struct plug_user *user,
			      const struct ruleset *rules, struct quota **ret,
			      struct plug_why *why);
void plug_user_leave(struct plug_user *user);	/* NULL is fine */

#endif /* PROXY_PLUG_USERS_H */
