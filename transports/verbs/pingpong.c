//go:build cgo && linux

// Steps of a ping-pong without a return to Go. A way out of Go and back costs
// what tens of polls cost, and in the plain loops it stands between an arrival and
// whoever waits for it. Requests are translated, and their places in the queue written,
// before the first step. The steps themselves are one function without calls of its
// own, but into the provider, and what needs not be done between an arrival and its
// answer is done behind the answer: an instruction costs little here, and ten times
// that where code is translated, in which every way back is a search.

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-slp-vectorize") // two stores in one, from a constant of another page
#endif

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

enum { SEND_IMM = 2, WRITE_IMM = 4 }; // of rdma.Opcode

// answers tells whether the prepared answer is one to what arrived.
__attribute__((noinline, cold)) static int answers(const struct vb_step *v, const struct vb_wc *w) {
	const struct vb_send *a = &v->answer;
	if (w->id != v->expect)
		return 0;
	if (w->opcode == WC_RECV_WRITE_IMM || a->op == WRITE_IMM)
		return w->opcode == WC_RECV_WRITE_IMM && a->op == WRITE_IMM && w->imm == a->imm;
	if (a->op == SEND_IMM && (!(w->flags & WITH_IMM) || w->imm != a->imm))
		return 0;
	return w->byte_len == (a->num_sge ? a->sge[0].length : 0);
}

// launch posts a prepared request into the next place. The place was written with the
// preparation, unless the queue had no room then.
static inline int launch(struct vb_qp *q, struct va_send_wr *d, const struct vb_send *w, int full) {
	struct vb_queue *s = &q->sq;
	uint32_t tail = s->tail;
	struct va_send_wr *bad;
	if (unlikely(full)) {
		if (!vb_room(s))
			return ENOMEM;
		vb_enter(s, tail, w);
	}
	__atomic_store_n(&s->tail, tail + 1, __ATOMIC_RELEASE); // before the device knows
	int err = q->qp->context->ops.post_send(q->qp, d, &bad);
	if (unlikely(err)) {
		__atomic_store_n(&s->tail, tail, __ATOMIC_RELEASE);
		return err < 0 ? -err : err;
	}
	return 0;
}

// due finds the oldest request of the queue if the completion is its success, and
// nothing is special about it: NULL else.
static inline const struct vb_entry *due(const struct vb_queue *s, const struct va_wc *w) {
	uint32_t place = s->done;
	const struct vb_entry *e = &s->ring[place & s->mask];
	if (unlikely(w->wr_id != (s->key | place) || w->status != VA_WC_SUCCESS || place != s->head || e->flags != VB_SIGNALED || place == __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE)))
		return NULL;
	return e;
}

// opcode_of takes what due and the caller's test let through: numbers that both sides
// have alike, for a table would be one more page to touch.
static inline uint8_t opcode_of(int opcode) { return opcode; }
_Static_assert(VA_WC_SEND == (int)WC_SEND && VA_WC_WRITE == (int)WC_WRITE && VA_WC_READ == (int)WC_READ, "opcode_of");

// finish is vb_translate for a completion whose request was due.
static inline void finish(struct vb_queue *s, const struct vb_entry *e, struct vb_wc *o, uint8_t opcode, uint32_t byte_len) {
	uint32_t done = s->done + 1;
	o->id = e->id;
	o->byte_len = byte_len;
	o->qp_num = s->qp_num;
	o->imm = o->inv_key = o->vendor_err = 0;
	o->status = 0;
	o->opcode = opcode;
	o->flags = 0;
	s->done = done;
	__atomic_store_n(&s->head, done, __ATOMIC_RELEASE);
}

// run is vb_pingpong behind the preparation, with readings for times. The clock is read
// as soon as the provider said what came, or the byte has changed. Completions are
// polled one by one: the next one is looked for while there is nothing else to do.
static struct vb_posted run(struct vb_qp *q, struct vb_cq *c, struct vb_step *v, int steps, int full, struct vb_wc *out, int max, const struct vb_clock *clock) {
	int (*const poll)(struct va_cq *, int, struct va_wc *) = c->cq->context->ops.poll_cq;
	struct va_cq *const cq = c->cq;
	struct va_wc wc, *const w = &wc;
	struct va_send_wr *d = q->swr;
	struct vb_wc *o = out, *const last = out + max;
	int err = 0;

	for (struct vb_step *end = v + steps; v < end; v++) {
		uint32_t looks = v->looks;
		const struct vb_entry *e;
		v->met = 0;
		if (v->has_ask) {
			v->start = vb_reading(clock);
			if (unlikely(err = launch(q, d++, &v->ask, full)))
				break;
			v->has_ask = 0;
		}
	look:;
		int n = 0;
		if (unlikely(o == last))
			break;
		if (v->until != VB_UNTIL_BYTE) {
			while (looks-- && !(n = poll(cq, 1, w)))
				;
		} else {
			for (; looks && !n; looks--) {
				if (changed((const uint8_t *)v->watch, v->was))
					goto arrived;
				n = poll(cq, 1, w);
			}
		}
		if (unlikely(n <= 0)) {
			err = n < 0 ? VB_POLL_FAILED : 0;
			break;
		}
		if ((w->wr_id ^ q->rq.key) >> 32 == 0) {
			if (!v->has_answer)
				v->took = vb_settled(clock);
			if ((e = due(&q->rq, w)) && w->opcode == VA_WC_RECV && !(w->wc_flags & (VA_WC_WITH_IMM | VA_WC_WITH_INV)) && v->until == VB_UNTIL_RECV) {
				uint32_t len = w->byte_len;
				int reply = v->has_answer; // what carries an immediate answers nothing that has none
				if (reply && e->id == v->expect && len == (v->answer.num_sge ? v->answer.sge[0].length : 0) &&
				    v->answer.op != WRITE_IMM && v->answer.op != SEND_IMM) {
					reply = 0;
					if (!(err = launch(q, d++, &v->answer, full)))
						v->has_answer = 0;
				}
				finish(&q->rq, e, o++, WC_RECV, len);
				v->met = 1;
				if (unlikely(reply | err))
					break;
				continue;
			}
		} else {
			if ((v->until == VB_UNTIL_SEND) & !v->has_answer)
				v->took = vb_settled(clock);
		own:
			if ((e = due(&q->sq, w)) && (unsigned)w->opcode <= VA_WC_READ && !((v->until == VB_UNTIL_SEND) & v->has_answer)) {
				finish(&q->sq, e, o++, opcode_of(w->opcode), w->opcode == VA_WC_READ ? w->byte_len : 0);
				if (v->met)
					continue;
				if (v->until != VB_UNTIL_SEND)
					goto look;
				v->met = 1;
				continue;
			}
		}
		// What a ping-pong does not complete as a rule.
	other:
		if (!vb_translate(c, o, w)) {
			if (v->met)
				continue;
			goto look;
		}
		struct vb_wc *a = o++;
		if (a->status)
			break;
		if (v->met)
			continue;
		if (v->until == VB_UNTIL_BYTE || (v->until == VB_UNTIL_RECV) != (a->opcode >= WC_RECV))
			goto look;
		v->met = 1;
		if (v->has_answer) {
			if ((v->until == VB_UNTIL_RECV && !answers(v, a)) || (err = launch(q, d++, &v->answer, full)))
				break;
			v->has_answer = 0;
		}
		continue;
	arrived:
		v->met = 1;
		if (v->has_answer) {
			if (unlikely(err = launch(q, d++, &v->answer, full)))
				break;
			v->has_answer = 0;
			continue;
		}
		v->took = vb_settled(clock);
		// Who saw a byte has not looked at the CQ: that would be another call.
		if (o == last || poll(cq, 1, w) <= 0)
			continue;
		if ((w->wr_id ^ q->rq.key) >> 32 != 0)
			goto own;
		goto other;
	}
	return (struct vb_posted){o - out, err};
}

// The loop lies in one page, aligned as it is, while it has no more than 4096 bytes: a
// round trip over RXE touches 160 to 240 pages of the kernel, and each one more may cost
// the search of another, a little on a processor and much where it is translated.
__attribute__((aligned(4096))) struct vb_posted vb_pingpong(struct vb_qp *q, struct vb_cq *c, struct vb_step *v, int steps, struct vb_wc *out, int max) {
	uint8_t asks[VB_BATCH / 2], timed[VB_BATCH / 2];
	struct vb_queue *s = &q->sq;
	const uint32_t free = vb_room(s);
	uint32_t used = 0;
	int full = 0;

	if (steps > VB_BATCH / 2)
		steps = VB_BATCH / 2; // the others are not met
	for (int i = 0; i < steps; i++) {
		const struct vb_send *posts[] = {v[i].has_ask ? &v[i].ask : NULL, v[i].has_answer ? &v[i].answer : NULL};
		asks[i] = v[i].has_ask;
		timed[i] = !v[i].has_answer;
		if (used + v[i].has_ask + v[i].has_answer > free) {
			full = i == 0; // it may have room until it posts
			steps = i + full;
		}
		for (int k = 0; k < 2 && i < steps; k++)
			if (posts[k]) {
				struct va_send_wr *d = &q->swr[used];
				vb_fill(s, d, posts[k]);
				d->wr_id = s->key | (uint32_t)(s->tail + used);
				if (!full)
					vb_enter(s, s->tail + used, posts[k]);
				used++;
			}
	}
	vb_clock_settled();
	vb_set_cancel();
	const struct vb_clock clock = vb_clock; // on a page that is at hand
	struct vb_posted r = run(q, c, v, steps, full, out, max, &clock);
	for (int i = 0; i < steps; i++) {
		if (asks[i] && !v[i].has_ask)
			v[i].start = vb_ns(&clock, v[i].start);
		if (timed[i] && v[i].met)
			v[i].took = vb_ns(&clock, v[i].took) - v[i].start;
	}
	return r;
}
