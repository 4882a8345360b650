//go:build cgo && linux

// The page of mmap offsets that siw's queues cannot have. Queues of siw are mapped
// into the process, each at an offset that the kernel names. libsiw takes 0x90000 for
// "none" (SIW_INVAL_UOBJ_KEY of rdma/siw-abi.h), but to the kernel it is an offset like
// others: pages are given out first fit (rdma_user_mmap_entry_insert), so when all in
// front of it are taken, every further queue is made there, refused by libsiw without
// an errno, and destroyed, until an older queue goes. A context of connections with
// eight pages each ends at the eighteenth.

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib.h"

// Commands of rdma/ib_user_verbs.h: libsiw gives the file no queue for that page, so
// one has to be made without it. It is never mapped or used, and ends with the file.
enum { CMD_CREATE_CQ = 18, CMD_DESTROY_CQ = 20 };
enum { NO_KEY = 0x90000, MOST_FILLERS = 256 };

struct command {
	uint32_t command;
	uint16_t in_words, out_words;
	uint64_t response;
};

struct create_cq {
	struct command c;
	uint64_t user_handle;
	uint32_t cqe, comp_vector;
	int32_t comp_channel;
	uint32_t reserved;
};

struct create_cq_resp {
	uint32_t handle, cqe;
	uint32_t cq_id, num_cqe; // struct siw_uresp_create_cq
	uint64_t key;
};

struct destroy_cq {
	struct command c;
	uint32_t handle, reserved;
};

struct destroy_cq_resp {
	uint32_t comp_events, async_events;
};

static int tell(int fd, void *in, size_t in_len, uint32_t command, void *out, size_t out_len) {
	*(struct command *)in = (struct command){command, in_len / 4, out_len / 4, (uintptr_t)out};
	return write(fd, in, in_len) == (ssize_t)in_len;
}

static int make_filler(int fd, struct create_cq_resp *r) {
	struct create_cq in = {.cqe = 1, .comp_channel = -1};
	memset(r, 0, sizeof *r);
	return tell(fd, &in, sizeof in, CMD_CREATE_CQ, r, sizeof *r);
}

static void end_filler(int fd, uint32_t handle) {
	struct destroy_cq in = {.handle = handle};
	struct destroy_cq_resp out;
	tell(fd, &in, sizeof in, CMD_DESTROY_CQ, &out, sizeof out);
}

// Fillers go into the holes in front of the page first: where a queue pair's second
// half was to have it, its first half has left one.
static int fill(int fd) {
	struct create_cq_resp r;
	uint32_t handles[MOST_FILLERS];
	int n = 0, filled = 0;
	while (!filled && n < MOST_FILLERS && make_filler(fd, &r)) {
		if (r.key == NO_KEY)
			filled = 1;
		else
			handles[n++] = r.handle;
		if (r.key > NO_KEY)
			break; // somebody has the page
	}
	while (n > 0)
		end_filler(fd, handles[--n]);
	return filled;
}

int vb_fill_key(struct vb_table *t, struct va_context *ctx) {
	if (errno || !t->no_key || t->filled)
		return 0;
	t->filled = fill(ctx->cmd_fd);
	errno = 0;
	return t->filled;
}

// A message that nobody keeps books of: it is never signalled, and what fails has a
// number that leads to no queue.
int vb_nudge(struct vb_qp *q) {
	struct va_send_wr *bad, wr = {.opcode = VA_WR_WRITE};
	return q->qp->context->ops.post_send(q->qp, &wr, &bad);
}

void vb_has_no_key(struct vb_table *t) { t->no_key = 1; }
