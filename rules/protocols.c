/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protocols.c - the protocols that a rule may name, and their own ports
 *
 * The speech decides how a flow begins.  Only https and http are spoken by the
 * client first in a form that names the host; in all the others either the
 * server may speak first or TLS is agreed on later (STARTTLS), so that waiting
 * for first bytes would hold the flow up for ever.
 *
 * Ports are IANA's (service name registry).  Several protocols may share one;
 * then the first in the table is what the port alone means.
 */
#include "base/ini.h"
#include "rules/rules.h"
#include "rules/rules_value.h"

static const struct rules_protocol protocols[] = {
	{ "tcp",	0,	SPEECH_OPAQUE },	/* first: see below */
	{ "https",	443,	SPEECH_TLS },
	{ "http",	80,	SPEECH_HTTP },
	{ "ssh",	22,	SPEECH_OPAQUE },
	{ "git",	9418,	SPEECH_OPAQUE },
	{ "rsync",	873,	SPEECH_OPAQUE },
	{ "postgres",	5432,	SPEECH_OPAQUE },
	{ "mysql",	3306,	SPEECH_OPAQUE },
	{ "mssql",	1433,	SPEECH_OPAQUE },
	{ "oracle",	1521,	SPEECH_OPAQUE },
	{ "mongodb",	27017,	SPEECH_OPAQUE },
	{ "redis",	6379,	SPEECH_OPAQUE },
	{ "memcached",	11211,	SPEECH_OPAQUE },
	{ "cassandra",	9042,	SPEECH_OPAQUE },
	{ "amqp",	5672,	SPEECH_OPAQUE },
	{ "amqps",	5671,	SPEECH_TLS },
	{ "kafka",	9092,	SPEECH_OPAQUE },
	{ "nats",	4222,	SPEECH_OPAQUE },
	{ "mqtt",	1883,	SPEECH_OPAQUE },
	{ "mqtts",	8883,	SPEECH_TLS },
	{ "smtp",	25,	SPEECH_OPAQUE },
	{ "submission",	587,	SPEECH_OPAQUE },
	{ "submissions", 465,	SPEECH_TLS },
	{ "imap",	143,	SPEECH_OPAQUE },
	{ "imaps",	993,	SPEECH_TLS },
	{ "pop3",	110,	SPEECH_OPAQUE },
	{ "pop3s",	995,	SPEECH_TLS },
	{ "ldap",	389,	SPEECH_OPAQUE },
	{ "ldaps",	636,	SPEECH_TLS },
	{ "xmpp",	5222,	SPEECH_OPAQUE },
	{ "irc",	6667,	SPEECH_OPAQUE },
	{ "ircs",	6697,	SPEECH_TLS },
	{ "whois",	43,	SPEECH_OPAQUE },
	{ "svn",	3690,	SPEECH_OPAQUE },
};

static const struct rules_protocol *const tcp = &protocols[0];

const struct rules_protocol *rules_protocol_by_name(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		if (str_eq(name, str_from(protocols[i].name)))
			return &protocols[i];
	}
	return NULL;
}

const struct rules_protocol *rules_protocol_by_port(uint16_t port)
{
	for (size_t i = 0; port != 0 && i < ARRAY_SIZE(protocols); i++) {
		if (protocols[i].port == port)
			return &protocols[i];
	}
	return tcp;
}

const struct rules_protocol *rules_protocol_at(size_t index)
{
	return index < ARRAY_SIZE(protocols) ? &protocols[index] : NULL;
}

const char *rules_protocol_near(struct str name)
{
	const char *words[ARRAY_SIZE(protocols) + 1];

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		words[i] = protocols[i].name;
	words[ARRAY_SIZE(protocols)] = NULL;
	return ini_did_you_mean(name, words);
}
