/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_fuzz.c - any bytes as a launcher's message: what passes is ended, sane
 *               and says of descriptors what came
 */
#include <stdint.h>

#include "proxy/plug_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_text(const char *text, size_t cap)
{
	size_t len = strnlen(text, cap), i;

	REQUIRE(len < cap);
	for (i = 0; i < len; i++)
		REQUIRE(text[i] > ' ' && text[i] < 0x7f && text[i] != '"' &&
			text[i] != '/' && text[i] != '\\');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str msg = str_make(data, n);
	int from[16] = { 0 }, fd[PLUG_FDS];
	struct plug_open o;
	struct plug_swap s;
	struct plug_why why = { "" };
	size_t nfds, placed = 0, i;

	if (plug_parse_head(msg, &why) < 0)
		REQUIRE(why.text[0] && strnlen(why.text, sizeof(why.text)) <
			sizeof(why.text));
	for (nfds = 0; nfds <= PLUG_FDS; nfds++)
		if (plug_parse_swap(msg, nfds, &s, &why) == 0)
			REQUIRE(nfds == 1 && s.serial != 0 &&
				n == sizeof(s));
	for (nfds = 0; nfds <= PLUG_FDS; nfds++) {
		if (plug_parse_open(msg, nfds, &o, &why) < 0)
			continue;
		check_text(o.run, sizeof(o.run));
		check_text(o.sandbox, sizeof(o.sandbox));
		check_text(o.nonce, sizeof(o.nonce));
		check_text(o.policy, sizeof(o.policy));
		plug_place_fds(&o, from, fd);
		for (i = 0; i < PLUG_FDS; i++)
			placed += fd[i] >= 0;
		REQUIRE(placed == nfds);
	}
	return 0;
}
