# SPDX-License-Identifier: Apache-2.0
# check_PROGRAMS of tests/unit and tests/fuzz, and the scripts of tests/lint.
include tests/unit/local.mk
include tests/fuzz/local.mk
include tests/lint/local.mk
EXTRA_DIST += %D%/README.md %D%/catalogue-notes.md

include tests/e2e/local.mk
