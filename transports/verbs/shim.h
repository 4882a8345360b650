//go:build cgo && linux

// What Go calls. Everything returns 0 or an errno, unless it says otherwise.
// The data path (vb_post_*, vb_poll) keeps the books of the queues, because the
// place of a work request is what its completion gives back.

#ifndef VERBS_SHIM_H
#define VERBS_SHIM_H

#include "abi.h"

// Mirrors of rdma.SendWR, rdma.RecvWR, rdma.WC and rdma.PingPongStep; lib.go compares them.
struct vb_send {
	uint64_t id, remote_addr, compare_add, swap;
	uint32_t rkey, inv_key, imm;
	uint8_t op, flags, num_sge, priority;
	struct va_sge sge[4];
};

struct vb_recv {
	uint64_t id;
	uint8_t num_sge;
	struct va_sge sge[4];
};

struct vb_wc {
	uint64_t id;
	uint32_t byte_len, qp_num, imm, inv_key, vendor_err;
	uint8_t status, opcode, flags;
};

struct vb_step {
	struct vb_send ask, answer;
	uint64_t expect, watch;
	int64_t start, took;
	uint32_t looks;
	uint8_t until, was, has_ask, has_answer, met;
};
enum { VB_UNTIL_SEND, VB_UNTIL_RECV, VB_UNTIL_BYTE };

// An errno that was not set.
enum { VB_UNSAID = -1 };

struct vb_posted {
	int n;   // requests taken
	int err; // errno that stopped the next one, or 0
};

enum vb_kind { VB_SQ, VB_RQ, VB_SRQ };
enum { VB_SIGNALED = 1, VB_DRAIN = 2, VB_HELD = 4, VB_DONE = 8 };
enum { VB_BATCH = 64 };

struct vb_entry {
	uint64_t id;
	uint32_t flags;
	uint32_t next; // shared queue: the next free place
};

// vb_queue is a send, receive or shared receive queue. Places [head, tail) are
// taken: head moves when a completion is polled, tail when work is posted.
// Head, done and flags of taken places are the poller's, under the CQ's lock.
struct vb_queue {
	uint64_t key; // upper half of the wr_id that the device sees
	uint32_t depth, mask, head, tail;
	uint32_t done; // behind the last place that completed, by poll
	uint32_t qp_num;
	uint8_t kind, drained, pad_recv, sig_all;
	uint8_t lapsed; // in ERR for so long that the device will complete nothing more
	uint32_t told_from; // the device signals messages of so many bytes for itself; 0: none
	struct vb_entry *ring;
	uint32_t free_place, used; // shared queue
	char lock;
};

// What a round trip needs of a vb_qp stands last: next to it lie, as a rule, the rings of
// its queues and the provider's part, which are allocated behind it.
struct vb_qp {
	struct va_send_wr swr[VB_BATCH];
	struct va_recv_wr rwr[VB_BATCH];
	struct va_sge empty;
	struct va_qp *qp;
	struct vb_queue sq, rq;
};

struct vb_srq {
	struct va_srq *srq;
	struct vb_queue q;
	struct va_recv_wr rwr[VB_BATCH];
	struct va_sge empty;
};

struct vb_table; // queues by the upper half of wr_id

struct vb_cq {
	struct va_wc wc[VB_BATCH];
	struct va_cq *cq;
	struct va_comp_channel *channel;
	struct vb_table *table;
	uint32_t unacked;
};

// Libraries. vb_load returns NULL, or the name of what is missing; why is dlerror's text.
const char *vb_load_verbs(char *why, int len);
const char *vb_load_cm(char *why, int len);

struct va_device **vb_device_list(int *n);
void vb_free_device_list(struct va_device **);
struct va_context *vb_open(struct va_device *, int *err);
int vb_close(struct va_context *);
const char *vb_name(struct va_context *);
int vb_query_device(struct va_context *, struct va_device_attr *);
// vb_query_odp is ENOTSUP where the library or the provider is older than the question.
int vb_query_odp(struct va_context *, struct va_odp_caps *);
int vb_query_port(struct va_context *, int port, struct va_port_attr *);

int vb_gids(struct va_context *, struct va_gid_entry *, int max); // number, or below 0

struct va_pd *vb_alloc_pd(struct va_context *, int *err);
int vb_dealloc_pd(struct va_pd *);
struct va_mr *vb_reg_mr(struct va_pd *, uint64_t addr, uint64_t len, int access, int *err);
int vb_dereg_mr(struct va_mr *);

struct vb_table *vb_new_table(void);
void vb_free_table(struct vb_table *);
// vb_has_no_key says that the device's queues cannot have one of the mmap offsets.
void vb_has_no_key(struct vb_table *);

struct vb_cq *vb_create_cq(struct va_context *, struct vb_table *, int depth, int *err);
int vb_destroy_cq(struct vb_cq *);
int vb_arm(struct vb_cq *, int solicited_only);
// vb_take_event takes one notification; EAGAIN when there is none.
int vb_take_event(struct vb_cq *);
int vb_poll(struct vb_cq *, struct vb_wc *out, int max); // number, or below 0

struct vb_qp *vb_create_qp(struct va_pd *, struct vb_table *, struct vb_cq *send, struct vb_cq *recv, struct vb_srq *,
	uint32_t send_depth, uint32_t recv_depth, const struct va_qp_cap *, int sig_all, uint32_t told_from, int pad_recv, uint64_t serial, int *err);
// vb_try_qp makes and destroys a queue pair; the capabilities that were given come back.
int vb_try_qp(struct va_pd *, struct va_cq *, struct va_qp_cap *);
int vb_modify_qp(struct va_qp *, struct va_qp_attr *, int mask);
int vb_query_state(struct va_qp *, int *state); // state stays -1 where the device does not tell
int vb_query_av(struct va_qp *, struct va_qp_attr *);
// vb_unlist makes completions of the QP unknown to vb_poll; nobody may be polling.
void vb_unlist(struct vb_qp *, struct vb_table *);
int vb_destroy_qp(struct vb_qp *);
int vb_drain(struct vb_qp *, int send, int recv);
int vb_drain_write(struct vb_qp *);
// vb_nudge writes nothing to the peer, and takes no place in the queue.
int vb_nudge(struct vb_qp *);
// vb_hold books requests that the device is not told of, because its QP is in ERR
// and it would never flush them; vb_release completes the next of them once all
// in front have completed.
struct vb_posted vb_hold_send(struct vb_qp *, const struct vb_send *, int n);
struct vb_posted vb_hold_recv(struct vb_qp *, const struct vb_recv *, int n);
int vb_release(struct vb_queue *, struct vb_wc *);
// vb_outstanding counts places taken, and those of them that have to complete.
// Nobody may be posting.
int vb_outstanding(struct vb_queue *, int *signaled);
// vb_leftover hands out, oldest first, requests that never completed and have
// to; 0 when there are no more.
int vb_leftover(struct vb_queue *, struct vb_wc *);
// vb_forget frees all places, as RESET does; nobody may be posting or polling.
void vb_forget(struct vb_queue *);

struct vb_srq *vb_create_srq(struct va_pd *, struct vb_table *, uint32_t depth, uint32_t sge, int pad_recv, int *err);
int vb_destroy_srq(struct vb_srq *, struct vb_table *);
int vb_srq_limit(struct vb_srq *, uint32_t limit);

struct vb_posted vb_post_send(struct vb_qp *, const struct vb_send *, int n);
struct vb_posted vb_post_recv(struct vb_qp *, const struct vb_recv *, int n);
struct vb_posted vb_post_srq(struct vb_srq *, const struct vb_recv *, int n);

// vb_pingpong is QP.PingPong, of so many steps, of a QP whose queues both complete into
// the CQ. n counts completions; err is what a post answered, or VB_POLL_FAILED.
enum { VB_POLL_FAILED = -1 };
struct vb_posted vb_pingpong(struct vb_qp *, struct vb_cq *, struct vb_step *, int steps, struct vb_wc *out, int max);

// vb_clock_now is the time of the clock of PingPong, in ns, and whether it is the
// processor's counter.
int64_t vb_clock_now(int *counter);

// vb_null is a QP and its CQ on a provider that does nothing: what is posted has
// completed. NULL without memory.
struct vb_qp *vb_null(struct vb_table *, struct vb_cq **);
void vb_null_free(struct vb_qp *, struct vb_cq *);

// vb_async takes one asynchronous event; EAGAIN when there is none. The object is
// compared only.
struct vb_event {
	int type;
	uint32_t qp_num;
	uint64_t serial; // of the QP: numbers are used again at once
	void *object;
};
int vb_async(struct va_context *, struct vb_event *);
int vb_nonblock(int fd);

// Connection manager.
struct vb_cm_event {
	int type, status;
	uint64_t id_context;           // of the id, or of the listening id for a request
	struct va_cm_id *id;           // of a request: the new id
	struct va_context *verbs;      // device of the id
	int ird, ord, rnr;             // as the peer states them
	uint32_t qp_num;
	int private_len;
	uint8_t private_data[256];
};
struct va_cm_channel *vb_cm_channel(int *err);
void vb_cm_free_channel(struct va_cm_channel *);
int vb_cm_event(struct va_cm_channel *, struct vb_cm_event *);
struct va_cm_id *vb_cm_id(struct va_cm_channel *, uint64_t context, int *err);
void vb_cm_set_context(struct va_cm_id *, uint64_t context);
int vb_cm_set_tos(struct va_cm_id *, uint8_t tos);
int vb_cm_destroy(struct va_cm_id *);
int vb_cm_bind(struct va_cm_id *, const void *addr, int only_v6);
int vb_cm_listen(struct va_cm_id *, int backlog);
int vb_cm_resolve_addr(struct va_cm_id *, const void *src, const void *dst, int ms);
int vb_cm_resolve_route(struct va_cm_id *, int ms);
int vb_cm_connect(struct va_cm_id *, struct va_cm_param *, const void *priv, int len);
int vb_cm_accept(struct va_cm_id *, struct va_cm_param *, const void *priv, int len);
int vb_cm_reject(struct va_cm_id *, const void *priv, int len);
int vb_cm_establish(struct va_cm_id *);
int vb_cm_disconnect(struct va_cm_id *);
int vb_cm_qp_attr(struct va_cm_id *, int state, struct va_qp_attr *, int *mask);

#endif
