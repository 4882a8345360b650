//go:build cgo && linux

// The functions of the two libraries, found at run time.

#ifndef VERBS_LIB_H
#define VERBS_LIB_H

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/types.h>

#include "clock.h"
#include "shim.h"

extern struct vb_verbs_lib {
	struct va_device **(*get_device_list)(int *);
	void (*free_device_list)(struct va_device **);
	struct va_context *(*open_device)(struct va_device *);
	int (*close_device)(struct va_context *);
	int (*query_device)(struct va_context *, struct va_device_attr *);
	int (*query_port)(struct va_context *, uint8_t, struct va_port_attr *);
	int (*get_async_event)(struct va_context *, struct va_async_event *);
	void (*ack_async_event)(struct va_async_event *);
	struct va_pd *(*alloc_pd)(struct va_context *);
	int (*dealloc_pd)(struct va_pd *);
	struct va_mr *(*reg_mr)(struct va_pd *, void *, size_t, int);
	int (*dereg_mr)(struct va_mr *);
	struct va_comp_channel *(*create_comp_channel)(struct va_context *);
	int (*destroy_comp_channel)(struct va_comp_channel *);
	struct va_cq *(*create_cq)(struct va_context *, int, void *, struct va_comp_channel *, int);
	int (*destroy_cq)(struct va_cq *);
	int (*get_cq_event)(struct va_comp_channel *, struct va_cq **, void **);
	void (*ack_cq_events)(struct va_cq *, unsigned);
	struct va_srq *(*create_srq)(struct va_pd *, struct va_srq_init_attr *);
	int (*modify_srq)(struct va_srq *, struct va_srq_attr *, int);
	int (*destroy_srq)(struct va_srq *);
	struct va_qp *(*create_qp)(struct va_pd *, struct va_qp_init_attr *);
	int (*query_qp)(struct va_qp *, struct va_qp_attr *, int, struct va_qp_init_attr *);
	int (*modify_qp)(struct va_qp *, struct va_qp_attr *, int);
	int (*destroy_qp)(struct va_qp *);
	// Since rdma-core 32; NULL before.
	ssize_t (*query_gid_table)(struct va_context *, struct va_gid_entry *, size_t, uint32_t, size_t);
} vb_verbs;

extern struct vb_cm_lib {
	struct va_cm_channel *(*create_event_channel)(void);
	void (*destroy_event_channel)(struct va_cm_channel *);
	int (*create_id)(struct va_cm_channel *, struct va_cm_id **, void *, int);
	int (*destroy_id)(struct va_cm_id *);
	int (*bind_addr)(struct va_cm_id *, struct sockaddr *);
	int (*listen)(struct va_cm_id *, int);
	int (*resolve_addr)(struct va_cm_id *, struct sockaddr *, struct sockaddr *, int);
	int (*resolve_route)(struct va_cm_id *, int);
	int (*connect)(struct va_cm_id *, struct va_cm_param *);
	int (*accept)(struct va_cm_id *, struct va_cm_param *);
	int (*reject)(struct va_cm_id *, const void *, uint8_t);
	int (*disconnect)(struct va_cm_id *);
	int (*get_cm_event)(struct va_cm_channel *, struct va_cm_event **);
	int (*ack_cm_event)(struct va_cm_event *);
	int (*set_option)(struct va_cm_id *, int, int, void *, size_t);
	int (*init_qp_attr)(struct va_cm_id *, struct va_qp_attr *, int *);
	int (*establish)(struct va_cm_id *);
} vb_cm;

// Opcodes and flags of rdma.WC.
enum { WC_SEND, WC_WRITE, WC_READ, WC_FETCH_ADD, WC_CMP_SWAP, WC_LOCAL_INV, WC_RECV, WC_RECV_WRITE_IMM };
enum { WITH_IMM = 1, WITH_INV = 2 };

// wr_id: 16 bits generation, 16 bits queue, 32 bits place.
enum { TABLE_BITS = 16, TABLE_SIZE = 1 << TABLE_BITS };

struct vb_table {
	struct vb_queue *queue[TABLE_SIZE];
	uint16_t generation[TABLE_SIZE];
	uint32_t next;
	char no_key, filled; // siw.c
};

// vb_fill_key tells, behind a failed creation of a queue, whether it is worth another
// try. The caller holds the device's mutex.
int vb_fill_key(struct vb_table *, struct va_context *);

// Opcodes of rdma.Opcode, four bits each from the lowest; 15 is none. Neither this nor the
// flags are tables in memory: a round trip would touch one more page for them, and where
// code is translated a page more is a search more.
enum { NO_WR = 15 };
#define O(place, opcode) ((uint64_t)(opcode) << 4 * (place))
static const uint64_t vb_wr_opcodes = O(0, VA_WR_SEND) | O(1, NO_WR) | O(2, VA_WR_SEND_IMM) | O(3, VA_WR_WRITE) | O(4, VA_WR_WRITE_IMM) |
	O(5, VA_WR_READ) | O(6, VA_WR_FETCH_ADD) | O(7, VA_WR_CMP_SWAP) | ~(uint64_t)0 << 32;
#undef O

static inline int vb_wr_opcode(uint8_t op) { return op < 16 ? vb_wr_opcodes >> 4 * op & 15 : NO_WR; }

// vb_wr_flags is the device's word for rdma.SendFlags (signaled, fence, solicited, inline):
// the same bits, but for the lowest two, which change places.
static inline int vb_wr_flags(uint8_t f) { return (f & 12) | (f & 1) << 1 | (f & 2) >> 1; }
_Static_assert(VA_SEND_SIGNALED == 2 && VA_SEND_FENCE == 1 && VA_SEND_SOLICITED == 4 && VA_SEND_INLINE == 8, "vb_wr_flags");

static inline uint64_t vb_length(const struct vb_send *s) {
	uint64_t n = 0;
	for (int i = 0; i < s->num_sge; i++)
		n += s->sge[i].length;
	return n;
}

// vb_fill translates a request for the queue, but for its wr_id; it is the last of its
// list.
static inline void vb_fill(struct vb_queue *q, struct va_send_wr *d, const struct vb_send *s) {
	d->next = NULL;
	d->sg_list = (struct va_sge *)s->sge; // the provider copies it during the post
	d->num_sge = s->num_sge;
	d->opcode = vb_wr_opcode(s->op);
	d->send_flags = vb_wr_flags(s->flags);
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
	if (q->told_from && (d->opcode == VA_WR_WRITE || d->opcode == VA_WR_SEND) && vb_length(s) >= q->told_from)
		d->send_flags |= VA_SEND_SIGNALED;
}

// vb_translate is the way back, and false for what nobody is to see.
int vb_translate(struct vb_cq *, struct vb_wc *, const struct va_wc *);

// vb_room is how many places are free; a drain marker stands beyond depth.
static inline uint32_t vb_room(struct vb_queue *q) {
	uint32_t used = q->tail - __atomic_load_n(&q->head, __ATOMIC_ACQUIRE);
	return used < q->depth ? q->depth - used : 0;
}

// vb_enter writes the request into a place of the ring that is free.
static inline void vb_enter(struct vb_queue *q, uint32_t place, const struct vb_send *w) {
	struct vb_entry *e = &q->ring[place & q->mask];
	e->id = w->id;
	e->flags = (w->flags & VB_SIGNALED) | q->sig_all;
}

// vb_set_cancel prepares the thread for providers that post with write(2), as the soft
// ones do. In a program of several threads the C library switches each write of a
// thread to asynchronous cancellation and back, with two atomic operations, unless it
// is there already. Nobody cancels a thread of Go, so it may stay there.
static inline void vb_set_cancel(void) {
	static __thread char set;
	if (__builtin_expect(!set, 0)) {
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
		set = 1;
	}
}

int vb_init_queue(struct vb_queue *, enum vb_kind, uint32_t depth);
int vb_enlist(struct vb_table *, struct vb_queue *);

#endif
