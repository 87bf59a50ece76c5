/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_dns.c - what a policy says of DNS beside names
 *
 * Types of questions that are not for addresses are channels: their answers hold
 * what the owner of a zone pleases.  So each is opened by its name, by a rule or
 * for all that is allowed, and there are types that nothing opens: those of the
 * protocol itself, and those without a use in a sandbox.
 */
#include "rules/rules_ast.h"
#include "rules/rules_parse.h"
#include "rules/ruleset.h"

#define QTYPE_A		1
#define QTYPE_AAAA	28

/* A type's bit is its place. */
static const struct rules_type {
	const char *name;
	uint16_t qtype;
} types[] = {
	{ "NS", 2 },		/* RFC 1035 */
	{ "PTR", 12 },
	{ "MX", 15 },
	{ "TXT", 16 },
	{ "SRV", 33 },		/* RFC 2782 */
	{ "SVCB", 64 },		/* RFC 9460 */
	{ "HTTPS", 65 },
	{ "CAA", 257 },		/* RFC 8659 */
};

uint32_t rules_type_bit(uint16_t qtype)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (types[i].qtype == qtype)
			return BIT(i);
	}
	return 0;
}

uint16_t rules_type_by_name(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (str_ieq(name, str_from(types[i].name)))
			return types[i].qtype;
	}
	return 0;
}

const char *rules_type_name(uint32_t bit)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (bit == BIT(i))
			return types[i].name;
	}
	return "";
}

const char *rules_type_fault(struct str word)
{
	if (rules_type_by_name(word) || str_ieq(word, STR("A")) ||
	    str_ieq(word, STR("AAAA")))
		return NULL;
	if (str_ieq(word, STR("ANY")) ||
	    str_ieq(word, STR("AXFR")) ||
	    str_ieq(word, STR("NULL")))
		return "is a type that no policy opens; name those that are "
		       "needed";
	return "is no type that a policy can open; there are TXT, MX, SRV, NS, "
	       "PTR, CAA, HTTPS and SVCB, beside A and AAAA";
}

const struct rules_dns *rules_dns(const struct ruleset *rs)
{
	return &rs->dns;
}

/* --- compiling ------------------------------------------------------------ */

static bool is_key(const struct ast_setting *s, const char *section,
		   const char *key)
{
	return strcmp(s->section, section) == 0 && strcmp(s->key, key) == 0;
}

bool rules_has_ipv6(const struct ruleset *rs, const struct ip_hosts *hosts)
{
	switch (rs->dns.ipv6) {
	case RULES_IPV6_ON:
		return true;
	case RULES_IPV6_OFF:
		return false;
	case RULES_IPV6_AUTO:
		break;
	}
	return !hosts || !hosts->no_ipv6;
}

static uint32_t types_of(struct str value)
{
	uint32_t bits = 0;
	struct str word;

	while (str_word(&value, &word))
		bits |= rules_type_bit(rules_type_by_name(word));
	return bits;
}

static void compile_dns(struct ruleset *rs, const struct ast_setting *s)
{
	if (is_key(s, "dns", "answers"))
		rs->dns.answers = str_eq(s->value, STR("real")) ?
			RULES_ANSWERS_REAL : RULES_ANSWERS_SYNTHETIC;
	else if (is_key(s, "dns", "ipv6"))
		rs->dns.ipv6 = str_eq(s->value, STR("on")) ? RULES_IPV6_ON :
			str_eq(s->value, STR("off")) ? RULES_IPV6_OFF :
			RULES_IPV6_AUTO;
	else if (is_key(s, "dns", "denied"))
		rs->dns.refused = str_eq(s->value, STR("refused"));
	else if (is_key(s, "dns", "types"))
		rs->types |= types_of(s->value);
}

void rules_compile_settings(struct ruleset *rs, const struct rules_ast *ast)
{
	for (const struct ast_setting *s = ast->settings; s; s = s->next) {
		compile_dns(rs, s);
		if (strcmp(s->section, "limits") == 0)
			rules_limits_take(&rs->limits, s->key, s->value);
	}
}
