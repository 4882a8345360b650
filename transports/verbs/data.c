//go:build cgo && linux

// The data path. A work request goes to the device under a number of our own:
// the queue's key and its place in the queue's ring. The completion leads back
// by it to the caller's ID without a search, tells the receive from the send
// although a failed completion has no opcode, and cannot be taken for one of
// a later queue with the same QP number.

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

// wr_id: 16 bits generation, 16 bits queue, 32 bits place.
enum { TABLE_BITS = 16, TABLE_SIZE = 1 << TABLE_BITS };

struct vb_table {
	struct vb_queue *queue[TABLE_SIZE];
	uint16_t generation[TABLE_SIZE];
	uint32_t next;
};

struct vb_table *vb_new_table(void) { return calloc(1, sizeof(struct vb_table)); }
void vb_free_table(struct vb_table *t) { free(t); }

// Creation and destruction are serialised by the caller.
static int enlist(struct vb_table *t, struct vb_queue *q) {
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

static struct vb_queue *lookup(struct vb_table *t, uint64_t wr_id) {
	struct vb_queue *q = __atomic_load_n(&t->queue[wr_id >> 32 & (TABLE_SIZE - 1)], __ATOMIC_ACQUIRE);
	return q && q->key >> 32 == wr_id >> 32 ? q : NULL;
}

static int init_queue(struct vb_queue *q, enum vb_kind kind, uint32_t depth) {
	uint32_t size = 1;
	while (size < depth + 1) // one more for a beacon
		size <<= 1;
	q->kind = kind;
	q->depth = depth;
	q->mask = size - 1;
	q->ring = calloc(size, sizeof *q->ring);
	return q->ring ? 0 : ENOMEM;
}

// A completion frees its place and all before it (IBTA 10.7.3.1).
static void retire(struct vb_queue *q, uint32_t place) {
	uint32_t head = q->head;
	if (place - head < q->tail - head)
		__atomic_store_n(&q->head, place + 1, __ATOMIC_RELEASE);
}

static void spin_lock(char *lock) {
	for (int spins = 0; __atomic_test_and_set(lock, __ATOMIC_ACQUIRE);)
		if (++spins % 128 == 0)
			sched_yield();
}

static void spin_unlock(char *lock) { __atomic_clear(lock, __ATOMIC_RELEASE); }

static const uint8_t status_of[] = {
	[VA_WC_SUCCESS] = 0,
	[VA_WC_LOC_LEN_ERR] = 1,
	[VA_WC_LOC_QP_OP_ERR] = 2,
	[VA_WC_LOC_PROT_ERR] = 3,
	[VA_WC_WR_FLUSH_ERR] = 4,
	[VA_WC_BAD_RESP_ERR] = 5,
	[VA_WC_LOC_ACCESS_ERR] = 6,
	[VA_WC_REM_INV_REQ_ERR] = 7,
	[VA_WC_REM_ACCESS_ERR] = 8,
	[VA_WC_REM_OP_ERR] = 9,
	[VA_WC_RETRY_EXC_ERR] = 10,
	[VA_WC_RNR_RETRY_EXC_ERR] = 11,
	[VA_WC_REM_ABORT_ERR] = 12,
	[VA_WC_FATAL_ERR] = 13,
	[VA_WC_RESP_TIMEOUT_ERR] = 10,
	[VA_WC_GENERAL_ERR] = 14,
};

enum { STATUS_FLUSH = 4, STATUS_GENERAL = 14 };

// Opcodes and flags of rdma.WC.
enum { WC_SEND, WC_WRITE, WC_READ, WC_FETCH_ADD, WC_CMP_SWAP, WC_LOCAL_INV, WC_RECV, WC_RECV_WRITE_IMM };
enum { WITH_IMM = 1, WITH_INV = 2 };

static uint8_t status(int s) {
	if (s == VA_WC_SUCCESS)
		return 0;
	if (s > 0 && s < (int)sizeof status_of && status_of[s])
		return status_of[s];
	return STATUS_GENERAL;
}

static void success(struct vb_wc *o, const struct va_wc *w) {
	switch (w->opcode) {
	case VA_WC_RECV:
	case VA_WC_RECV_WRITE_IMM:
		o->opcode = w->opcode == VA_WC_RECV ? WC_RECV : WC_RECV_WRITE_IMM;
		o->byte_len = w->byte_len;
		if (w->wc_flags & VA_WC_WITH_IMM) {
			o->imm = ntohl(w->imm_data);
			o->flags = WITH_IMM;
		} else if (w->wc_flags & VA_WC_WITH_INV) {
			o->inv_key = w->imm_data;
			o->flags = WITH_INV;
		}
		return;
	case VA_WC_WRITE:
		o->opcode = WC_WRITE;
		return;
	case VA_WC_READ:
		o->opcode = WC_READ;
		break;
	case VA_WC_FETCH_ADD:
		o->opcode = WC_FETCH_ADD;
		break;
	case VA_WC_CMP_SWAP:
		o->opcode = WC_CMP_SWAP;
		break;
	default:
		o->opcode = WC_SEND;
		return;
	}
	o->byte_len = w->byte_len;
}

// translate is false for what the application never posted.
static int translate(struct vb_cq *c, struct vb_wc *o, const struct va_wc *w) {
	struct vb_queue *q = lookup(c->table, w->wr_id);
	if (!q)
		return 0; // of a queue that is gone
	uint32_t place = (uint32_t)w->wr_id;
	struct vb_entry *e = &q->ring[place & q->mask];
	memset(o, 0, sizeof *o);
	o->id = e->id;
	o->status = status(w->status);
	o->qp_num = q->kind == VB_SRQ ? w->qp_num : q->qp_num;
	if (!o->status)
		success(o, w);
	else {
		o->vendor_err = w->vendor_err;
		o->opcode = q->kind == VB_SQ ? WC_SEND : WC_RECV;
	}
	if (q->kind == VB_SRQ) {
		spin_lock(&q->lock);
		if (e->flags) { // else a second completion of the same receive
			e->flags = 0;
			e->next = q->free_place;
			q->free_place = place;
			q->used--;
		}
		spin_unlock(&q->lock);
		return 1;
	}
	int beacon = e->flags & VB_BEACON;
	retire(q, place);
	if (beacon)
		q->drained = 1;
	return !beacon;
}

int vb_poll(struct vb_cq *c, struct vb_wc *out, int max) {
	int (*poll)(struct va_cq *, int, struct va_wc *) = c->cq->context->ops.poll_cq;
	int got = 0;
	while (got < max) {
		int want = max - got < VB_BATCH ? max - got : VB_BATCH;
		int n = poll(c->cq, want, c->wc);
		if (n < 0)
			return got ? got : -1;
		for (int i = 0; i < n; i++)
			got += translate(c, &out[got], &c->wc[i]);
		if (n < want)
			break;
	}
	return got;
}

static const uint8_t wr_opcode[] = {
	VA_WR_SEND, 0xff, VA_WR_SEND_IMM, VA_WR_WRITE, VA_WR_WRITE_IMM, VA_WR_READ, VA_WR_FETCH_ADD, VA_WR_CMP_SWAP, 0xff,
};

// Bits of rdma.SendFlags: signaled, fence, solicited, inline.
static const uint8_t wr_flags[16] = {
#define F(i) ((i) & 1 ? VA_SEND_SIGNALED : 0) | ((i) & 2 ? VA_SEND_FENCE : 0) | ((i) & 4 ? VA_SEND_SOLICITED : 0) | ((i) & 8 ? VA_SEND_INLINE : 0)
	F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7), F(8), F(9), F(10), F(11), F(12), F(13), F(14), F(15),
#undef F
};

static void fill(struct va_send_wr *d, const struct vb_send *s) {
	d->sg_list = (struct va_sge *)s->sge; // the provider copies it during the post
	d->num_sge = s->num_sge;
	d->opcode = wr_opcode[s->op];
	d->send_flags = wr_flags[s->flags & 15];
	d->imm_data = htonl(s->imm);
	if (d->opcode == VA_WR_FETCH_ADD || d->opcode == VA_WR_CMP_SWAP) {
		d->wr.atomic.remote_addr = s->remote_addr;
		d->wr.atomic.compare_add = s->compare_add;
		d->wr.atomic.swap = s->swap;
		d->wr.atomic.rkey = s->rkey;
	} else {
		d->wr.rdma.remote_addr = s->remote_addr;
		d->wr.rdma.rkey = s->rkey;
	}
}

static uint32_t room(struct vb_queue *q) {
	uint32_t used = q->tail - __atomic_load_n(&q->head, __ATOMIC_ACQUIRE);
	return used < q->depth ? q->depth - used : 0; // a beacon stands beyond depth
}

// taken is how many requests of the list in front of bad the device took.
static int taken(const void *list, const void *bad, size_t size, int n) {
	ptrdiff_t off = (const char *)bad - (const char *)list;
	return bad && off >= 0 && off / (ptrdiff_t)size < n ? (int)(off / (ptrdiff_t)size) : 0;
}

struct vb_posted vb_post_send(struct vb_qp *q, const struct vb_send *w, int n) {
	struct vb_queue *s = &q->sq;
	struct vb_posted r = {0, 0};
	while (r.n < n) {
		uint32_t tail = s->tail, space = room(s);
		int k = n - r.n < VB_BATCH ? n - r.n : VB_BATCH;
		if (!space) {
			r.err = ENOMEM;
			return r;
		}
		if ((uint32_t)k > space)
			k = space;
		for (int i = 0; i < k; i++) {
			struct va_send_wr *d = &q->swr[i];
			struct vb_entry *e = &s->ring[(tail + i) & s->mask];
			fill(d, &w[r.n + i]);
			d->wr_id = s->key | (uint32_t)(tail + i);
			d->next = d + 1;
			e->id = w[r.n + i].id;
			e->flags = (w[r.n + i].flags & VB_LOUD) | s->sig_all;
		}
		q->swr[k - 1].next = NULL;
		// Before the device knows: completions may be polled while it posts.
		__atomic_store_n(&s->tail, tail + k, __ATOMIC_RELEASE);
		struct va_send_wr *bad = NULL;
		int err = q->qp->context->ops.post_send(q->qp, q->swr, &bad);
		if (err) {
			k = taken(q->swr, bad, sizeof *bad, k);
			__atomic_store_n(&s->tail, tail + k, __ATOMIC_RELEASE);
			r.err = err < 0 ? -err : err;
			r.n += k;
			return r;
		}
		r.n += k;
	}
	return r;
}

static void fill_recv(struct va_recv_wr *d, const struct vb_recv *s, struct va_sge *empty, int pad) {
	d->sg_list = (struct va_sge *)s->sge;
	d->num_sge = s->num_sge;
	if (pad && !s->num_sge) {
		d->sg_list = empty;
		d->num_sge = 1;
	}
	d->next = d + 1;
}

struct vb_posted vb_post_recv(struct vb_qp *q, const struct vb_recv *w, int n) {
	struct vb_queue *s = &q->rq;
	struct vb_posted r = {0, 0};
	while (r.n < n) {
		uint32_t tail = s->tail, space = room(s);
		int k = n - r.n < VB_BATCH ? n - r.n : VB_BATCH;
		if (!space) {
			r.err = ENOMEM;
			return r;
		}
		if ((uint32_t)k > space)
			k = space;
		for (int i = 0; i < k; i++) {
			struct vb_entry *e = &s->ring[(tail + i) & s->mask];
			fill_recv(&q->rwr[i], &w[r.n + i], &q->empty, s->pad_recv);
			q->rwr[i].wr_id = s->key | (uint32_t)(tail + i);
			e->id = w[r.n + i].id;
			e->flags = VB_LOUD;
		}
		q->rwr[k - 1].next = NULL;
		__atomic_store_n(&s->tail, tail + k, __ATOMIC_RELEASE);
		struct va_recv_wr *bad = NULL;
		int err = q->qp->context->ops.post_recv(q->qp, q->rwr, &bad);
		if (err) {
			k = taken(q->rwr, bad, sizeof *bad, k);
			__atomic_store_n(&s->tail, tail + k, __ATOMIC_RELEASE);
			r.err = err < 0 ? -err : err;
			r.n += k;
			return r;
		}
		r.n += k;
	}
	return r;
}

// Receives of a shared queue complete in any order: their places are a free list.
struct vb_posted vb_post_srq(struct vb_srq *q, const struct vb_recv *w, int n) {
	struct vb_queue *s = &q->q;
	struct vb_posted r = {0, 0};
	while (r.n < n) {
		int k = 0;
		spin_lock(&s->lock);
		for (; k < VB_BATCH && r.n + k < n && s->used < s->depth; k++) {
			uint32_t place = s->free_place;
			s->free_place = s->ring[place].next;
			s->used++;
			s->ring[place].id = w[r.n + k].id;
			s->ring[place].flags = VB_LOUD;
			fill_recv(&q->rwr[k], &w[r.n + k], &q->empty, s->pad_recv);
			q->rwr[k].wr_id = s->key | place;
		}
		spin_unlock(&s->lock);
		if (!k) {
			r.err = ENOMEM;
			return r;
		}
		q->rwr[k - 1].next = NULL;
		struct va_recv_wr *bad = NULL;
		int err = q->srq->context->ops.post_srq_recv(q->srq, q->rwr, &bad);
		if (err) {
			int good = taken(q->rwr, bad, sizeof *bad, k);
			spin_lock(&s->lock);
			for (int i = good; i < k; i++) {
				uint32_t place = (uint32_t)q->rwr[i].wr_id;
				s->ring[place].flags = 0;
				s->ring[place].next = s->free_place;
				s->free_place = place;
				s->used--;
			}
			spin_unlock(&s->lock);
			r.err = err < 0 ? -err : err;
			r.n += good;
			return r;
		}
		r.n += k;
	}
	return r;
}

// vb_beacon posts one more request to each queue, in ERR: when it completes
// flushed, everything in front of it has completed too.
int vb_beacon(struct vb_qp *q, int send, int recv) {
	int err = 0;
	if (send) {
		struct vb_queue *s = &q->sq;
		struct va_send_wr *bad, wr = {.wr_id = s->key | s->tail, .opcode = VA_WR_SEND, .send_flags = VA_SEND_SIGNALED};
		s->ring[s->tail & s->mask] = (struct vb_entry){.flags = VB_BEACON};
		__atomic_store_n(&s->tail, s->tail + 1, __ATOMIC_RELEASE);
		err = q->qp->context->ops.post_send(q->qp, &wr, &bad);
		if (err)
			__atomic_store_n(&s->tail, s->tail - 1, __ATOMIC_RELEASE);
	}
	if (recv) {
		struct vb_queue *s = &q->rq;
		struct va_recv_wr *bad, wr = {.wr_id = s->key | s->tail, .sg_list = &q->empty, .num_sge = s->pad_recv};
		s->ring[s->tail & s->mask] = (struct vb_entry){.flags = VB_BEACON};
		__atomic_store_n(&s->tail, s->tail + 1, __ATOMIC_RELEASE);
		int no = q->qp->context->ops.post_recv(q->qp, &wr, &bad);
		if (no) {
			__atomic_store_n(&s->tail, s->tail - 1, __ATOMIC_RELEASE);
			err = no;
		}
	}
	return err < 0 ? -err : err;
}

// vb_beacon_write is a beacon in RTS: a write of nothing, whose key and address
// nobody checks (IBTA C9-88).
int vb_beacon_write(struct vb_qp *q) {
	struct vb_queue *s = &q->sq;
	struct va_send_wr *bad, wr = {.wr_id = s->key | s->tail, .opcode = VA_WR_WRITE, .send_flags = VA_SEND_SIGNALED};
	s->drained = 0;
	s->ring[s->tail & s->mask] = (struct vb_entry){.flags = VB_BEACON};
	__atomic_store_n(&s->tail, s->tail + 1, __ATOMIC_RELEASE);
	int err = q->qp->context->ops.post_send(q->qp, &wr, &bad);
	if (err)
		__atomic_store_n(&s->tail, s->tail - 1, __ATOMIC_RELEASE);
	return err < 0 ? -err : err;
}

int vb_outstanding(struct vb_queue *q, int *loud) {
	uint32_t head = __atomic_load_n(&q->head, __ATOMIC_ACQUIRE);
	*loud = 0;
	for (uint32_t p = head; p != q->tail; p++)
		*loud += (q->ring[p & q->mask].flags & VB_LOUD) != 0;
	return q->tail - head;
}

int vb_leftover(struct vb_queue *q, struct vb_wc *o) {
	while (q->head != q->tail) {
		struct vb_entry *e = &q->ring[q->head++ & q->mask];
		if (!(e->flags & VB_LOUD))
			continue;
		memset(o, 0, sizeof *o);
		o->id = e->id;
		o->status = STATUS_FLUSH;
		o->qp_num = q->qp_num;
		o->opcode = q->kind == VB_SQ ? WC_SEND : WC_RECV;
		return 1;
	}
	return 0;
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
	if (c->channel)
		c->cq = vb_verbs.create_cq(ctx, depth, NULL, c->channel, 0);
	if (!c->cq) {
		*err = errno ? errno : EIO;
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

int vb_arm(struct vb_cq *c, int solicited_only) {
	int err = c->cq->context->ops.req_notify_cq(c->cq, solicited_only);
	return err < 0 ? errno : err;
}

int vb_take_event(struct vb_cq *c) {
	struct va_cq *cq;
	void *context;
	errno = 0;
	if (vb_verbs.get_cq_event(c->channel, &cq, &context))
		return errno ? errno : EIO;
	if (++c->unacked == 64) { // an acknowledgement takes a lock
		vb_verbs.ack_cq_events(c->cq, c->unacked);
		c->unacked = 0;
	}
	return 0;
}

struct vb_qp *vb_create_qp(struct va_pd *pd, struct vb_table *t, struct vb_cq *send, struct vb_cq *recv, struct vb_srq *srq,
	uint32_t send_depth, uint32_t recv_depth, const struct va_qp_cap *cap, int sig_all, int pad_recv, int *err) {
	struct vb_qp *q = calloc(1, sizeof *q);
	struct va_qp_init_attr a = {.send_cq = send->cq, .recv_cq = recv->cq, .srq = srq ? srq->srq : NULL, .cap = *cap,
		.qp_type = VA_QPT_RC, .sq_sig_all = sig_all};
	*err = ENOMEM;
	if (!q)
		return NULL;
	q->rq.pad_recv = pad_recv;
	q->sq.sig_all = sig_all ? VB_LOUD : 0;
	if (init_queue(&q->sq, VB_SQ, send_depth) || (!srq && init_queue(&q->rq, VB_RQ, recv_depth)))
		goto fail;
	if ((*err = enlist(t, &q->sq)) || (!srq && (*err = enlist(t, &q->rq))))
		goto fail;
	errno = 0;
	q->qp = vb_verbs.create_qp(pd, &a);
	if (q->qp) {
		q->sq.qp_num = q->rq.qp_num = q->qp->qp_num;
		*err = 0;
		return q;
	}
	*err = errno ? errno : EIO;
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
	if (init_queue(&s->q, VB_SRQ, depth) || (*err = enlist(t, &s->q)))
		goto fail;
	for (uint32_t i = 0; i <= s->q.mask; i++)
		s->q.ring[i].next = i + 1;
	errno = 0;
	s->srq = vb_verbs.create_srq(pd, &a);
	if (s->srq) {
		*err = 0;
		return s;
	}
	*err = errno ? errno : EIO;
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
