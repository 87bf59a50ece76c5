# SPDX-License-Identifier: Apache-2.0
lint_tests = \
	%D%/banned.py \
	%D%/headers.py \
	%D%/layers.py \
	%D%/names.py \
	%D%/reasons.py \
	%D%/selftest.py \
	%D%/sizes.py \
	%D%/style.py
TESTS += $(lint_tests)
EXTRA_DIST += $(lint_tests) %D%/lint.py %D%/exempt.txt

# The lints alone; they need nothing built but config.h.
lint: config.h
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(lint_tests)'
