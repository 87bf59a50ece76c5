# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += %D%/architecture.md %D%/design.md %D%/reasons.md
