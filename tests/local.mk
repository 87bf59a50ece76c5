# SPDX-License-Identifier: Apache-2.0
# check_PROGRAMS of tests/unit and tests/fuzz, and the scripts of tests/lint.
include tests/unit/local.mk
include tests/fuzz/local.mk
include tests/lint/local.mk
# What read files of the tree: with them a tarball shows that it has all of those
# (scripts/check; the others need nothing but the sources that they are built of).
tests_of_tarball = $(FUZZ_TARGETS) $(CLI_CHECKS) tests/unit/penstockd_test.py \
	tests/unit/reasons_doc_test tests/unit/rules_manual_test
EXTRA_DIST += %D%/README.md %D%/catalogue-notes.md

include tests/e2e/local.mk
