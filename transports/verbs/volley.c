//go:build cgo && linux

// Steps of a ping-pong without a return to Go. A way out of Go and back costs
// what tens of polls cost, and in the plain loops it stands between an arrival and
// whoever waits for it. Requests are translated before the first step. The steps
// themselves are one function without calls of its own, but into the provider: a call
// costs little here, and ten times that where code is translated, in which every way
// back is a search.

#include <errno.h>

#include "lib.h"

#define unlikely(x) __builtin_expect(!!(x), 0)

// changed looks at a byte as often as takes about as long as ten polls of the CQ,
// which must be polled for what fails.
static inline int changed(const uint8_t *byte, uint8_t was) {
	for (int i = 0; i < 256; i++)
		if (__atomic_load_n(byte, __ATOMIC_ACQUIRE) != was)
			return 1;
	return 0;
}

// answers tells whether the prepared answer is one to what arrived.
static inline int answers(const struct vb_volley *v, const struct vb_wc *w) {
	const struct vb_send *a = &v->answer;
	if (w->id != v->expect)
		return 0;
	if (w->opcode == WC_RECV_WRITE_IMM)
		return w->imm == a->imm;
	return w->byte_len == (a->num_sge ? a->sge[0].length : 0);
}

// launch posts a translated request and takes the next place for it.
static inline int launch(struct vb_qp *q, struct va_send_wr *d, const struct vb_send *w) {
	struct vb_queue *s = &q->sq;
	uint32_t place = s->tail;
	struct vb_entry *e = &s->ring[place & s->mask];
	struct va_send_wr *bad;
	if (unlikely(place - __atomic_load_n(&s->head, __ATOMIC_ACQUIRE) >= s->depth))
		return ENOMEM;
	d->wr_id = s->key | place;
	e->id = w->id;
	e->flags = (w->flags & VB_LOUD) | s->sig_all;
	__atomic_store_n(&s->tail, place + 1, __ATOMIC_RELEASE); // before the device knows
	int err = q->qp->context->ops.post_send(q->qp, d, &bad);
	if (unlikely(err)) {
		__atomic_store_n(&s->tail, place, __ATOMIC_RELEASE);
		return err < 0 ? -err : err;
	}
	return 0;
}

// next tells whether the completion is a success of the oldest request of the queue,
// and nothing is special about it. Then its place is free.
static inline int next(struct vb_queue *s, const struct va_wc *w, struct vb_wc *o) {
	uint32_t place = (uint32_t)w->wr_id;
	struct vb_entry *e = &s->ring[place & s->mask];
	if (unlikely(w->status != VA_WC_SUCCESS || place != s->head || place != s->done || e->flags != VB_LOUD || place == __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE)))
		return 0;
	*o = (struct vb_wc){.id = e->id, .qp_num = s->qp_num};
	s->done = place + 1;
	__atomic_store_n(&s->head, place + 1, __ATOMIC_RELEASE);
	return 1;
}

// usual is vb_translate for what a ping-pong completes as a rule: 0 for the rest.
static inline int usual(struct vb_qp *q, const struct va_wc *w, struct vb_wc *o) {
	static const uint8_t sent[] = {[VA_WC_SEND] = WC_SEND, [VA_WC_WRITE] = WC_WRITE, [VA_WC_READ] = WC_READ};
	if ((w->wr_id ^ q->sq.key) >> 32 == 0) {
		if ((unsigned)w->opcode >= sizeof sent || !next(&q->sq, w, o))
			return 0;
		o->opcode = sent[w->opcode];
		if (w->opcode == VA_WC_READ)
			o->byte_len = w->byte_len;
		return 1;
	}
	if ((w->wr_id ^ q->rq.key) >> 32 || w->opcode != VA_WC_RECV || w->wc_flags & (VA_WC_WITH_IMM | VA_WC_WITH_INV) || !next(&q->rq, w, o))
		return 0;
	o->opcode = WC_RECV;
	o->byte_len = w->byte_len;
	return 1;
}

// run is vb_volley behind the preparation, with readings for times. The clock is read
// as soon as the provider said what came, or the byte has changed.
static struct vb_posted run(struct vb_qp *q, struct vb_cq *c, struct vb_volley *v, int steps, struct vb_wc *out, int max) {
	int (*const poll)(struct va_cq *, int, struct va_wc *) = c->cq->context->ops.poll_cq;
	struct va_cq *const cq = c->cq;
	struct va_send_wr *d = q->swr;
	struct vb_posted r = {0, 0};

	for (struct vb_volley *end = v + steps; v < end; v++) {
		const int until = v->until, timed = !v->has_answer;
		int met = 0, reply = 1;
		if (v->has_ask) {
			v->start = vb_reading();
			if (unlikely(r.err = launch(q, d++, &v->ask)))
				return r;
			v->has_ask = 0;
		}
		for (uint32_t looks = v->looks; looks > 0 && r.n < max && !met; looks--) {
			if (until == VB_UNTIL_BYTE && changed((const uint8_t *)v->watch, v->was)) {
				met = 1;
				break;
			}
			int n = poll(cq, max - r.n < VB_BATCH ? max - r.n : VB_BATCH, c->wc);
			if (n == 0)
				continue;
			if (unlikely(n < 0)) {
				r.err = VB_POLL_FAILED;
				return r;
			}
			if (timed)
				v->took = vb_reading();
			int failed = 0;
			for (const struct va_wc *w = c->wc, *last = w + n; w < last; w++) {
				struct vb_wc *o = out + r.n;
				if (unlikely(!usual(q, w, o)) && !vb_translate(c, o, w))
					continue;
				r.n++;
				failed |= o->status;
				if (until == VB_UNTIL_SEND)
					met |= o->opcode < WC_RECV;
				else if (until == VB_UNTIL_RECV && o->opcode >= WC_RECV) {
					reply = !met && answers(v, o);
					met = 1;
				}
			}
			if (unlikely(failed)) // polled with others, which are told as well
				return r;
		}
		if (!met)
			return r;
		v->met = 1;
		if (!timed) {
			if (!reply || (r.err = launch(q, d++, &v->answer)))
				return r;
			v->has_answer = 0;
		} else if (until == VB_UNTIL_BYTE) {
			v->took = vb_reading();
			// Who saw a byte has not looked at the CQ: that would be another call.
			int n = r.n < max ? vb_poll(c, out + r.n, max - r.n) : 0;
			if (n > 0)
				r.n += n;
		}
	}
	return r;
}

struct vb_posted vb_volley(struct vb_qp *q, struct vb_cq *c, struct vb_volley *v, int steps, struct vb_wc *out, int max) {
	uint8_t asks[VB_BATCH / 2], timed[VB_BATCH / 2];
	struct va_send_wr *d = q->swr;

	if (steps > VB_BATCH / 2)
		steps = VB_BATCH / 2; // the others are not met
	for (int i = 0; i < steps; i++) {
		v[i].met = 0;
		timed[i] = !v[i].has_answer;
		if ((asks[i] = v[i].has_ask))
			vb_fill(&q->sq, d++, &v[i].ask);
		if (v[i].has_answer)
			vb_fill(&q->sq, d++, &v[i].answer);
	}
	vb_clock_settled();
	struct vb_posted r = run(q, c, v, steps, out, max);
	for (int i = 0; i < steps; i++) {
		if (asks[i] && !v[i].has_ask)
			v[i].start = vb_ns(v[i].start);
		if (timed[i] && v[i].met)
			v[i].took = vb_ns(v[i].took) - v[i].start;
	}
	return r;
}
