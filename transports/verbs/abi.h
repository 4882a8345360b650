//go:build cgo && linux

// The part of the user ABI of libibverbs (IBVERBS_1.0, 1.1, 1.11) and librdmacm
// (RDMACM_1.0, 1.2) that this package uses. Neither library's headers are needed
// to build; ci/abi compares every offset, size and number with those of
// rdma-core where they are installed. Names differ on purpose, so that both
// can be included in one file.

#ifndef VERBS_ABI_H
#define VERBS_ABI_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { // transport_type of a device
	VA_TRANSPORT_IB = 0,
	VA_TRANSPORT_IWARP = 1,
};

enum { VA_PORT_ACTIVE = 4 };
enum { VA_LINK_INFINIBAND = 1, VA_LINK_ETHERNET = 2 };
enum { VA_QPT_RC = 2 };
enum { VA_ATOMIC_NONE = 0 };
enum { VA_MTU_256 = 1, VA_MTU_4096 = 5 };

enum {
	VA_QPS_RESET, VA_QPS_INIT, VA_QPS_RTR, VA_QPS_RTS, VA_QPS_SQD, VA_QPS_SQE, VA_QPS_ERR,
};

enum { // attributes that a modify names
	VA_QP_STATE = 1 << 0,
	VA_QP_CUR_STATE = 1 << 1,
	VA_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	VA_QP_ACCESS_FLAGS = 1 << 3,
	VA_QP_PKEY_INDEX = 1 << 4,
	VA_QP_PORT = 1 << 5,
	VA_QP_AV = 1 << 7,
	VA_QP_PATH_MTU = 1 << 8,
	VA_QP_TIMEOUT = 1 << 9,
	VA_QP_RETRY_CNT = 1 << 10,
	VA_QP_RNR_RETRY = 1 << 11,
	VA_QP_RQ_PSN = 1 << 12,
	VA_QP_MAX_RD_ATOMIC = 1 << 13,
	VA_QP_MIN_RNR_TIMER = 1 << 15,
	VA_QP_SQ_PSN = 1 << 16,
	VA_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	VA_QP_DEST_QPN = 1 << 20,
};

enum {
	VA_ACCESS_LOCAL_WRITE = 1 << 0,
	VA_ACCESS_REMOTE_WRITE = 1 << 1,
	VA_ACCESS_REMOTE_READ = 1 << 2,
	VA_ACCESS_REMOTE_ATOMIC = 1 << 3,
	VA_ACCESS_ON_DEMAND = 1 << 6,
};

enum { VA_SRQ_LIMIT = 1 << 1 };

enum {
	VA_WR_WRITE = 0,
	VA_WR_WRITE_IMM = 1,
	VA_WR_SEND = 2,
	VA_WR_SEND_IMM = 3,
	VA_WR_READ = 4,
	VA_WR_CMP_SWAP = 5,
	VA_WR_FETCH_ADD = 6,
};

enum {
	VA_SEND_FENCE = 1 << 0,
	VA_SEND_SIGNALED = 1 << 1,
	VA_SEND_SOLICITED = 1 << 2,
	VA_SEND_INLINE = 1 << 3,
};

enum {
	VA_WC_SUCCESS = 0,
	VA_WC_LOC_LEN_ERR = 1,
	VA_WC_LOC_QP_OP_ERR = 2,
	VA_WC_LOC_PROT_ERR = 4,
	VA_WC_WR_FLUSH_ERR = 5,
	VA_WC_BAD_RESP_ERR = 7,
	VA_WC_LOC_ACCESS_ERR = 8,
	VA_WC_REM_INV_REQ_ERR = 9,
	VA_WC_REM_ACCESS_ERR = 10,
	VA_WC_REM_OP_ERR = 11,
	VA_WC_RETRY_EXC_ERR = 12,
	VA_WC_RNR_RETRY_EXC_ERR = 13,
	VA_WC_REM_ABORT_ERR = 16,
	VA_WC_FATAL_ERR = 19,
	VA_WC_RESP_TIMEOUT_ERR = 20,
	VA_WC_GENERAL_ERR = 21,
};

enum {
	VA_WC_SEND = 0,
	VA_WC_WRITE = 1,
	VA_WC_READ = 2,
	VA_WC_CMP_SWAP = 3,
	VA_WC_FETCH_ADD = 4,
	VA_WC_RECV = 128,
	VA_WC_RECV_WRITE_IMM = 129,
};

enum { VA_WC_WITH_IMM = 1 << 1, VA_WC_WITH_INV = 1 << 3 };

enum {
	VA_EVENT_CQ_ERR = 0,
	VA_EVENT_QP_FATAL = 1,
	VA_EVENT_QP_REQ_ERR = 2,
	VA_EVENT_QP_ACCESS_ERR = 3,
	VA_EVENT_SQ_DRAINED = 5,
	VA_EVENT_DEVICE_FATAL = 8,
	VA_EVENT_SRQ_ERR = 14,
	VA_EVENT_SRQ_LIMIT_REACHED = 15,
	VA_EVENT_QP_LAST_WQE_REACHED = 16,
	VA_EVENT_WQ_FATAL = 19,
};

struct va_device {
	void *ops[2];
	int node_type;
	int transport_type;
	char name[64];
	char dev_name[64];
	char dev_path[256];
	char ibdev_path[256];
};

struct va_context;
struct va_cq;
struct va_qp;
struct va_srq;
struct va_wc;
struct va_send_wr;
struct va_recv_wr;

struct va_context_ops {
	void *before_poll[11];
	int (*poll_cq)(struct va_cq *, int, struct va_wc *);
	int (*req_notify_cq)(struct va_cq *, int);
	void *before_srq[7];
	int (*post_srq_recv)(struct va_srq *, struct va_recv_wr *, struct va_recv_wr **);
	void *before_post[4];
	int (*post_send)(struct va_qp *, struct va_send_wr *, struct va_send_wr **);
	int (*post_recv)(struct va_qp *, struct va_recv_wr *, struct va_recv_wr **);
	void *after_post[5];
};

struct va_context {
	struct va_device *device;
	struct va_context_ops ops;
	int cmd_fd;
	int async_fd;
	int num_comp_vectors;
	pthread_mutex_t mutex;
	void *abi_compat;
};

struct va_device_attr {
	char fw_ver[64];
	uint64_t node_guid;
	uint64_t sys_image_guid;
	uint64_t max_mr_size;
	uint64_t page_size_cap;
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	int max_qp;
	int max_qp_wr;
	unsigned device_cap_flags;
	int max_sge;
	int max_sge_rd;
	int max_cq;
	int max_cqe;
	int max_mr;
	int max_pd;
	int max_qp_rd_atom;
	int max_ee_rd_atom;
	int max_res_rd_atom;
	int max_qp_init_rd_atom;
	int max_ee_init_rd_atom;
	int atomic_cap;
	int max_ee;
	int max_rdd;
	int max_mw;
	int max_raw_ipv6_qp;
	int max_raw_ethy_qp;
	int max_mcast_grp;
	int max_mcast_qp_attach;
	int max_total_mcast_qp_attach;
	int max_ah;
	int max_fmr;
	int max_map_per_fmr;
	int max_srq;
	int max_srq_wr;
	int max_srq_sge;
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay;
	uint8_t phys_port_cnt;
};

// On-demand paging, in what ibv_query_device_ex(3) tells: in general, and which operations
// of each kind of QP may find a page missing.
enum {
	VA_ODP_SUPPORT = 1 << 0,
	VA_ODP_SEND = 1 << 0,
	VA_ODP_RECV = 1 << 1,
	VA_ODP_WRITE = 1 << 2,
	VA_ODP_READ = 1 << 3,
	VA_ODP_ATOMIC = 1 << 4,
	VA_ODP_SRQ_RECV = 1 << 5,
};

struct va_odp_caps {
	uint64_t general_caps;
	uint32_t rc_odp_caps;
	uint32_t uc_odp_caps;
	uint32_t ud_odp_caps;
};

// The first fields of the header's struct: the library fills as much as it is given.
struct va_device_attr_ex {
	struct va_device_attr orig_attr;
	uint32_t comp_mask;
	struct va_odp_caps odp_caps;
};

// What stands before the context of a provider that knows more than the first calls: the
// header's struct grows at its beginning, and sz says how far this library's goes.
struct va_context_ex {
	int (*query_device_ex)(struct va_context *, const void *input, struct va_device_attr_ex *, size_t);
	void *before_sz[10];
	uint64_t placeholder;
	size_t sz;
	struct va_context context;
};

// The exported query_port fills this much; later fields of the header's struct
// come through another way in.
struct va_port_attr {
	int state;
	int max_mtu;
	int active_mtu;
	int gid_tbl_len;
	uint32_t port_cap_flags;
	uint32_t max_msg_sz;
	uint32_t bad_pkey_cntr;
	uint32_t qkey_viol_cntr;
	uint16_t pkey_tbl_len;
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t lmc;
	uint8_t max_vl_num;
	uint8_t sm_sl;
	uint8_t subnet_timeout;
	uint8_t init_type_reply;
	uint8_t active_width;
	uint8_t active_speed;
	uint8_t phys_state;
	uint8_t link_layer;
	uint8_t flags;
	uint16_t port_cap_flags2;
};

struct va_pd {
	struct va_context *context;
	uint32_t handle;
};

struct va_mr {
	struct va_context *context;
	struct va_pd *pd;
	void *addr;
	size_t length;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

struct va_comp_channel {
	struct va_context *context;
	int fd;
	int refcnt;
};

struct va_cq {
	struct va_context *context;
	struct va_comp_channel *channel;
	void *cq_context;
	uint32_t handle;
	int cqe;
};

struct va_srq {
	struct va_context *context;
	void *srq_context;
	struct va_pd *pd;
	uint32_t handle;
};

struct va_qp {
	struct va_context *context;
	void *qp_context;
	struct va_pd *pd;
	struct va_cq *send_cq;
	struct va_cq *recv_cq;
	struct va_srq *srq;
	uint32_t handle;
	uint32_t qp_num;
	int state;
	int qp_type;
};

struct va_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

struct va_qp_init_attr {
	void *qp_context;
	struct va_cq *send_cq;
	struct va_cq *recv_cq;
	struct va_srq *srq;
	struct va_qp_cap cap;
	int qp_type;
	int sq_sig_all;
};

struct va_global_route {
	union {
		uint8_t raw[16];
		uint64_t align;
	} dgid;
	uint32_t flow_label;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
};

struct va_ah_attr {
	struct va_global_route grh;
	uint16_t dlid;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t is_global;
	uint8_t port_num;
};

struct va_qp_attr {
	int qp_state;
	int cur_qp_state;
	int path_mtu;
	int path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	unsigned qp_access_flags;
	struct va_qp_cap cap;
	struct va_ah_attr ah_attr;
	struct va_ah_attr alt_ah_attr;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_port_num;
	uint8_t alt_timeout;
	uint32_t rate_limit;
};

struct va_srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit;
};

struct va_srq_init_attr {
	void *srq_context;
	struct va_srq_attr attr;
};

enum { VA_GID_TYPE_IB = 0, VA_GID_TYPE_ROCE_V1 = 1, VA_GID_TYPE_ROCE_V2 = 2 };

struct va_gid_entry {
	uint8_t gid[16];
	uint32_t gid_index;
	uint32_t port_num;
	uint32_t gid_type;
	uint32_t ndev_ifindex;
};

struct va_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

struct va_send_wr {
	uint64_t wr_id;
	struct va_send_wr *next;
	struct va_sge *sg_list;
	int num_sge;
	int opcode;
	unsigned send_flags;
	uint32_t imm_data; // big endian
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
	} wr;
	uint32_t remote_srqn;
	uint64_t tail[6]; // memory windows and segmentation offload, unused here
};

struct va_recv_wr {
	uint64_t wr_id;
	struct va_recv_wr *next;
	struct va_sge *sg_list;
	int num_sge;
};

struct va_wc {
	uint64_t wr_id;
	int status;
	int opcode;
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t imm_data; // big endian; or the key that was invalidated, host order
	uint32_t qp_num;
	uint32_t src_qp;
	unsigned wc_flags;
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits;
};

struct va_async_event {
	union {
		struct va_cq *cq;
		struct va_qp *qp;
		struct va_srq *srq;
		int port_num;
	} element;
	int event_type;
};

enum { VA_PS_TCP = 0x0106 };
enum { VA_OPTION_ID = 0, VA_OPTION_ID_TOS = 0, VA_OPTION_ID_REUSEADDR = 1, VA_OPTION_ID_AFONLY = 2 };

enum {
	VA_CM_ADDR_RESOLVED,
	VA_CM_ADDR_ERROR,
	VA_CM_ROUTE_RESOLVED,
	VA_CM_ROUTE_ERROR,
	VA_CM_CONNECT_REQUEST,
	VA_CM_CONNECT_RESPONSE,
	VA_CM_CONNECT_ERROR,
	VA_CM_UNREACHABLE,
	VA_CM_REJECTED,
	VA_CM_ESTABLISHED,
	VA_CM_DISCONNECTED,
	VA_CM_DEVICE_REMOVAL,
};

struct va_cm_channel {
	int fd;
};

struct va_cm_id {
	struct va_context *verbs;
	struct va_cm_channel *channel;
	void *context;
	struct va_qp *qp;
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
	uint64_t ibaddr[5];
	void *path_rec;
	int num_paths;
	int route_pad;
	int ps;
	uint8_t port_num;
};

struct va_cm_param {
	const void *private_data;
	uint8_t private_data_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint32_t qp_num;
};

struct va_cm_event {
	struct va_cm_id *id;
	struct va_cm_id *listen_id;
	int event;
	int status;
	struct va_cm_param conn; // of a union whose other members are larger
};

#endif
