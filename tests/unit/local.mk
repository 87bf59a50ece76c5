# SPDX-License-Identifier: Apache-2.0
# One list a folder, so that each is kept beside the code that it tests.
include tests/unit/base.mk
include tests/unit/rules.mk
include tests/unit/audit.mk
include tests/unit/resolver.mk
include tests/unit/proxy.mk
include tests/unit/proxy_data.mk
include tests/unit/proxy_parse.mk
include tests/unit/netns.mk
include tests/unit/cli.mk
