//go:build cgo && linux

// A provider without a device behind it: what is posted has completed. A PingPong on it
// takes what this package adds to a round trip: the clock, the translation both ways
// and the calls into a provider.

#include <stdlib.h>

#include "lib.h"

struct null {
	struct va_context context;
	struct va_qp qp;
	struct va_cq cq;
	uint64_t wr_id;
	int opcode;
	int ready;
};

// What completes is told by IBTA 11.4.2.1; an immediate makes no difference to the sender.
static const int completion_of[] = {
	[VA_WR_SEND] = VA_WC_SEND,
	[VA_WR_SEND_IMM] = VA_WC_SEND,
	[VA_WR_WRITE] = VA_WC_WRITE,
	[VA_WR_WRITE_IMM] = VA_WC_WRITE,
	[VA_WR_READ] = VA_WC_READ,
	[VA_WR_FETCH_ADD] = VA_WC_FETCH_ADD,
	[VA_WR_CMP_SWAP] = VA_WC_CMP_SWAP,
};

static int post_send(struct va_qp *q, struct va_send_wr *wr, struct va_send_wr **bad) {
	struct null *d = (struct null *)q->context;
	(void)bad;
	for (; wr; wr = wr->next) {
		d->wr_id = wr->wr_id;
		d->opcode = completion_of[wr->opcode];
		d->ready = 1;
	}
	return 0;
}

static int poll_cq(struct va_cq *c, int max, struct va_wc *wc) {
	struct null *d = (struct null *)c->context;
	if (!d->ready || max < 1)
		return 0;
	d->ready = 0;
	*wc = (struct va_wc){.wr_id = d->wr_id, .status = VA_WC_SUCCESS, .opcode = d->opcode, .qp_num = 1};
	return 1;
}

struct vb_qp *vb_null(struct vb_table *t, struct vb_cq **cq) {
	struct null *d = calloc(1, sizeof *d);
	struct vb_qp *q = calloc(1, sizeof *q);
	struct vb_cq *c = calloc(1, sizeof *c);
	if (!d || !q || !c || vb_init_queue(&q->sq, VB_SQ, 16) || vb_enlist(t, &q->sq)) {
		if (q)
			free(q->sq.ring);
		free(c);
		free(q);
		free(d);
		return NULL;
	}
	d->context.ops.post_send = post_send;
	d->context.ops.poll_cq = poll_cq;
	d->qp.context = d->cq.context = &d->context;
	q->qp = &d->qp;
	q->sq.qp_num = d->qp.qp_num = 1;
	c->cq = &d->cq;
	c->table = t;
	*cq = c;
	return q;
}

void vb_null_free(struct vb_qp *q, struct vb_cq *c) {
	vb_unlist(q, c->table);
	free(q->qp->context); // the first member of all that the provider has
	free(q->sq.ring);
	free(q);
	free(c);
}
