/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_idn.c - what a person writes, as the DNS and lists of suffixes know it
 *
 * The home of libidn2 and libpsl.  The list of suffixes is the one that is built
 * into the library: the daemon that compiles has no files.
 */
#include "rules/host_idn.h"

#include <errno.h>
#include <idn2.h>
#include <libpsl.h>

#include "base/utf8.h"

/* No rule of the list has more labels, so a longer name is no suffix. */
#define SUFFIX_LABELS_MAX	6

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EINVAL;
}

/* Ideographic, full-width and half-width stops, which IDNA takes for dots. */
static bool is_foreign_dot(uint32_t cp)
{
	return cp == 0x3002 || cp == 0xff0e || cp == 0xff61;
}

static int look_at(struct str text, bool *ret_ascii, const char **ret_why)
{
	uint32_t cp;
	size_t n;

	*ret_ascii = true;
	for (size_t i = 0; i < text.n; i += n) {
		n = utf8_next(str_make(text.p + i, text.n - i), &cp);
		if (n == 0)
			return refuse(ret_why, "is not valid UTF-8");
		if (cp < 0x80)
			continue;
		*ret_ascii = false;
		if (is_foreign_dot(cp))
			return refuse(ret_why, "has a dot of another script in "
				      "it; write '.'");
		if (utf8_is_hidden(cp))
			return refuse(ret_why, "has an invisible character in "
				      "it; take it out");
	}
	return 0;
}

/* Each label that was not ASCII must have become an A-label. */
static bool has_a_labels(struct str given, struct str made)
{
	struct str g, m;

	while (str_cut(&given, '.', &g)) {
		bool ascii = true;

		if (!str_cut(&made, '.', &m))
			return false;
		for (size_t i = 0; i < g.n; i++)
			ascii &= (unsigned char)g.p[i] < 0x80;
		if (!ascii && !str_starts(m, STR("xn--")))
			return false;
	}
	return true;
}

static int convert(const char *text, struct host_name *ret,
		   const char **ret_why)
{
	uint8_t *made = NULL;
	int rc = idn2_lookup_u8((const uint8_t *)text, &made,
				IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
	int err = 0;

	if (rc == IDN2_MALLOC)
		return -ENOMEM;
	if (rc != IDN2_OK)
		return refuse(ret_why, "is no name that can be registered: "
			      "IDNA (RFC 5891) forbids one of its letters, or "
			      "the way they are mixed");
	if (!has_a_labels(str_from(text), str_from((const char *)made)))
		err = refuse(ret_why, "spells ASCII letters in another way; "
			     "write them in ASCII");
	else if (host_name_parse(str_from((const char *)made), ret) < 0)
		err = refuse(ret_why, "is no host name once it is written in "
			     "A-labels (\"xn--...\")");
	idn2_free(made);
	return err;
}

int host_idn_parse(struct str text, struct host_name *ret,
		   const char **ret_why)
{
	/* A letter has up to four bytes, and a name no more letters. */
	char copy[4 * HOST_NAME_MAX_LEN + 1];
	bool ascii;
	int err = look_at(text, &ascii, ret_why);

	if (err)
		return err;
	if (ascii)
		return -ENOENT;
	if (text.n >= sizeof(copy))
		return refuse(ret_why, "is longer than the 253 bytes of a DNS "
			      "name");
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	return convert(copy, ret, ret_why);
}

bool host_is_public_suffix(struct str name)
{
	char copy[HOST_NAME_MAX_LEN + 1];
	unsigned labels = 1;

	for (size_t i = 0; i < name.n; i++)
		labels += name.p[i] == '.';
	if (labels == 1)
		return true;
	if (labels > SUFFIX_LABELS_MAX || name.n > HOST_NAME_MAX_LEN)
		return false;
	memcpy(copy, name.p, name.n);
	copy[name.n] = '\0';
	return psl_is_public_suffix(psl_builtin(), copy) == 1;
}
