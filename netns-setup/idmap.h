/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap.h - which ids the sandbox has, inside and on the host
 *
 * Two user namespaces, one in the other:
 *
 *	U1  owns the network and mount namespaces; its root is the setup
 *	    process, and nothing of the command ever runs in it
 *	U2  is the command's; whatever it holds there is void over U1's things
 *
 *	            host                U1              U2 (command)
 *	user        caller              0               caller's own numbers
 *	  map-root  caller [+ subids]   0 [1..]         0 [1..]
 *	root        ID_HOST_BASE..      0..65535        1000, or SUDO_UID's number
 *	  map-root  ID_HOST_BASE..      0..65535        0..65535
 *
 * So nothing inside ever has the host's uid 0, and under root no id of a real
 * user either.
 */
#ifndef NETNS_SETUP_IDMAP_H
#define NETNS_SETUP_IDMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "netns-setup/launch.h"

/*
 * Where the ids of root's sandboxes begin on the host, and how many there are.
 * Far above what adduser, systemd's dynamic users (61184..65519), its
 * containers (524288..1879048191) and subuid's defaults (100000..600100000)
 * give out.  Where /etc/subuid has given the range away, the next is tried.
 */
#define ID_HOST_BASE	0x7a000000u
#define ID_HOST_TRIES	5
#define ID_COUNT	65536u
/* The private daemon's id under root: above its own sandboxes' range. */
#define ID_DAEMON	(ID_COUNT + 1)

struct id_range {
	uint32_t start, count;
};

struct id_plan {
	bool privileged;	/* we may map what is not ours */
	bool map_root;
	bool many;		/* U1 has more ids than one */
	uid_t caller_uid;
	gid_t caller_gid;
	uint32_t base;		/* host id of U1's 0; privileged only */
	struct id_range sub_uid, sub_gid;	/* user with map_root; count 0: none */
	uid_t uid;		/* the command's, as it sees itself */
	gid_t gid;
};

/**
 * id_plan_make() - Decide, from who we are and what the system grants
 * @spec:	its map_root, uid and gid
 * @ret_note:	NULL, or a line about what the plan lacks
 */
NODISCARD int id_plan_make(const struct launch_spec *spec, struct id_plan *ret,
			   const char **ret_note, struct launch_error *err);

/* What an id inside is in U1's numbers: for owners of mounts made there. */
uint32_t id_in_setup(const struct id_plan *plan, uint32_t inside);
/* And on the host; for idmapped mounts. */
uint32_t id_on_host(const struct id_plan *plan, uint32_t inside);
/* The private daemon's uid and gid; 0 where it keeps the caller's. */
uint32_t id_of_daemon(const struct id_plan *plan);

/* From outside: the maps of U1, whose first process is @pid. */
NODISCARD int id_map_setup(const struct id_plan *plan, pid_t pid,
			   struct launch_error *err);
/* From U1: the maps of U2; /proc is the sandbox's own. */
NODISCARD int id_map_command(const struct id_plan *plan, pid_t pid,
			     struct launch_error *err);
/* In U1, mapped: become its root, with no other group. */
NODISCARD int id_become_setup(const struct id_plan *plan,
			      struct launch_error *err);

/**
 * id_map_mount() - A user namespace that shifts one owner for a mount
 * @uid, @gid:	on disk; they appear as the command's
 * @ret_fd:	for mount_setattr(MOUNT_ATTR_IDMAP)
 */
NODISCARD int id_map_mount(const struct id_plan *plan, uid_t uid, gid_t gid,
			   int *ret_fd);

/* The ranges that @text (/etc/subuid) grants to @uid or @name; for tests. */
struct id_range id_sub_range(struct str text, uid_t uid, struct str name);
bool id_sub_overlaps(struct str text, struct id_range range);

#endif /* NETNS_SETUP_IDMAP_H */
