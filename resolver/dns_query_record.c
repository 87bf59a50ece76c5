/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_record.c - the record of a question, or one more count on another
 *
 * Theory
 * ======
 * A question whose equal was recorded within seconds is counted there
 * (dns_repeats.h), and has that one's id, so that the flows which its answer
 * leads to name a record that exists.  Which answer it will get is not known
 * when a name has to be given with an id; so a question is born with the id of
 * the one that was last asked in the same words, and when it turns out that the
 * two were not answered alike, it is renamed before the reply leaves.
 *
 * Counts leave through a timer of the door, when the policy changes and when
 * the door shuts.
 */
#include "resolver/dns_query_own.h"

#include <errno.h>
#include <event2/event.h>

#include "audit/writer.h"
#include "base/clock.h"
#include "resolver/dns_repeats.h"

/* Between two looks at what is over: some are told of together. */
#define REPEATS_STEP_MS		250

static struct dns_repeat_key query_key(const struct dns_query *q)
{
	return (struct dns_repeat_key){
		.name = dns_question_text(&q->q), .type = q->q.type,
		.tcp = q->client.tcp, .asked = q->client.asked,
		.hash = q->hash,
	};
}

void dns_query_identify(struct dns_query *q)
{
	struct dns_repeat_key key = query_key(q);

	key.hash = q->hash = dns_repeat_hash(&key);
	q->borrowed = dns_repeats_find(q->door->repeats, &key, &q->id,
				       &q->found);
	if (!q->borrowed)
		id_new(&q->id);
}

static void query_rename(struct dns_query *q, const struct id *id)
{
	q->borrowed = false;
	if (memcmp(&q->id, id, sizeof(q->id)) == 0)
		return;
	q->id = *id;
	dns_query_stamp(q);
}

void dns_query_own_id(struct dns_query *q)
{
	struct id id;

	if (!q->borrowed)
		return;
	id_new(&id);
	query_rename(q, &id);
}

/* Without a timer counts wait for the next question, or the end. */
static void repeats_watch(struct dns_door *d, int64_t in_ms)
{
	const struct timeval tv = {
		.tv_sec = in_ms / 1000, .tv_usec = in_ms % 1000 * 1000,
	};

	d->repeats_watched = event_add(&d->repeats_ev, &tv) == 0;
}

int dns_query_record(struct dns_query *q, struct record *r)
{
	const struct dns_repeat_key key = query_key(q);
	struct dns_door *d = q->door;
	int64_t now = q->start_ms + MAX(r->dur_ms, 0);
	struct id first;
	int err;

	(void)dns_repeats_close(d->repeats, now);
	/* What could not be recorded is not counted either. */
	if (audit_ok(d->sink) &&
	    dns_repeats_count(d->repeats, &key, &q->found, r, &first)) {
		query_rename(q, &first);
		return 0;
	}
	dns_query_own_id(q);
	r->id = q->id;
	err = audit_post(d->sink, r);
	if (err)
		return err;
	dns_repeats_add(d->repeats, &key, &q->found, r, now);
	if (!d->repeats_watched)
		repeats_watch(d, DNS_REPEAT_MS);
	return 0;
}

/* --- the door's side ------------------------------------------------------- */

static void repeats_tell(void *arg, const struct record *r)
{
	struct dns_door *d = arg;

	audit_tell(d->sink, r);
}

static void repeats_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_door *d = arg;
	int64_t now = clock_mono_ms(), next;

	(void)fd;
	(void)what;
	REQUIRE(d->magic == DNS_DOOR_MAGIC);
	d->repeats_watched = false;
	next = dns_repeats_close(d->repeats, now);
	if (next >= 0)
		repeats_watch(d, MAX(next - now, REPEATS_STEP_MS));
}

int dns_door_open_repeats(struct dns_door *d)
{
	if (evtimer_assign(&d->repeats_ev, d->base, repeats_cb, d) != 0)
		return -ENOMEM;
	return dns_repeats_new(DNS_REPEATS_BYTES, repeats_tell, d,
			       &d->repeats);
}

void dns_door_shut_repeats(struct dns_door *d)
{
	if (!d->repeats)
		return;
	event_del(&d->repeats_ev);
	dns_repeats_flush(d->repeats);
	dns_repeats_free(d->repeats);
	d->repeats = NULL;
}
