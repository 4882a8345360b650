//go:build lwip

// The border between Go and lwIP. Everything that Go reads without a call lies in
// memory of C and is written with atomics; everything else is a function here.
// Functions that begin with lw_ take the core lock themselves.
#ifndef LW_H
#define LW_H
#include <stddef.h>
#include <stdint.h>
#include "lwip/opt.h"

enum {
	LW_DESCS = 1024,    // received pieces that wait for the application; more are refused, and lwIP keeps them
	LW_MTU = TCP_MSS + 40, // octets of a packet: 1500 of the library as Debian builds it
	LW_SLOT = LW_MTU <= 2048 ? 2048 : (LW_MTU + 63) / 64 * 64, // octets of a ring for a frame
	LW_MAX_CONNS = 4096,
	LW_MAX_LINKS = 256,
	LW_ACCEPTED = 1u << 31, // an event: a listener's new connection
	LW_PIECES = 32,         // pbufs that the send queue of a connection has room for behind what is taken by reference
	LW_SENDS = 64,          // of a connection whose stack has a thread of its own: segments that wait for it
};

// Who runs the stack of a link: whoever polls (c2); a packet thread beside the
// application (c1); lwIP's own thread, which gets every packet as a message, as its
// Sequential API has it.
enum { LW_INLINE = 0, LW_IO = 1, LW_SEQUENTIAL = 2 };

// What became of a connection.
enum { LW_CONNECTED = 1, LW_EOF = 2, LW_DEAD = 4 };

// A received piece. pbuf is set on the last piece of one, and frees it.
struct lw_desc {
	uint8_t *data;
	uint64_t len;
	void *pbuf;
};

struct lw_link;

// What the application hands to the thread that sends for it: one segment a slot.
// Single producer, single consumer, no lock.
struct lw_sends {
	uint32_t tail __attribute__((aligned(64))); // the application's
	uint32_t head __attribute__((aligned(64))); // the stack's
	struct {
		uint32_t len;
		uint8_t data[LW_SLOT - 4];
	} slot[LW_SENDS] __attribute__((aligned(64)));
};

struct lw_conn {
	// Written by the stack.
	uint32_t tail __attribute__((aligned(64))); // pieces received
	uint32_t state;                             // LW_CONNECTED…
	int32_t err;                                // errno of LW_DEAD
	uint32_t room;                              // octets that a send would take
	uint32_t id, listener;
	uint64_t taken, acked; // octets of the outbound stream
	uint16_t mss, remote_port;
	uint8_t peer; // of the link
	uint8_t v6;   // IPv6 carries it
	// Written by the application.
	uint32_t head __attribute__((aligned(64))); // pieces consumed
	uint32_t watch;                             // somebody sleeps until this moves
	// The stack's own.
	uint32_t reaped __attribute__((aligned(64)));
	uint8_t queued, dirty, stuck, mode, shut, orphan;
	uint8_t refs; // what is unacknowledged may lie in the application's memory
	struct lw_sends *sends; // of LW_IO
	uint32_t stuck_ack;
	uint32_t stuck_at, orphan_at; // milliseconds of lwIP's clock
	void *pcb;
	struct lw_link *link;
	struct lw_conn *next_dirty, *next_helped;
	struct lw_desc ring[LW_DESCS];
};

// One direction of a link in shared memory. Slots go from the producer's own list
// through used to the consumer and through free back. Each index is written by one
// side and lies on its own cache line; how far the reader of a ring has come is its
// own business, since a ring has room for every slot there is. An entry of used says by
// itself whether it is there, so that a frame costs its reader one line of the ring and not
// an index before it.
struct lw_dir {
	uint32_t freed __attribute__((aligned(64)));  // the consumer's
	uint32_t asleep __attribute__((aligned(64))); // the consumer asks for a bell
	uint64_t frames __attribute__((aligned(64))), octets, dropped; // the producer's counts
};

// An entry of used: written at once, as 64 bits. turn is the number of the frame plus one;
// before, it is that of the frame that the place had a round earlier.
union lw_entry {
	struct {
		uint32_t turn;
		uint16_t slot, len;
	};
	uint64_t word;
};

// What a link counted, at this end.
struct lw_counts {
	uint64_t tx_frames, tx_octets, tx_dropped; // dropped: the peer's ring was full
	uint64_t rx_frames, rx_octets, rx_copied;  // copied: octets moved from a slot into a buffer of the stack
	uint64_t rx_missed;                        // what the peer had to drop because our ring was full
	uint64_t lost, duplicated, reordered;      // by the impairment
	uint64_t delayed;                          // likewise
	uint64_t bells;                            // system calls to wake the peer
	uint64_t refused;                          // packets that the stack's mailbox had no room for
};

// The impairment: of what leaves probabilities of 2^32, of what arrives nanoseconds.
struct lw_impair {
	uint32_t loss, duplicate, reorder;
	uint64_t delay, jitter;
	uint64_t seed;
};

// A link as Go looks at it without a call.
struct lw_link {
	// Something is there while what rx_head points to is not rx_tail: the number of frames that
	// the other side produced and that of those taken, or the turn of the entry that is next
	// and its turn of the round before.
	uint32_t *rx_head;
	uint32_t rx_tail;
	uint32_t index;
	int32_t broken; // the other side broke the rules
	int32_t mode;   // LW_INLINE…
	int32_t conns;
	uint32_t waiting; // frames that arrived and are delayed, or are held to be overtaken
	struct lw_counts n;
	struct lw_link_own *own;
	struct lw_link *next_free;
};

// lw_load finds the library; NULL or why not. unlike: it is one of other limits or layout.
const char *lw_load(int *unlike);
int lw_start(void);
// lw_limits_unlike is likewise, once it is started: what lw_load could not see.
const char *lw_limits_unlike(int mss, unsigned long buffer);

// lw_checksum is the sum of RFC 1071 in the order of the octets in memory, before it is
// complemented. lw_checksum_ours tells that the library calls the one of this package.
uint16_t lw_checksum(const void *data, int len);
int lw_checksum_ours(void);

size_t lw_shm_size(uint32_t slots);
// lw_link_shm takes over the mapping, of lw_shm_size octets. The two sides are ends 0 and 1.
// bell is the socket to wake the peer with, or -1; it stays the caller's.
struct lw_link *lw_link_shm(void *mem, uint32_t slots, int end, int bell, int two_copies, int mode, const struct lw_impair *imp);
void lw_link_close(struct lw_link *l);
int lw_link_unacknowledged(const struct lw_link *l, uint16_t port);

// An AF_XDP socket on a queue of an interface, with frames to receive and as many to
// send; ip and mac are the interface's. unsummed is for one that leads to this machine's
// kernel, which leaves checksums to a device. lw_link_xdp takes it over.
struct lw_xsk;
struct lw_xsk *lw_xsk_open(uint32_t ifindex, uint32_t queue, uint32_t frames, uint32_t ip, const uint8_t *mac, int copy, int unsummed, int *err);
int lw_xsk_fd(struct lw_xsk *x);
void lw_xsk_abandon(struct lw_xsk *x);
struct lw_link *lw_link_xdp(struct lw_xsk *x, int two_copies, int mode, const struct lw_impair *imp);
int lw_peer(struct lw_link *l, uint32_t ip, const uint8_t *mac);
uint32_t lw_peer_ip(struct lw_link *l, int peer);
uint64_t lw_xsk_dropped(struct lw_link *l);
int lw_xsk_wait(int fd, int ms);
// lw_sleep asks the other sides of the links that a thread serves, or that pollers
// do, for bells; 1 when something came meanwhile.
int lw_sleep(int helped);
// lw_help is the packet thread of links that have one: it serves them until it has
// events (their number), until nothing came for idle looks (0), or until no link has
// a connection (-1).
int lw_help(int budget, uint32_t idle, uint32_t *events, int max);
void lw_counts_of(struct lw_link *l, struct lw_counts *out);
// lw_untold is how many frames wait in the ring of an interface, of which the kernel was not told.
int lw_untold(struct lw_link *l);

struct lw_conn *lw_connect(struct lw_link *l, int peer, int v6, uint16_t local, uint16_t port, int *err);
int lw_listen(uint16_t port, uint32_t listener, void **pcb);
void lw_unlisten(void *pcb);
// lw_turn takes up to budget frames from the links and reports up to max events.
// settle also acknowledges what was received and is not answered yet.
int lw_turn(int budget, int settle, uint32_t *events, int max);
// lw_sendv takes octets of the n pieces at iov, in segments of their own; -errno.
long lw_sendv(struct lw_conn *c, uintptr_t iov, int n);
long lw_send(struct lw_conn *c, uintptr_t data, size_t len);
// lw_sendv_ref copies only pieces that begin in the size octets at own. Any other is read where
// it is, and again, until it is acknowledged or lw_detach was called.
long lw_sendv_ref(struct lw_conn *c, uintptr_t iov, int n, uintptr_t own, size_t size);
void lw_detach(struct lw_conn *c);
// lw_references tells whether the library can do that.
int lw_references(void);
int lw_unsent(struct lw_conn *c);
int lw_shut(struct lw_conn *c);
void lw_free(struct lw_conn *c, int abort);

extern struct lw_conn *lw_conns[LW_MAX_CONNS];
extern uint32_t lw_posted;       // segments that wait, or waited, for the packet thread
extern uint64_t lw_yields;       // system calls of the packet thread and of hand-overs
extern uint64_t lw_thread_ns;    // CPU of the packet thread, as of a moment ago
extern uint64_t lw_tx_copied;    // octets that lwIP copied to send
extern uint64_t lw_tx_referenced; // octets that it did not
extern uint32_t lw_dirty;        // connections that have something to settle
extern uint32_t lw_events;       // events that wait for a turn
extern uint32_t lw_user_timeout; // ms without acknowledgement until a connection is given up
#endif
