//go:build cgo && linux

// Steps of a ping-pong without a return to Go. A way out of Go and back costs
// what tens of polls cost, and in the plain loops it stands between an arrival and
// whoever waits for it.

#include <time.h>

#include "lib.h"

static int64_t monotonic(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// changed looks at a byte as often as takes about as long as ten polls of the CQ,
// which must be polled for what fails.
static int changed(const uint8_t *byte, uint8_t was) {
	for (int i = 0; i < 256; i++)
		if (__atomic_load_n(byte, __ATOMIC_ACQUIRE) != was)
			return 1;
	return 0;
}

// answers tells whether the prepared answer is one to what arrived.
static int answers(const struct vb_volley *v, const struct vb_wc *w) {
	const struct vb_send *a = &v->answer;
	if (w->id != v->expect)
		return 0;
	if (w->opcode == WC_RECV_WRITE_IMM)
		return w->imm == a->imm;
	return w->byte_len == (a->num_sge ? a->sge[0].length : 0);
}

static struct vb_posted step(struct vb_qp *q, struct vb_cq *c, struct vb_volley *v, struct vb_wc *out, int max) {
	struct vb_posted r = {0, 0};
	int reply = 1, staged = 0;

	if (v->has_ask) {
		if ((r.err = vb_stage(q, &v->ask)))
			return r;
		v->start = monotonic();
		if ((r.err = vb_launch(q)))
			return r;
		v->has_ask = 0;
	}
	// The answer waits translated for what it answers. Room may come with the completions.
	if (v->has_answer)
		staged = !vb_stage(q, &v->answer);
	for (uint32_t look = 0; look < v->looks && r.n < max && !v->met; look++) {
		if (v->until == VB_UNTIL_BYTE && changed((const uint8_t *)v->watch, v->was)) {
			v->met = 1;
			break;
		}
		int n = vb_poll(c, out + r.n, max - r.n);
		if (n < 0) {
			r.err = VB_POLL_FAILED;
			return r;
		}
		for (struct vb_wc *w = out + r.n, *end = w + n; w < end; w++) {
			if (w->status) { // polled with others, which are told as well
				r.n += n;
				v->met = 0;
				return r;
			}
			if (v->until == VB_UNTIL_SEND && w->opcode < WC_RECV)
				v->met = 1;
			if (v->until == VB_UNTIL_RECV && w->opcode >= WC_RECV) {
				reply = !v->met && answers(v, w);
				v->met = 1;
			}
		}
		r.n += n;
	}
	if (!v->met)
		return r;
	if (!v->has_answer) {
		v->took = monotonic() - v->start;
		// Who saw a byte has not looked at the CQ: that would be another call.
		if (v->until == VB_UNTIL_BYTE && r.n < max) {
			int n = vb_poll(c, out + r.n, max - r.n);
			if (n > 0)
				r.n += n;
		}
		return r;
	}
	if (!reply)
		return r;
	if (!staged && (r.err = vb_stage(q, &v->answer)))
		return r;
	r.err = vb_launch(q);
	if (!r.err)
		v->has_answer = 0;
	return r;
}

struct vb_posted vb_volley(struct vb_qp *q, struct vb_cq *c, struct vb_volley *v, int steps, struct vb_wc *out, int max) {
	struct vb_posted all = {0, 0};

	for (int i = 0; i < steps; i++)
		v[i].met = 0;
	for (int i = 0; i < steps; i++) {
		struct vb_posted r = step(q, c, v + i, out + all.n, max - all.n);
		all.n += r.n;
		all.err = r.err;
		if (r.err || !v[i].met || v[i].has_answer)
			break;
	}
	return all;
}
