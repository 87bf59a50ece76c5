/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp.c - a table of system calls becomes a loaded filter
 *
 * The home of libseccomp.  libseccomp knows (arg & mask) == value but not its
 * negation; "some bit under the mask differs" is the same, so a negated test
 * becomes one rule for each bit of its mask.
 */
#include "base/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define ARGS_MAX	3

static uint32_t action(enum seccomp_do act, int err)
{
	switch (act) {
	case SECCOMP_DO_ALLOW:
		return SCMP_ACT_ALLOW;
	case SECCOMP_DO_ERRNO:
		return SCMP_ACT_ERRNO((uint32_t)err);
	case SECCOMP_DO_KILL:
		break;
	}
	return SCMP_ACT_KILL_PROCESS;
}

static struct scmp_arg_cmp compare(const struct seccomp_arg *a)
{
	struct scmp_arg_cmp cmp = {
		.arg = a->index,
		.op = SCMP_CMP_MASKED_EQ,
		.datum_a = a->mask,
		.datum_b = a->value,
	};

	if (a->negate) {
		cmp.op = SCMP_CMP_NE;
		cmp.datum_a = a->value;
		cmp.datum_b = 0;
	}
	return cmp;
}

static int add_one(scmp_filter_ctx ctx, const struct seccomp_rule *r, int nr,
		   const struct scmp_arg_cmp *cmp)
{
	int err = seccomp_rule_add_array(ctx, action(r->act, r->err), nr,
					 r->nargs, cmp);

	return err == -EEXIST ? 0 : err;
}

/* As add_one() for each rule in which test @at is "a bit differs". */
static int add_differing(scmp_filter_ctx ctx, const struct seccomp_rule *r,
			 int nr, struct scmp_arg_cmp *cmp, unsigned at)
{
	const struct seccomp_arg *a = &r->arg[at];

	for (uint64_t bit = 1; bit; bit <<= 1) {
		int err;

		if (!(a->mask & bit))
			continue;
		cmp[at].op = SCMP_CMP_MASKED_EQ;
		cmp[at].datum_a = bit;
		cmp[at].datum_b = ~a->value & bit;
		err = add_one(ctx, r, nr, cmp);
		if (err)
			return err;
	}
	return 0;
}

static bool is_partly_negated(const struct seccomp_arg *a)
{
	return a->negate && a->mask != UINT64_MAX;
}

static int add_rule(scmp_filter_ctx ctx, const struct seccomp_rule *r, int nr)
{
	struct scmp_arg_cmp cmp[ARGS_MAX];
	unsigned differing = ARGS_MAX;

	if (r->nargs > ARGS_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < r->nargs; i++) {
		const struct seccomp_arg *a = &r->arg[i];

		/* A value outside its mask could never be met. */
		if (a->index > 5 || a->mask == 0 || (a->value & ~a->mask))
			return -EINVAL;
		cmp[i] = compare(a);
		if (!is_partly_negated(a))
			continue;
		if (differing < ARGS_MAX)
			return -EINVAL;
		differing = i;
	}
	if (differing == ARGS_MAX)
		return add_one(ctx, r, nr, cmp);
	return add_differing(ctx, r, nr, cmp, differing);
}

/*
 * The number of @r's system call in @ret; negative when this architecture
 * lacks it.  A name that this libseccomp has never heard of is an error where
 * the rule would restrict what is otherwise allowed: passing over it would
 * leave a door open that the table says is shut.
 */
static int resolve(const struct seccomp_policy *p, const struct seccomp_rule *r,
		   int *ret)
{
	int nr = seccomp_syscall_resolve_name(r->syscall);

	if (nr == __NR_SCMP_ERROR && p->otherwise == SECCOMP_DO_ALLOW &&
	    r->act != SECCOMP_DO_ALLOW)
		return -ENOSYS;
	*ret = nr;
	return 0;
}

static int add_rules(scmp_filter_ctx ctx, const struct seccomp_policy *p,
		     const char **ret_what)
{
	uint32_t otherwise = action(p->otherwise, p->otherwise_err);

	for (size_t i = 0; i < p->n; i++) {
		const struct seccomp_rule *r = &p->rule[i];
		int nr, err;

		err = resolve(p, r, &nr);
		/* libseccomp takes no rule that does what is done anyway. */
		if (!err && nr >= 0 && action(r->act, r->err) != otherwise)
			err = add_rule(ctx, r, nr);
		if (err) {
			*ret_what = r->syscall;
			return err;
		}
	}
	return 0;
}

static int set_attributes(scmp_filter_ctx ctx)
{
	static const struct {
		enum scmp_filter_attr attr;
		uint32_t value;
	} wanted[] = {
		{ SCMP_FLTATR_API_SYSRAWRC, 1 },	/* errno as it was */
		{ SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS },
		{ SCMP_FLTATR_CTL_NNP, 1 },
		{ SCMP_FLTATR_CTL_TSYNC, 1 },
		{ SCMP_FLTATR_CTL_OPTIMIZE, 2 },	/* binary tree */
	};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		int err = seccomp_attr_set(ctx, wanted[i].attr,
					   wanted[i].value);

		if (err)
			return err;
	}
	return 0;
}

static void ctx_releasep(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

/* @ret is set, also on failure, when there is a context to release. */
static int build(const struct seccomp_policy *p, scmp_filter_ctx *ret,
		 const char **ret_what)
{
	int err;

	*ret_what = "seccomp_init";
	*ret = seccomp_init(action(p->otherwise, p->otherwise_err));
	if (!*ret)
		return -ENOMEM;
	*ret_what = "seccomp_attr_set";
	err = set_attributes(*ret);
	return err ? err : add_rules(*ret, p, ret_what);
}

int seccomp_load_policy(const struct seccomp_policy *p, const char **ret_what)
{
	CLEANUP(ctx_releasep) scmp_filter_ctx ctx = NULL;
	int err = build(p, &ctx, ret_what);

	if (err)
		return err;
	*ret_what = "seccomp_load";
	return seccomp_load(ctx);
}

/* The whole of @fd as instructions. */
static int read_program(int fd, struct sock_filter **ret_prog, size_t *ret_n)
{
	struct sock_filter *prog;
	struct stat st;
	size_t n;

	if (fstat(fd, &st))
		return -errno;
	n = (size_t)st.st_size / sizeof(*prog);
	if (n == 0 || n > BPF_MAXINSNS)
		return -E2BIG;
	prog = mem_new_array(n, sizeof(*prog));
	if (!prog)
		return -ENOMEM;
	if (pread(fd, prog, n * sizeof(*prog), 0) !=
	    (ssize_t)(n * sizeof(*prog))) {
		mem_free(prog);
		return -EIO;
	}
	*ret_prog = prog;
	*ret_n = n;
	return 0;
}

int seccomp_compile(const struct seccomp_policy *p,
		    struct sock_filter **ret_prog, size_t *ret_n,
		    const char **ret_what)
{
	CLEANUP(ctx_releasep) scmp_filter_ctx ctx = NULL;
	CLEANUP(fd_closep) int fd = -1;
	int err = build(p, &ctx, ret_what);

	if (err)
		return err;
	*ret_what = "memfd_create";
	fd = memfd_create("seccomp", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_what = "seccomp_export_bpf";
	err = seccomp_export_bpf(ctx, fd);
	return err ? err : read_program(fd, ret_prog, ret_n);
}

int seccomp_load_compiled(const struct sock_filter *prog, size_t n)
{
	struct sock_fprog program = {
		.len = (unsigned short)n,
		.filter = (struct sock_filter *)(uintptr_t)prog,
	};
	long result;

	if (n == 0 || n > BPF_MAXINSNS)
		return -E2BIG;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			 SECCOMP_FILTER_FLAG_TSYNC, &program);
	if (result < 0)
		return -errno;
	/* A thread that could not be given the filter is named. */
	return result == 0 ? 0 : -ESRCH;
}
