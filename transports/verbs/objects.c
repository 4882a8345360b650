//go:build cgo && linux

// Queues and what they stand on: made and destroyed one at a time, under the
// device's mutex.

#include <errno.h>
#include <stdlib.h>

#include "lib.h"

struct vb_table *vb_new_table(void) { return calloc(1, sizeof(struct vb_table)); }
void vb_free_table(struct vb_table *t) { free(t); }

// Creation and destruction are serialised by the caller.
int vb_enlist(struct vb_table *t, struct vb_queue *q) {
	for (uint32_t i = 0; i < TABLE_SIZE; i++) {
		uint32_t slot = t->next++ % TABLE_SIZE;
		if (t->queue[slot])
			continue;
		q->key = (uint64_t)++t->generation[slot] << 48 | (uint64_t)slot << 32;
		__atomic_store_n(&t->queue[slot], q, __ATOMIC_RELEASE);
		return 0;
	}
	return ENOSPC;
}

static void unlist(struct vb_table *t, struct vb_queue *q) {
	if (q->ring && t->queue[q->key >> 32 & (TABLE_SIZE - 1)] == q)
		__atomic_store_n(&t->queue[q->key >> 32 & (TABLE_SIZE - 1)], NULL, __ATOMIC_RELEASE);
}

int vb_init_queue(struct vb_queue *q, enum vb_kind kind, uint32_t depth) {
	uint32_t size = 1;
	while (size < depth + 1) // one more for a drain marker
		size <<= 1;
	q->kind = kind;
	q->depth = depth;
	q->mask = size - 1;
	q->ring = calloc(size, sizeof *q->ring);
	return q->ring ? 0 : ENOMEM;
}

struct vb_cq *vb_create_cq(struct va_context *ctx, struct vb_table *t, int depth, int *err) {
	struct vb_cq *c = calloc(1, sizeof *c);
	if (!c) {
		*err = ENOMEM;
		return NULL;
	}
	c->table = t;
	errno = 0;
	c->channel = vb_verbs.create_comp_channel(ctx);
	if (c->channel) {
		do {
			errno = 0;
			c->cq = vb_verbs.create_cq(ctx, depth, NULL, c->channel, 0);
		} while (!c->cq && vb_fill_key(t, ctx));
	}
	if (!c->cq) {
		*err = errno ? errno : VB_UNSAID;
		if (c->channel)
			vb_verbs.destroy_comp_channel(c->channel);
		free(c);
		return NULL;
	}
	*err = vb_nonblock(c->channel->fd);
	return c;
}

int vb_destroy_cq(struct vb_cq *c) {
	if (c->unacked)
		vb_verbs.ack_cq_events(c->cq, c->unacked);
	c->unacked = 0;
	int err = vb_verbs.destroy_cq(c->cq);
	if (err)
		return err < 0 ? errno : err;
	vb_verbs.destroy_comp_channel(c->channel);
	free(c);
	return 0;
}

struct vb_qp *vb_create_qp(struct va_pd *pd, struct vb_table *t, struct vb_cq *send, struct vb_cq *recv, struct vb_srq *srq,
	uint32_t send_depth, uint32_t recv_depth, const struct va_qp_cap *cap, int sig_all, uint32_t told_from, int pad_recv, uint64_t serial, int *err) {
	struct vb_qp *q = calloc(1, sizeof *q);
	struct va_qp_init_attr a = {.qp_context = (void *)(uintptr_t)serial, .send_cq = send->cq, .recv_cq = recv->cq, .srq = srq ? srq->srq : NULL, .cap = *cap,
		.qp_type = VA_QPT_RC, .sq_sig_all = sig_all};
	*err = ENOMEM;
	if (!q)
		return NULL;
	q->rq.pad_recv = pad_recv;
	q->sq.sig_all = sig_all ? VB_SIGNALED : 0;
	q->sq.told_from = told_from;
	if (vb_init_queue(&q->sq, VB_SQ, send_depth) || (!srq && vb_init_queue(&q->rq, VB_RQ, recv_depth)))
		goto fail;
	if ((*err = vb_enlist(t, &q->sq)) || (!srq && (*err = vb_enlist(t, &q->rq))))
		goto fail;
	do {
		errno = 0;
		q->qp = vb_verbs.create_qp(pd, &a);
	} while (!q->qp && vb_fill_key(t, pd->context));
	if (q->qp) {
		q->sq.qp_num = q->rq.qp_num = q->qp->qp_num;
		*err = 0;
		return q;
	}
	*err = errno ? errno : VB_UNSAID;
fail:
	vb_unlist(q, t);
	free(q->sq.ring);
	free(q->rq.ring);
	free(q);
	return NULL;
}

void vb_unlist(struct vb_qp *q, struct vb_table *t) {
	unlist(t, &q->sq);
	unlist(t, &q->rq);
}

int vb_destroy_qp(struct vb_qp *q) {
	int err = vb_verbs.destroy_qp(q->qp);
	if (err)
		return err < 0 ? errno : err;
	free(q->sq.ring);
	free(q->rq.ring);
	free(q);
	return 0;
}

struct vb_srq *vb_create_srq(struct va_pd *pd, struct vb_table *t, uint32_t depth, uint32_t sge, int pad_recv, int *err) {
	struct vb_srq *s = calloc(1, sizeof *s);
	struct va_srq_init_attr a = {.attr = {.max_wr = depth, .max_sge = sge}};
	*err = ENOMEM;
	if (!s)
		return NULL;
	s->q.pad_recv = pad_recv;
	if (vb_init_queue(&s->q, VB_SRQ, depth) || (*err = vb_enlist(t, &s->q)))
		goto fail;
	for (uint32_t i = 0; i <= s->q.mask; i++)
		s->q.ring[i].next = i + 1;
	do {
		errno = 0;
		s->srq = vb_verbs.create_srq(pd, &a);
	} while (!s->srq && vb_fill_key(t, pd->context));
	if (s->srq) {
		*err = 0;
		return s;
	}
	*err = errno ? errno : VB_UNSAID;
fail:
	unlist(t, &s->q);
	free(s->q.ring);
	free(s);
	return NULL;
}

int vb_destroy_srq(struct vb_srq *s, struct vb_table *t) {
	int err = vb_verbs.destroy_srq(s->srq);
	if (err)
		return err < 0 ? errno : err;
	unlist(t, &s->q);
	free(s->q.ring);
	free(s);
	return 0;
}
