/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_judge.c - what is known of a question's answer before anybody is asked
 */
#include "resolver/dns_judge.h"

/* Types that ask for no record of a name, or are a channel and nothing else. */
static bool type_is_refused(uint16_t type)
{
	return type == 0 || type == DNS_TYPE_OPT || type == DNS_TYPE_NULL ||
	       (type >= DNS_TYPE_META_FIRST && type <= DNS_TYPE_META_LAST);
}

bool dns_judge_type(const struct ruleset *rules, struct str host,
		    uint16_t type, int64_t now)
{
	const uint32_t bit = rules_type_bit(type);

	if (type == DNS_TYPE_A || type == DNS_TYPE_AAAA)
		return true;
	return bit != 0 && (rules_name_types(rules, host, now) & bit);
}

static void set(struct dns_judgement *j, enum dns_rcode rcode,
		enum reason reason)
{
	j->rcode = rcode;
	j->reason = reason;
}

static void judge_local(struct dns_judgement *j)
{
	switch (j->local.kind) {
	case DNS_LOCAL_ADDRESS:
	case DNS_LOCAL_PTR:
		set(j, DNS_NOERROR, REASON_ALLOWED);
		return;
	case DNS_LOCAL_NODATA:
		set(j, DNS_NOERROR, REASON_DNS_NO_ADDRESS);
		return;
	case DNS_LOCAL_NXDOMAIN:
	case DNS_LOCAL_REVERSE:
		set(j, DNS_NXDOMAIN, REASON_DNS_NXDOMAIN);
		return;
	case DNS_LOCAL_SHUT:
	case DNS_LOCAL_NOT:
		break;
	}
	set(j, DNS_NXDOMAIN, REASON_HOST_NOT_ALLOWED);
}

/*
 * DNS-09: is a name that a deny rule has above one that a wildcard allows?  A
 * wildcard has every name below it, so that one stands for all.
 */
static bool leads_on(const struct ruleset *rules, struct str host, int64_t now)
{
	char text[DNS_TEXT_MAX + 1] = "_.";
	struct rules_answer below;

	if (host.n + 2 > DNS_TEXT_MAX)
		return false;
	memcpy(text + 2, host.p, host.n);
	return rules_judge_name(rules, str_make(text, host.n + 2), now,
				&below) == RULES_NAME_ALLOWED;
}

enum rules_name_verdict dns_judge_name(const struct ruleset *rules,
				       struct str host, int64_t now,
				       struct rules_answer *ret)
{
	enum rules_name_verdict v = rules_judge_name(rules, host, now, ret);

	if (v == RULES_NAME_ALLOWED && ret->would_deny &&
	    dns_local_hidden(host)) {
		ret->would_deny = false;
		v = RULES_NAME_DENIED;
	}
	if (v == RULES_NAME_DENIED && ret->reason == REASON_HOST_DENIED &&
	    leads_on(rules, host, now))
		v = RULES_NAME_ANCESTOR;
	return v;
}

enum dns_rcode dns_judge_rcode(const struct ruleset *rules,
			       enum rules_name_verdict v)
{
	if (v != RULES_NAME_DENIED)
		return DNS_NOERROR;
	return rules_dns(rules)->refused ? DNS_REFUSED : DNS_NXDOMAIN;
}

static enum dns_judge judge_host(const struct dns_local_names *names,
				 struct str host, uint16_t type, int64_t now,
				 struct dns_judgement *j)
{
	dns_local_find(names, host, type, &j->local);
	/* The name of a public address is the world's, where PTR is open. */
	if (j->local.kind == DNS_LOCAL_REVERSE && type == DNS_TYPE_PTR &&
	    dns_judge_type(names->rules, host, type, now))
		j->local.kind = DNS_LOCAL_NOT;
	if (j->local.kind != DNS_LOCAL_NOT) {
		judge_local(j);
		return DNS_JUDGE_LOCAL;
	}
	j->name = dns_judge_name(names->rules, host, now, &j->verdict);
	if (j->name != RULES_NAME_ALLOWED) {
		set(j, dns_judge_rcode(names->rules, j->name),
		    j->verdict.reason);
		return DNS_JUDGE_POLICY;
	}
	if (type == DNS_TYPE_AAAA &&
	    !rules_has_ipv6(names->rules, names->hosts)) {
		/* DNS-06: empty, since an error would take A away as well. */
		set(j, DNS_NOERROR, REASON_DNS_NO_ADDRESS);
		return DNS_JUDGE_NO_IPV6;
	}
	if (dns_judge_type(names->rules, host, type, now))
		return DNS_JUDGE_WORLD;
	set(j, DNS_NOERROR, REASON_TYPE_NOT_ALLOWED);
	return DNS_JUDGE_TYPE_OFF;
}

enum dns_judge dns_judge(const struct dns_local_names *names,
			 const struct dns_question *q, int64_t now,
			 struct host_name *ret_host, struct dns_judgement *ret)
{
	ret_host->n = 0;
	ret->name = RULES_NAME_DENIED;
	ret->verdict = (struct rules_answer){ .reason = REASON_ALLOWED };
	if (q->klass != DNS_CLASS_IN) {
		set(ret, DNS_REFUSED, REASON_TYPE_NOT_ALLOWED);
		return DNS_JUDGE_CLASS;
	}
	if (type_is_refused(q->type)) {
		set(ret, DNS_REFUSED, REASON_TYPE_NOT_ALLOWED);
		return DNS_JUDGE_TYPE;
	}
	if (q->text_n == 0) {
		set(ret, DNS_NOERROR, REASON_TYPE_NOT_ALLOWED);
		return DNS_JUDGE_ROOT;
	}
	if (!q->plain || host_name_parse(dns_question_text(q), ret_host) != 0) {
		ret_host->n = 0;
		set(ret, dns_judge_rcode(names->rules, RULES_NAME_DENIED),
		    REASON_HOST_NOT_ALLOWED);
		return DNS_JUDGE_NO_HOST;
	}
	return judge_host(names, host_name_str(ret_host), q->type, now, ret);
}
