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

static struct vb_queue *lookup(struct vb_table *t, uint64_t wr_id) {
	struct vb_queue *q = __atomic_load_n(&t->queue[wr_id >> 32 & (TABLE_SIZE - 1)], __ATOMIC_ACQUIRE);
	return q && q->key >> 32 == wr_id >> 32 ? q : NULL;
}

// waits tells a request that has a completion to come.
static int waits(const struct vb_entry *e) { return (e->flags & (VB_SIGNALED | VB_DONE)) == VB_SIGNALED; }

// taken tells whether a place holds a request that has not completed.
static int taken(struct vb_queue *q, uint32_t place) {
	uint32_t head = q->head;
	return place - head < __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) - head && !(q->ring[place & q->mask].flags & VB_DONE);
}

// A completion frees its place and those of the unsignaled requests before it (IBTA
// 10.7.3.1). A request that has a completion of its own to come keeps its place:
// siw completes sends before the reads in front of them.
static void retire(struct vb_queue *q, uint32_t place) {
	uint32_t head = q->head;
	q->ring[place & q->mask].flags |= VB_DONE;
	if ((int32_t)(place + 1 - q->done) > 0)
		q->done = place + 1;
	while (head != q->done && !waits(&q->ring[head & q->mask]))
		head++;
	__atomic_store_n(&q->head, head, __ATOMIC_RELEASE);
}

void vb_forget(struct vb_queue *q) {
	q->done = q->tail;
	__atomic_store_n(&q->head, q->tail, __ATOMIC_RELEASE);
	q->drained = q->lapsed = 0;
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

// give_back frees the place of a shared receive; false when it is free already.
static int give_back(struct vb_queue *q, uint32_t place) {
	struct vb_entry *e = &q->ring[place & q->mask];
	spin_lock(&q->lock);
	int was = e->flags;
	if (was) {
		e->flags = 0;
		e->next = q->free_place;
		q->free_place = place;
		q->used--;
	}
	spin_unlock(&q->lock);
	return was;
}

// vb_translate is false for what the application never posted, and for a second
// completion of the same request (siw flushes a read in progress twice).
int vb_translate(struct vb_cq *c, struct vb_wc *o, const struct va_wc *w) {
	struct vb_queue *q = lookup(c->table, w->wr_id);
	if (!q)
		return 0; // of a queue that is gone
	uint32_t place = (uint32_t)w->wr_id;
	struct vb_entry *e = &q->ring[place & q->mask];
	uint64_t id = e->id;
	if (q->kind == VB_SRQ) {
		if (!give_back(q, place))
			return 0;
	} else {
		if (!taken(q, place))
			return 0;
		int marker = e->flags & VB_DRAIN, unsignaled = !(e->flags & (VB_SIGNALED | VB_DRAIN));
		retire(q, place);
		if (unsignaled && w->status == VA_WC_SUCCESS)
			return 0; // signalled for the device's sake
		if (marker) {
			q->drained = 1;
			return 0;
		}
	}
	memset(o, 0, sizeof *o);
	o->id = id;
	o->status = status(w->status);
	o->qp_num = q->kind == VB_SRQ ? w->qp_num : q->qp_num;
	if (!o->status)
		success(o, w);
	else {
		o->vendor_err = w->vendor_err;
		o->opcode = q->kind == VB_SQ ? WC_SEND : WC_RECV;
	}
	return 1;
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
			got += vb_translate(c, &out[got], &c->wc[i]);
		if (n < want)
			break;
	}
	return got;
}

// before is how many requests of the list in front of bad the device took.
static int before(const void *list, const void *bad, size_t size, int n) {
	ptrdiff_t off = (const char *)bad - (const char *)list;
	return bad && off >= 0 && off / (ptrdiff_t)size < n ? (int)(off / (ptrdiff_t)size) : 0;
}

// put translates a request for the i-th place behind the tail.
static void put(struct vb_qp *q, int i, const struct vb_send *w) {
	struct vb_queue *s = &q->sq;
	uint32_t place = s->tail + i;
	struct va_send_wr *d = &q->swr[i];
	vb_fill(s, d, w);
	d->wr_id = s->key | place;
	d->next = d + 1;
	vb_enter(s, place, w);
}

// hand posts the k requests that were put, and n counts those that the device took.
static int hand(struct vb_qp *q, int k, int *n) {
	struct vb_queue *s = &q->sq;
	uint32_t tail = s->tail;
	struct va_send_wr *bad = NULL;
	q->swr[k - 1].next = NULL;
	// Before the device knows: completions may be polled while it posts.
	__atomic_store_n(&s->tail, tail + k, __ATOMIC_RELEASE);
	int err = q->qp->context->ops.post_send(q->qp, q->swr, &bad);
	if (err) {
		k = before(q->swr, bad, sizeof *bad, k);
		__atomic_store_n(&s->tail, tail + k, __ATOMIC_RELEASE);
	}
	*n += k;
	return err < 0 ? -err : err;
}

struct vb_posted vb_post_send(struct vb_qp *q, const struct vb_send *w, int n) {
	struct vb_posted r = {0, 0};
	vb_set_cancel();
	while (r.n < n && !r.err) {
		uint32_t space = vb_room(&q->sq);
		int k = n - r.n < VB_BATCH ? n - r.n : VB_BATCH;
		if (!space) {
			r.err = ENOMEM;
			break;
		}
		if ((uint32_t)k > space)
			k = space;
		for (int i = 0; i < k; i++)
			put(q, i, &w[r.n + i]);
		r.err = hand(q, k, &r.n);
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
		uint32_t tail = s->tail, space = vb_room(s);
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
			e->flags = VB_SIGNALED;
		}
		q->rwr[k - 1].next = NULL;
		__atomic_store_n(&s->tail, tail + k, __ATOMIC_RELEASE);
		struct va_recv_wr *bad = NULL;
		int err = q->qp->context->ops.post_recv(q->qp, q->rwr, &bad);
		if (err) {
			k = before(q->rwr, bad, sizeof *bad, k);
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
			s->ring[place].flags = VB_SIGNALED;
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
			int good = before(q->rwr, bad, sizeof *bad, k);
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

// vb_drain posts one more request to each queue, in ERR: when it completes
// flushed, everything in front of it has completed too.
int vb_drain(struct vb_qp *q, int send, int recv) {
	int err = 0;
	if (send) {
		struct vb_queue *s = &q->sq;
		struct va_send_wr *bad, wr = {.wr_id = s->key | s->tail, .opcode = VA_WR_SEND, .send_flags = VA_SEND_SIGNALED};
		s->ring[s->tail & s->mask] = (struct vb_entry){.flags = VB_DRAIN};
		__atomic_store_n(&s->tail, s->tail + 1, __ATOMIC_RELEASE);
		err = q->qp->context->ops.post_send(q->qp, &wr, &bad);
		if (err)
			__atomic_store_n(&s->tail, s->tail - 1, __ATOMIC_RELEASE);
	}
	if (recv) {
		struct vb_queue *s = &q->rq;
		struct va_recv_wr *bad, wr = {.wr_id = s->key | s->tail, .sg_list = &q->empty, .num_sge = s->pad_recv};
		s->ring[s->tail & s->mask] = (struct vb_entry){.flags = VB_DRAIN};
		__atomic_store_n(&s->tail, s->tail + 1, __ATOMIC_RELEASE);
		int no = q->qp->context->ops.post_recv(q->qp, &wr, &bad);
		if (no) {
			__atomic_store_n(&s->tail, s->tail - 1, __ATOMIC_RELEASE);
			err = no;
		}
	}
	return err < 0 ? -err : err;
}

// vb_drain_write is a drain marker in RTS: a write of nothing, whose key and address
// nobody checks (IBTA C9-88).
int vb_drain_write(struct vb_qp *q) {
	struct vb_queue *s = &q->sq;
	struct va_send_wr *bad, wr = {.wr_id = s->key | s->tail, .opcode = VA_WR_WRITE, .send_flags = VA_SEND_SIGNALED};
	s->drained = 0;
	s->ring[s->tail & s->mask] = (struct vb_entry){.flags = VB_DRAIN};
	__atomic_store_n(&s->tail, s->tail + 1, __ATOMIC_RELEASE);
	int err = q->qp->context->ops.post_send(q->qp, &wr, &bad);
	if (err)
		__atomic_store_n(&s->tail, s->tail - 1, __ATOMIC_RELEASE);
	return err < 0 ? -err : err;
}

static struct vb_posted hold(struct vb_queue *s, const void *list, size_t size, int n) {
	struct vb_posted r = {0, 0};
	for (; r.n < n && vb_room(s); r.n++) {
		uint64_t id;
		memcpy(&id, (const char *)list + r.n * size, sizeof id);
		s->ring[s->tail & s->mask] = (struct vb_entry){.id = id, .flags = VB_SIGNALED | VB_HELD};
		__atomic_store_n(&s->tail, s->tail + 1, __ATOMIC_RELEASE);
	}
	if (r.n < n)
		r.err = ENOMEM;
	return r;
}

struct vb_posted vb_hold_send(struct vb_qp *q, const struct vb_send *w, int n) { return hold(&q->sq, w, sizeof *w, n); }
struct vb_posted vb_hold_recv(struct vb_qp *q, const struct vb_recv *w, int n) { return hold(&q->rq, w, sizeof *w, n); }

static void flushed(struct vb_wc *o, struct vb_queue *q, struct vb_entry *e) {
	memset(o, 0, sizeof *o);
	o->id = e->id;
	o->status = STATUS_FLUSH;
	o->qp_num = q->qp_num;
	o->opcode = q->kind == VB_SQ ? WC_SEND : WC_RECV;
}

int vb_release(struct vb_queue *q, struct vb_wc *o) {
	uint32_t tail = __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE);
	for (uint32_t p = q->head; p != tail; p++) {
		struct vb_entry *e = &q->ring[p & q->mask];
		if (waits(e) && !(e->flags & VB_HELD) && !q->lapsed)
			return 0;
		if (waits(e)) {
			flushed(o, q, e);
			retire(q, p);
			return 1;
		}
	}
	return 0;
}

int vb_outstanding(struct vb_queue *q, int *signaled) {
	uint32_t head = __atomic_load_n(&q->head, __ATOMIC_ACQUIRE);
	*signaled = 0;
	for (uint32_t p = head; p != q->tail; p++)
		*signaled += waits(&q->ring[p & q->mask]);
	return q->tail - head;
}

int vb_leftover(struct vb_queue *q, struct vb_wc *o) {
	while (q->head != q->tail) {
		struct vb_entry *e = &q->ring[q->head++ & q->mask];
		if (!waits(e))
			continue;
		flushed(o, q, e);
		return 1;
	}
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
		return errno ? errno : VB_UNSAID;
	if (++c->unacked == 64) { // an acknowledgement takes a lock
		vb_verbs.ack_cq_events(c->cq, c->unacked);
		c->unacked = 0;
	}
	return 0;
}
