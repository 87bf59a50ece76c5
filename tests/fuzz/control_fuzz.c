/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_fuzz.c - any bytes as a question to a launcher: what passes is a
 *                  whole PLUG_SWAP of our version, with a number
 */
#include <stdint.h>
#include <string.h>

#include "netns-setup/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct plug_swap m;

	for (size_t nfds = 0; nfds < 4; nfds++) {
		uint32_t serial = control_parse(str_make(data, n), nfds);

		if (serial == 0)
			continue;
		REQUIRE(n == sizeof(m) && nfds <= 1);
		memcpy(&m, data, sizeof(m));
		REQUIRE(m.head.magic == PLUG_MAGIC && m.reserved == 0);
		REQUIRE(m.head.version == PLUG_VERSION);
		REQUIRE(m.head.type == PLUG_SWAP && m.serial == serial);
	}
	return 0;
}
