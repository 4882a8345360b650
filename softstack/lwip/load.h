//go:build lwip

// lwIP by dlopen: a program built against the headers starts on a machine without
// the library, and says what it lacks. The list is all that is called; the macros
// let the rest read as lwIP's own examples do.
#ifndef LW_LOAD_H
#define LW_LOAD_H
#include "lwip/ip4.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/sys.h"
#include "lwip/tcp.h"
#include "lwip/tcpip.h"
#include "lwip/etharp.h"
#include "netif/ethernet.h"

#define LW_CALLS(X) \
	X(tcpip_init) X(tcpip_inpkt) X(tcpip_callback) X(netif_add) X(netif_set_up) X(netif_set_default) X(netif_set_link_up) X(netif_add_ip6_address) X(netif_ip6_addr_set_state) X(ip_input) \
	X(pbuf_alloc) X(pbuf_alloced_custom) X(pbuf_free) X(pbuf_copy_partial) X(pbuf_take) \
	X(tcp_new_ip_type) X(tcp_arg) X(tcp_recv) X(tcp_sent) X(tcp_err) X(tcp_poll) X(tcp_accept) \
	X(tcp_bind) X(tcp_connect) X(tcp_listen_with_backlog) X(tcp_write) X(tcp_output) X(tcp_recved) \
	X(tcp_shutdown) X(tcp_close) X(tcp_abort) X(tcp_process_refused_data) \
	X(sys_lock_tcpip_core) X(sys_unlock_tcpip_core) X(sys_now) X(ethernet_input) X(etharp_output) X(etharp_find_addr) X(etharp_request) \
	X(tcp_tw_pcbs) X(tcp_active_pcbs)

struct lw_calls {
#define X(f) __typeof__(&f) f;
	LW_CALLS(X)
#undef X
};
extern struct lw_calls lw_lib;
const char *lw_unlike(void *lib); // NULL, or how it differs from the headers

#ifndef LW_LOAD_IMPLEMENTATION
#define tcpip_init (*lw_lib.tcpip_init)
#define tcpip_inpkt (*lw_lib.tcpip_inpkt)
#define tcpip_callback (*lw_lib.tcpip_callback)
#define netif_add (*lw_lib.netif_add)
#define netif_set_up (*lw_lib.netif_set_up)
#define netif_set_default (*lw_lib.netif_set_default)
#define netif_set_link_up (*lw_lib.netif_set_link_up)
#define netif_add_ip6_address (*lw_lib.netif_add_ip6_address)
#define netif_ip6_addr_set_state (*lw_lib.netif_ip6_addr_set_state)
#define ip_input (*lw_lib.ip_input)
#define pbuf_alloc (*lw_lib.pbuf_alloc)
#define pbuf_alloced_custom (*lw_lib.pbuf_alloced_custom)
#define pbuf_free (*lw_lib.pbuf_free)
#define pbuf_copy_partial (*lw_lib.pbuf_copy_partial)
#define pbuf_take (*lw_lib.pbuf_take)
#define tcp_new_ip_type (*lw_lib.tcp_new_ip_type)
#define tcp_arg (*lw_lib.tcp_arg)
#define tcp_recv (*lw_lib.tcp_recv)
#define tcp_sent (*lw_lib.tcp_sent)
#define tcp_err (*lw_lib.tcp_err)
#define tcp_poll (*lw_lib.tcp_poll)
#define tcp_accept (*lw_lib.tcp_accept)
#define tcp_bind (*lw_lib.tcp_bind)
#define tcp_connect (*lw_lib.tcp_connect)
#define tcp_listen_with_backlog (*lw_lib.tcp_listen_with_backlog)
#define tcp_write (*lw_lib.tcp_write)
#define tcp_output (*lw_lib.tcp_output)
#define tcp_recved (*lw_lib.tcp_recved)
#define tcp_shutdown (*lw_lib.tcp_shutdown)
#define tcp_close (*lw_lib.tcp_close)
#define tcp_abort (*lw_lib.tcp_abort)
#define tcp_process_refused_data (*lw_lib.tcp_process_refused_data)
#define sys_lock_tcpip_core (*lw_lib.sys_lock_tcpip_core)
#define sys_unlock_tcpip_core (*lw_lib.sys_unlock_tcpip_core)
#define sys_now (*lw_lib.sys_now)
#define ethernet_input (*lw_lib.ethernet_input)
#define etharp_output (*lw_lib.etharp_output)
#define etharp_find_addr (*lw_lib.etharp_find_addr)
#define etharp_request (*lw_lib.etharp_request)
#define tcp_tw_pcbs (*lw_lib.tcp_tw_pcbs)
#define tcp_active_pcbs (*lw_lib.tcp_active_pcbs)
#endif
#endif
