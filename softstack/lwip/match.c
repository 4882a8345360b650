//go:build lwip

// Whether the library at hand is the one whose headers this program was compiled with. lwIP's
// structs depend on its options, and nothing in the file's name or version says which it has;
// what it declares of its pools and a fresh connection do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include "load.h"
#include "lwip/priv/memp_priv.h"
#include "own.h"

#define POOL(name, size) {"memp_" name, LWIP_MEM_ALIGN_SIZE(size)}
static const struct {
	const char *name;
	size_t size;
} pools[] = {
	POOL("TCP_PCB", sizeof(struct tcp_pcb)),
	POOL("TCP_PCB_LISTEN", sizeof(struct tcp_pcb_listen)),
	POOL("TCP_SEG", sizeof(struct tcp_seg)),
	POOL("PBUF", sizeof(struct pbuf)),
};

static char why[512];

static const char *place(void *lib)
{
	struct link_map *m;
	return dlinfo(lib, RTLD_DI_LINKMAP, &m) == 0 ? m->l_name : "liblwip.so.0";
}

const char *lw_unlike(void *lib)
{
	for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
		const struct memp_desc *d = dlsym(lib, pools[i].name);
		if (d == NULL) {
			snprintf(why, sizeof why, "%s has no %s", place(lib), pools[i].name);
			return why;
		}
		if (d->size != pools[i].size) {
			snprintf(why, sizeof why, "%s has a %s of %u octets, and this program is for %zu", place(lib), pools[i].name + 5, d->size, pools[i].size);
			return why;
		}
	}
	return NULL;
}

static uint16_t offered; // the MSS option of the SYN that look_at_syn saw

static err_t look_at_syn(struct netif *n, struct pbuf *p, const ip4_addr_t *to)
{
	(void)n;
	(void)to;
	const uint8_t *b = p->payload;
	// The option is a SYN's first (RFC 9293 §3.2: kind 2, length 4), behind 20 octets of IP and 20 of TCP.
	if (p->len >= 44 && (b[33] & TCP_SYN) && b[40] == 2 && b[41] == 4)
		offered = (uint16_t)(b[42] << 8 | b[43]);
	return ERR_OK;
}

// lw_limits_unlike looks at what no struct depends on: the send buffer of a fresh connection, and
// the segments that its SYN asks for where the network's would be longer.
const char *lw_limits_unlike(int mss, unsigned long buffer)
{
	ip_addr_t nobody;
	unsigned long theirs = buffer;
	sys_lock_tcpip_core();
	netif_output_fn out = lw_netif.output;
	uint16_t mtu = lw_netif.mtu;
	lw_netif.output = look_at_syn;
	lw_netif.mtu = 65535;
	offered = 0;
	struct tcp_pcb *pcb = tcp_new_ip_type(IPADDR_TYPE_V4);
	if (pcb != NULL) {
		theirs = pcb->snd_buf;
		IP_ADDR4(&nobody, 10, 255, 255, 254);
		tcp_connect(pcb, &nobody, 1, NULL);
		tcp_abort(pcb);
	}
	lw_netif.output = out;
	lw_netif.mtu = mtu;
	sys_unlock_tcpip_core();
	if (pcb == NULL || (theirs == buffer && offered == mss))
		return NULL; // without memory the next connection tells of it
	snprintf(why, sizeof why, "the library has segments of %d octets and %lu to send of a connection, and this program is for %d and %lu", offered, theirs, mss, buffer);
	return why;
}
