/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shed.c - what the daemon and its two helpers each give up, by isolate.h
 */
#include "proxy/shed.h"

#include <linux/capability.h>
#include <string.h>

#include "base/log.h"

static int shed_said(int err, const char *what)
{
	if (err < 0)
		log_error("%s: %s", what, strerror(-err));
	return err;
}

int shed_rights(const struct isolate_ids *ids)
{
	const char *what = "";
	int err = isolate_drop(ids, &what);

	if (err == 0)
		err = isolate_limits(&what);
	return shed_said(err, what);
}

int shed_files(bool binds)
{
	const char *what = "";
	bool active;
	int err = isolate_files(binds, &active, &what);

	if (err == 0 && !active)
		log_info("no Landlock here: files are closed off by the system call filter alone");
	return shed_said(err, what);
}

int shed_calls(enum isolate_who who)
{
	const char *what = "";
	int err = isolate_seal(who, &what);

	return shed_said(err, what);
}

int shed_for_broker(void *ids)
{
	int err = shed_rights(ids);

	return err < 0 ? err : shed_calls(ISOLATE_BROKER);
}

int shed_for_marker(void *ids)
{
	const char *what = "";
	int err = isolate_drop_but(ids, CAP_NET_RAW, &what);

	if (err == 0)
		err = isolate_limits(&what);
	err = shed_said(err, what);
	return err < 0 ? err : shed_calls(ISOLATE_MARKER);
}
