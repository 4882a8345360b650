//go:build lwip

// The stack of the process, with one network interface, whose links lead to other processes.
#include <errno.h>
#include <malloc.h>
#include <time.h>
#include <arpa/inet.h>
#include "own.h"

struct netif lw_netif;

// Addresses mean something inside the process alone: 10.0.0.1 and fd00::1 are ours, and
// 10.64+peer.link+1 and fd00::64:peer:link+1 who is at the other end of a link. fd00::/8 is
// for such uses (RFC 4193).
enum { PEERS_FROM = 64, ULA = 0xfd000000 };

void lw_our_address(ip_addr_t *to, int v6)
{
	if (v6)
		IP_ADDR6(to, htonl(ULA), 0, 0, htonl(1));
	else
		IP_ADDR4(to, 10, 0, 0, 1);
}

void lw_address_of(const struct lw_link *l, int peer, int v6, ip_addr_t *to)
{
	uint32_t low = (uint32_t)peer << 16 | (l->index + 1);
	if (v6)
		IP_ADDR6(to, htonl(ULA), 0, htonl(PEERS_FROM), htonl(low));
	else
		ip_addr_set_ip4_u32_val(*to, htonl((10 << 24 | PEERS_FROM << 16) + low));
}

// lw_link_at is the number of the link that an address of lw_address_of is of, or -1.
int lw_link_at(const ip_addr_t *a, int *peer)
{
	uint32_t low;
	if (IP_IS_V6(a)) {
		const uint32_t *w = ip_2_ip6(a)->addr;
		if (w[0] != htonl(ULA) || w[1] != 0 || w[2] != htonl(PEERS_FROM))
			return -1;
		low = ntohl(w[3]);
	} else {
		low = ntohl(ip_2_ip4(a)->addr) - (10 << 24 | PEERS_FROM << 16);
	}
	uint32_t i = (low & 0xffff) - 1;
	*peer = (int)(low >> 16);
	return i < LW_MAX_LINKS && lw_links[i] != NULL ? (int)i : -1;
}

static err_t to_link(struct netif *n, struct pbuf *p, const ip4_addr_t *to)
{
	(void)n;
	uint32_t i = (ntohl(to->addr) & 0xffff) - 1;
	if (i < LW_MAX_LINKS && lw_links[i] != NULL)
		lw_output(lw_links[i], p);
	return ERR_OK;
}

// Groups have no link: there are no routers here, and neighbours need not be found.
static err_t to_link6(struct netif *n, struct pbuf *p, const ip6_addr_t *to)
{
	(void)n;
	ip_addr_t a = IPADDR6_INIT(to->addr[0], to->addr[1], to->addr[2], to->addr[3]);
	int peer, i = lw_link_at(&a, &peer);
	if (i >= 0)
		lw_output(lw_links[i], p);
	return ERR_OK;
}

static err_t plug(struct netif *n)
{
	n->name[0] = 's';
	n->name[1] = 'm';
	n->mtu = LW_MTU;
	n->output = to_link;
	n->output_ip6 = to_link6;
	return ERR_OK;
}

static void started(void *arg) { STORE((int *)arg, 1); }

int lw_start(void)
{
	static int up;
	// lwIP's buffers are malloc's, which gives the end of its heap back to the kernel as soon as
	// 128 KiB are free there (mallopt(3)), and takes pages again for the next segments: of a
	// window of 1 MiB in segments of 8960 octets that was most of the time.
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	ip4_addr_t mask, none;
	ip_addr_t a, a6;
	tcpip_init(started, &up);
	for (int i = 0; LOAD(&up) == 0; i++) {
		struct timespec ms = {0, 1000000};
		if (i == 5000)
			return -ETIMEDOUT;
		nanosleep(&ms, NULL);
	}
	lw_our_address(&a, 0);
	lw_our_address(&a6, 1);
	IP4_ADDR(&mask, 255, 0, 0, 0);
	ip4_addr_set_zero(&none);
	sys_lock_tcpip_core();
	struct netif *n = netif_add(&lw_netif, ip_2_ip4(&a), &mask, &none, NULL, plug, ip_input);
	if (n != NULL) {
		netif_set_default(n);
		netif_set_up(n);
		netif_set_link_up(n);
		// Nobody else can have the address, so no time is spent to find out.
		s8_t at = -1;
		if (netif_add_ip6_address(n, ip_2_ip6(&a6), &at) != ERR_OK || at < 0)
			n = NULL;
		else
			netif_ip6_addr_set_state(n, at, IP6_ADDR_PREFERRED);
	}
	sys_unlock_tcpip_core();
	return n == NULL ? -ENOMEM : 0;
}
