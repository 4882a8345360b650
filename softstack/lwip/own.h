//go:build lwip

// What the C files share among themselves. All of it under the core lock.
#ifndef LW_OWN_H
#define LW_OWN_H
#include "load.h"
#include "lw.h"

struct lw_link_own {
	// put sends the packet p; take moves one frame into lwIP, 0 when there is none.
	void (*put)(struct lw_link *l, struct pbuf *p);
	int (*take)(struct lw_link *l);
	int (*doze)(struct lw_link *l); // asks for a bell; 1 when something is there
	void (*wake)(struct lw_link *l);
	void (*unmap)(struct lw_link *l);
	int held; // pbufs that lie in its memory
	int closed;
	struct lw_impair imp;
	uint64_t random;
	struct pbuf *late; // a frame that the next one overtakes
	uint64_t late_due; // when it leaves where there is none
	struct lw_arrived *first, **last; // frames that wait, in their order
	uint64_t due;                     // when the last of them may go on

	struct lw_xsk *xsk; // of a link through an interface

	// shared memory
	struct lw_dir *tx, *rx;
	void *mem;
	size_t size;
	uint32_t slots;
	int bell, two_copies;
	union lw_entry *tx_used, *rx_used;
	uint32_t *tx_freed, *rx_freed;
	uint8_t *tx_frames, *rx_frames;
	uint32_t tx_sent, rx_taken, tx_freed_tail, rx_freed_head;
	uint32_t *spare, spares; // free slots of ours
	struct lw_packet *packets;
};

extern struct netif lw_netif;
extern struct lw_link *lw_links[LW_MAX_LINKS];
extern int lw_links_end; // no link at or behind it

void lw_our_address(ip_addr_t *to, int v6);
void lw_address_of(const struct lw_link *l, int peer, int v6, ip_addr_t *to);
int lw_link_at(const ip_addr_t *a, int *peer);
struct lw_link *lw_link_new(void);
int lw_link_enter(struct lw_link *l);

void lw_output(struct lw_link *l, struct pbuf *p);
void lw_input(struct lw_link *l, struct pbuf *p);
void lw_ripen(struct lw_link *l);
void lw_hold(struct lw_link *l, struct pbuf *p);
void lw_let_go(struct lw_link *l);
void lw_forget_delayed(struct lw_link *l);
uint32_t lw_dice(struct lw_link_own *o);
void lw_settle_all(int acknowledge);
int lw_collect(uint32_t *events, int max);
void lw_measure(struct lw_conn *c);
void lw_acknowledged(struct lw_conn *c);
void lw_moved(struct lw_conn *c);
void lw_reap(struct lw_conn *c);
void lw_cut(struct lw_conn *c, int err);
int lw_pump(struct lw_conn *c);
extern struct lw_conn *lw_helped; // connections of LW_IO
extern int32_t lw_threaded;       // connections whose stack has a thread
// lw_own is memory whose octets are copied when they are taken; of others references are kept.
struct lw_own {
	uintptr_t at;
	size_t size;
};
extern const struct lw_own lw_all;
long lw_put(struct lw_conn *c, uintptr_t v, int n);
long lw_take(struct lw_conn *c, uintptr_t v, int n, struct lw_own own);
void lw_let_go_of_memory(struct lw_conn *c);
uint32_t lw_held_from(const struct tcp_pcb *pcb);
void lw_link_release(struct lw_link *l);
void lw_link_died(struct lw_link *l);
void lw_forget_orphans(const struct lw_link *l);
// lw_close_behind closes a connection that has no lw_conn any more, and lw_shut_behind ends its
// sending where c->shut asks for it: both behind what is unsent.
err_t lw_close_behind(struct tcp_pcb *pcb);
int lw_shut_behind(struct lw_conn *c);
// lw_keep_for_sends keeps the struct of a closed connection while octets wait in its slots;
// lw_pump_orphan, behind lw_pump, ends it.
int lw_keep_for_sends(struct lw_conn *c);
void lw_pump_orphan(struct lw_conn *c);
void lw_dispose(struct lw_conn *c, int abort);
// lw_batching says that lw_flush or lw_flush_all follows under this hold of the core lock, so
// that frames may wait for it. Whatever else sends, as lwIP's timers do, has nobody behind it.
extern int lw_batching;
void lw_flush(struct lw_link *l);
uint64_t lw_seed(uint64_t s);
void lw_flush_all(void);

#define LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#endif
