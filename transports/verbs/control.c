//go:build cgo && linux

// The control path: thin wrappers that turn the libraries' ways of failing into
// an errno.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

static int failed(int rc) {
	if (rc < 0)
		return errno ? errno : VB_UNSAID;
	return rc;
}

static void *made(void *p, int *err) {
	*err = p ? 0 : errno ? errno : VB_UNSAID;
	return p;
}

struct va_device **vb_device_list(int *n) {
	errno = 0;
	*n = 0;
	return vb_verbs.get_device_list(n);
}

void vb_free_device_list(struct va_device **list) { vb_verbs.free_device_list(list); }

struct va_context *vb_open(struct va_device *dev, int *err) {
	errno = 0;
	return made(vb_verbs.open_device(dev), err);
}

const char *vb_name(struct va_context *c) { return c ? c->device->name : ""; }

int vb_close(struct va_context *c) { return failed(vb_verbs.close_device(c)); }

int vb_query_device(struct va_context *c, struct va_device_attr *a) {
	memset(a, 0, sizeof *a);
	return failed(vb_verbs.query_device(c, a));
}

int vb_query_odp(struct va_context *c, struct va_odp_caps *odp) {
	if (c->abi_compat != (void *)UINTPTR_MAX) // __VERBS_ABI_IS_EXTENDED
		return ENOTSUP;
	struct va_context_ex *x = (void *)((char *)c - offsetof(struct va_context_ex, context));
	// sz counts the header's whole struct, of which ours is the end.
	if (x->sz < sizeof *x || !x->query_device_ex)
		return ENOTSUP;
	struct va_device_attr_ex a;
	memset(&a, 0, sizeof a);
	int rc = failed(x->query_device_ex(c, NULL, &a, sizeof a));
	*odp = a.odp_caps;
	return rc;
}

int vb_query_port(struct va_context *c, int port, struct va_port_attr *a) {
	memset(a, 0, sizeof *a);
	return failed(vb_verbs.query_port(c, port, a));
}

int vb_gids(struct va_context *c, struct va_gid_entry *out, int max) {
	if (!vb_verbs.query_gid_table)
		return -1;
	return vb_verbs.query_gid_table(c, out, max, 0, sizeof *out);
}

struct va_pd *vb_alloc_pd(struct va_context *c, int *err) {
	errno = 0;
	return made(vb_verbs.alloc_pd(c), err);
}

int vb_dealloc_pd(struct va_pd *pd) { return failed(vb_verbs.dealloc_pd(pd)); }

struct va_mr *vb_reg_mr(struct va_pd *pd, uint64_t addr, uint64_t len, int access, int *err) {
	errno = 0;
	return made(vb_verbs.reg_mr(pd, (void *)(uintptr_t)addr, len, access), err);
}

int vb_dereg_mr(struct va_mr *mr) { return failed(vb_verbs.dereg_mr(mr)); }

int vb_try_qp(struct va_pd *pd, struct va_cq *cq, struct va_qp_cap *cap) {
	struct va_qp_init_attr a = {.send_cq = cq, .recv_cq = cq, .cap = *cap, .qp_type = VA_QPT_RC};
	int err;
	errno = 0;
	struct va_qp *qp = made(vb_verbs.create_qp(pd, &a), &err);
	if (!qp)
		return err;
	*cap = a.cap;
	return failed(vb_verbs.destroy_qp(qp));
}

int vb_modify_qp(struct va_qp *qp, struct va_qp_attr *a, int mask) { return failed(vb_verbs.modify_qp(qp, a, mask)); }

int vb_query_state(struct va_qp *qp, int *state) {
	struct va_qp_attr a;
	struct va_qp_init_attr init;
	memset(&a, 0, sizeof a);
	memset(&init, 0, sizeof init);
	a.qp_state = -1;
	int err = failed(vb_verbs.query_qp(qp, &a, VA_QP_STATE, &init));
	*state = a.qp_state;
	return err;
}

int vb_query_av(struct va_qp *qp, struct va_qp_attr *a) {
	struct va_qp_init_attr init;
	memset(a, 0, sizeof *a);
	memset(&init, 0, sizeof init);
	return failed(vb_verbs.query_qp(qp, a, VA_QP_AV, &init));
}

int vb_srq_limit(struct vb_srq *s, uint32_t limit) {
	struct va_srq_attr a = {.srq_limit = limit};
	return failed(vb_verbs.modify_srq(s->srq, &a, VA_SRQ_LIMIT));
}

int vb_async(struct va_context *c, struct vb_event *out) {
	struct va_async_event ev;
	errno = 0;
	if (vb_verbs.get_async_event(c, &ev))
		return errno ? errno : VB_UNSAID;
	out->type = ev.event_type;
	out->object = NULL;
	out->qp_num = 0;
	out->serial = 0;
	switch (ev.event_type) {
	case VA_EVENT_QP_FATAL:
	case VA_EVENT_QP_REQ_ERR:
	case VA_EVENT_QP_ACCESS_ERR:
	case VA_EVENT_SQ_DRAINED:
	case VA_EVENT_QP_LAST_WQE_REACHED:
		out->qp_num = ev.element.qp->qp_num;
		out->serial = (uintptr_t)ev.element.qp->qp_context;
		break;
	case VA_EVENT_CQ_ERR:
		out->object = ev.element.cq;
		break;
	}
	// At once: an object with an unacknowledged event cannot be destroyed.
	vb_verbs.ack_async_event(&ev);
	return 0;
}

struct va_cm_channel *vb_cm_channel(int *err) {
	errno = 0;
	return made(vb_cm.create_event_channel(), err);
}

void vb_cm_free_channel(struct va_cm_channel *ch) { vb_cm.destroy_event_channel(ch); }

int vb_cm_event(struct va_cm_channel *ch, struct vb_cm_event *out) {
	struct va_cm_event *ev;
	errno = 0;
	if (vb_cm.get_cm_event(ch, &ev))
		return errno ? errno : VB_UNSAID;
	memset(out, 0, sizeof *out);
	out->type = ev->event;
	out->status = ev->status;
	out->id = ev->id;
	out->verbs = ev->id->verbs;
	out->id_context = (uintptr_t)(ev->listen_id && ev->event == VA_CM_CONNECT_REQUEST ? ev->listen_id : ev->id)->context;
	switch (ev->event) {
	case VA_CM_CONNECT_REQUEST:
	case VA_CM_CONNECT_RESPONSE:
	case VA_CM_ESTABLISHED:
	case VA_CM_REJECTED:
		out->ird = ev->conn.responder_resources;
		out->ord = ev->conn.initiator_depth;
		out->rnr = ev->conn.rnr_retry_count;
		out->qp_num = ev->conn.qp_num;
		if (ev->conn.private_data) {
			out->private_len = ev->conn.private_data_len;
			memcpy(out->private_data, ev->conn.private_data, out->private_len);
		}
	}
	vb_cm.ack_cm_event(ev);
	return 0;
}

struct va_cm_id *vb_cm_id(struct va_cm_channel *ch, uint64_t context, int *err) {
	struct va_cm_id *id = NULL;
	errno = 0;
	*err = failed(vb_cm.create_id(ch, &id, (void *)(uintptr_t)context, VA_PS_TCP));
	return id;
}

void vb_cm_set_context(struct va_cm_id *id, uint64_t context) { id->context = (void *)(uintptr_t)context; }

int vb_cm_set_tos(struct va_cm_id *id, uint8_t tos) { return failed(vb_cm.set_option(id, VA_OPTION_ID, VA_OPTION_ID_TOS, &tos, sizeof tos)); }

int vb_cm_destroy(struct va_cm_id *id) { return failed(vb_cm.destroy_id(id)); }

int vb_cm_bind(struct va_cm_id *id, const void *addr, int only_v6) {
	int yes = 1;
	if (only_v6)
		vb_cm.set_option(id, VA_OPTION_ID, VA_OPTION_ID_AFONLY, &yes, sizeof yes);
	return failed(vb_cm.bind_addr(id, (struct sockaddr *)addr));
}

int vb_cm_listen(struct va_cm_id *id, int backlog) { return failed(vb_cm.listen(id, backlog)); }

int vb_cm_resolve_addr(struct va_cm_id *id, const void *src, const void *dst, int ms) {
	return failed(vb_cm.resolve_addr(id, (struct sockaddr *)src, (struct sockaddr *)dst, ms));
}

int vb_cm_resolve_route(struct va_cm_id *id, int ms) { return failed(vb_cm.resolve_route(id, ms)); }

int vb_cm_connect(struct va_cm_id *id, struct va_cm_param *p, const void *priv, int len) {
	p->private_data = priv;
	p->private_data_len = len;
	return failed(vb_cm.connect(id, p));
}

int vb_cm_accept(struct va_cm_id *id, struct va_cm_param *p, const void *priv, int len) {
	p->private_data = priv;
	p->private_data_len = len;
	return failed(vb_cm.accept(id, p));
}

int vb_cm_reject(struct va_cm_id *id, const void *priv, int len) { return failed(vb_cm.reject(id, priv, len)); }
int vb_cm_establish(struct va_cm_id *id) { return failed(vb_cm.establish(id)); }
int vb_cm_disconnect(struct va_cm_id *id) { return failed(vb_cm.disconnect(id)); }

int vb_cm_qp_attr(struct va_cm_id *id, int state, struct va_qp_attr *a, int *mask) {
	memset(a, 0, sizeof *a);
	a->qp_state = state;
	return failed(vb_cm.init_qp_attr(id, a, mask));
}
