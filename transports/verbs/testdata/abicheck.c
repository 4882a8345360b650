// Compares abi.h with the headers of rdma-core: sizes, offsets and numbers.
// Compiled, never run: cc -fsyntax-only -I.. abicheck.c

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "../abi.h"

#define SAME(what, ours, theirs) _Static_assert((ours) == (theirs), what)
#define SIZE(ours, theirs) SAME("size of " #ours, sizeof(struct ours), sizeof(struct theirs))
#define AT(ours, theirs, o, t) \
	SAME("offset of " #ours "." #o, offsetof(struct ours, o), offsetof(struct theirs, t)); \
	SAME("size of " #ours "." #o, sizeof(((struct ours *)0)->o), sizeof(((struct theirs *)0)->t))

SIZE(va_device, ibv_device);
AT(va_device, ibv_device, node_type, node_type);
AT(va_device, ibv_device, transport_type, transport_type);
AT(va_device, ibv_device, name, name);
AT(va_device, ibv_device, dev_name, dev_name);
AT(va_device, ibv_device, dev_path, dev_path);
AT(va_device, ibv_device, ibdev_path, ibdev_path);

SIZE(va_context_ops, ibv_context_ops);
AT(va_context_ops, ibv_context_ops, poll_cq, poll_cq);
AT(va_context_ops, ibv_context_ops, req_notify_cq, req_notify_cq);
AT(va_context_ops, ibv_context_ops, post_srq_recv, post_srq_recv);
AT(va_context_ops, ibv_context_ops, post_send, post_send);
AT(va_context_ops, ibv_context_ops, post_recv, post_recv);

SIZE(va_context, ibv_context);
AT(va_context, ibv_context, device, device);
AT(va_context, ibv_context, ops, ops);
AT(va_context, ibv_context, cmd_fd, cmd_fd);
AT(va_context, ibv_context, async_fd, async_fd);
AT(va_context, ibv_context, num_comp_vectors, num_comp_vectors);
AT(va_context, ibv_context, mutex, mutex);
AT(va_context, ibv_context, abi_compat, abi_compat);

// Our struct is the end of theirs.
#define BEHIND(o, t) \
	SAME("bytes of va_context_ex from " #o " on", sizeof(struct va_context_ex) - offsetof(struct va_context_ex, o), \
		sizeof(struct verbs_context) - offsetof(struct verbs_context, t))
BEHIND(query_device_ex, query_device_ex);
BEHIND(sz, sz);
BEHIND(context, context);
AT(va_device_attr_ex, ibv_device_attr_ex, orig_attr, orig_attr);
AT(va_device_attr_ex, ibv_device_attr_ex, comp_mask, comp_mask);
AT(va_device_attr_ex, ibv_device_attr_ex, odp_caps, odp_caps);
AT(va_odp_caps, ibv_odp_caps, general_caps, general_caps);
AT(va_odp_caps, ibv_odp_caps, rc_odp_caps, per_transport_caps.rc_odp_caps);
AT(va_odp_caps, ibv_odp_caps, uc_odp_caps, per_transport_caps.uc_odp_caps);
AT(va_odp_caps, ibv_odp_caps, ud_odp_caps, per_transport_caps.ud_odp_caps);
SAME("VA_ODP_SUPPORT", (int)VA_ODP_SUPPORT, (int)IBV_ODP_SUPPORT);
SAME("VA_ODP_SEND", (int)VA_ODP_SEND, (int)IBV_ODP_SUPPORT_SEND);
SAME("VA_ODP_RECV", (int)VA_ODP_RECV, (int)IBV_ODP_SUPPORT_RECV);
SAME("VA_ODP_WRITE", (int)VA_ODP_WRITE, (int)IBV_ODP_SUPPORT_WRITE);
SAME("VA_ODP_READ", (int)VA_ODP_READ, (int)IBV_ODP_SUPPORT_READ);
SAME("VA_ODP_ATOMIC", (int)VA_ODP_ATOMIC, (int)IBV_ODP_SUPPORT_ATOMIC);
SAME("VA_ODP_SRQ_RECV", (int)VA_ODP_SRQ_RECV, (int)IBV_ODP_SUPPORT_SRQ_RECV);

SIZE(va_device_attr, ibv_device_attr);
AT(va_device_attr, ibv_device_attr, fw_ver, fw_ver);
AT(va_device_attr, ibv_device_attr, node_guid, node_guid);
AT(va_device_attr, ibv_device_attr, sys_image_guid, sys_image_guid);
AT(va_device_attr, ibv_device_attr, max_mr_size, max_mr_size);
AT(va_device_attr, ibv_device_attr, page_size_cap, page_size_cap);
AT(va_device_attr, ibv_device_attr, vendor_id, vendor_id);
AT(va_device_attr, ibv_device_attr, vendor_part_id, vendor_part_id);
AT(va_device_attr, ibv_device_attr, hw_ver, hw_ver);
AT(va_device_attr, ibv_device_attr, max_qp, max_qp);
AT(va_device_attr, ibv_device_attr, max_qp_wr, max_qp_wr);
AT(va_device_attr, ibv_device_attr, device_cap_flags, device_cap_flags);
AT(va_device_attr, ibv_device_attr, max_sge, max_sge);
AT(va_device_attr, ibv_device_attr, max_sge_rd, max_sge_rd);
AT(va_device_attr, ibv_device_attr, max_cq, max_cq);
AT(va_device_attr, ibv_device_attr, max_cqe, max_cqe);
AT(va_device_attr, ibv_device_attr, max_mr, max_mr);
AT(va_device_attr, ibv_device_attr, max_pd, max_pd);
AT(va_device_attr, ibv_device_attr, max_qp_rd_atom, max_qp_rd_atom);
AT(va_device_attr, ibv_device_attr, max_ee_rd_atom, max_ee_rd_atom);
AT(va_device_attr, ibv_device_attr, max_res_rd_atom, max_res_rd_atom);
AT(va_device_attr, ibv_device_attr, max_qp_init_rd_atom, max_qp_init_rd_atom);
AT(va_device_attr, ibv_device_attr, max_ee_init_rd_atom, max_ee_init_rd_atom);
AT(va_device_attr, ibv_device_attr, atomic_cap, atomic_cap);
AT(va_device_attr, ibv_device_attr, max_ee, max_ee);
AT(va_device_attr, ibv_device_attr, max_rdd, max_rdd);
AT(va_device_attr, ibv_device_attr, max_mw, max_mw);
AT(va_device_attr, ibv_device_attr, max_raw_ipv6_qp, max_raw_ipv6_qp);
AT(va_device_attr, ibv_device_attr, max_raw_ethy_qp, max_raw_ethy_qp);
AT(va_device_attr, ibv_device_attr, max_mcast_grp, max_mcast_grp);
AT(va_device_attr, ibv_device_attr, max_mcast_qp_attach, max_mcast_qp_attach);
AT(va_device_attr, ibv_device_attr, max_total_mcast_qp_attach, max_total_mcast_qp_attach);
AT(va_device_attr, ibv_device_attr, max_ah, max_ah);
AT(va_device_attr, ibv_device_attr, max_fmr, max_fmr);
AT(va_device_attr, ibv_device_attr, max_map_per_fmr, max_map_per_fmr);
AT(va_device_attr, ibv_device_attr, max_srq, max_srq);
AT(va_device_attr, ibv_device_attr, max_srq_wr, max_srq_wr);
AT(va_device_attr, ibv_device_attr, max_srq_sge, max_srq_sge);
AT(va_device_attr, ibv_device_attr, max_pkeys, max_pkeys);
AT(va_device_attr, ibv_device_attr, local_ca_ack_delay, local_ca_ack_delay);
AT(va_device_attr, ibv_device_attr, phys_port_cnt, phys_port_cnt);

SIZE(va_port_attr, ibv_port_attr);
AT(va_port_attr, ibv_port_attr, state, state);
AT(va_port_attr, ibv_port_attr, max_mtu, max_mtu);
AT(va_port_attr, ibv_port_attr, active_mtu, active_mtu);
AT(va_port_attr, ibv_port_attr, gid_tbl_len, gid_tbl_len);
AT(va_port_attr, ibv_port_attr, port_cap_flags, port_cap_flags);
AT(va_port_attr, ibv_port_attr, max_msg_sz, max_msg_sz);
AT(va_port_attr, ibv_port_attr, bad_pkey_cntr, bad_pkey_cntr);
AT(va_port_attr, ibv_port_attr, qkey_viol_cntr, qkey_viol_cntr);
AT(va_port_attr, ibv_port_attr, pkey_tbl_len, pkey_tbl_len);
AT(va_port_attr, ibv_port_attr, lid, lid);
AT(va_port_attr, ibv_port_attr, sm_lid, sm_lid);
AT(va_port_attr, ibv_port_attr, lmc, lmc);
AT(va_port_attr, ibv_port_attr, max_vl_num, max_vl_num);
AT(va_port_attr, ibv_port_attr, sm_sl, sm_sl);
AT(va_port_attr, ibv_port_attr, subnet_timeout, subnet_timeout);
AT(va_port_attr, ibv_port_attr, init_type_reply, init_type_reply);
AT(va_port_attr, ibv_port_attr, active_width, active_width);
AT(va_port_attr, ibv_port_attr, active_speed, active_speed);
AT(va_port_attr, ibv_port_attr, phys_state, phys_state);
AT(va_port_attr, ibv_port_attr, link_layer, link_layer);
AT(va_port_attr, ibv_port_attr, flags, flags);
AT(va_port_attr, ibv_port_attr, port_cap_flags2, port_cap_flags2);

SIZE(va_pd, ibv_pd);
AT(va_pd, ibv_pd, context, context);
AT(va_pd, ibv_pd, handle, handle);

SIZE(va_mr, ibv_mr);
AT(va_mr, ibv_mr, context, context);
AT(va_mr, ibv_mr, pd, pd);
AT(va_mr, ibv_mr, addr, addr);
AT(va_mr, ibv_mr, length, length);
AT(va_mr, ibv_mr, handle, handle);
AT(va_mr, ibv_mr, lkey, lkey);
AT(va_mr, ibv_mr, rkey, rkey);

SIZE(va_comp_channel, ibv_comp_channel);
AT(va_comp_channel, ibv_comp_channel, context, context);
AT(va_comp_channel, ibv_comp_channel, fd, fd);
AT(va_comp_channel, ibv_comp_channel, refcnt, refcnt);

AT(va_cq, ibv_cq, context, context);
AT(va_cq, ibv_cq, channel, channel);
AT(va_cq, ibv_cq, cq_context, cq_context);
AT(va_cq, ibv_cq, handle, handle);
AT(va_cq, ibv_cq, cqe, cqe);

AT(va_srq, ibv_srq, context, context);
AT(va_srq, ibv_srq, srq_context, srq_context);
AT(va_srq, ibv_srq, pd, pd);
AT(va_srq, ibv_srq, handle, handle);

AT(va_qp, ibv_qp, context, context);
AT(va_qp, ibv_qp, qp_context, qp_context);
AT(va_qp, ibv_qp, pd, pd);
AT(va_qp, ibv_qp, send_cq, send_cq);
AT(va_qp, ibv_qp, recv_cq, recv_cq);
AT(va_qp, ibv_qp, srq, srq);
AT(va_qp, ibv_qp, handle, handle);
AT(va_qp, ibv_qp, qp_num, qp_num);
AT(va_qp, ibv_qp, state, state);
AT(va_qp, ibv_qp, qp_type, qp_type);

SIZE(va_qp_cap, ibv_qp_cap);
AT(va_qp_cap, ibv_qp_cap, max_send_wr, max_send_wr);
AT(va_qp_cap, ibv_qp_cap, max_recv_wr, max_recv_wr);
AT(va_qp_cap, ibv_qp_cap, max_send_sge, max_send_sge);
AT(va_qp_cap, ibv_qp_cap, max_recv_sge, max_recv_sge);
AT(va_qp_cap, ibv_qp_cap, max_inline_data, max_inline_data);

SIZE(va_qp_init_attr, ibv_qp_init_attr);
AT(va_qp_init_attr, ibv_qp_init_attr, qp_context, qp_context);
AT(va_qp_init_attr, ibv_qp_init_attr, send_cq, send_cq);
AT(va_qp_init_attr, ibv_qp_init_attr, recv_cq, recv_cq);
AT(va_qp_init_attr, ibv_qp_init_attr, srq, srq);
AT(va_qp_init_attr, ibv_qp_init_attr, cap, cap);
AT(va_qp_init_attr, ibv_qp_init_attr, qp_type, qp_type);
AT(va_qp_init_attr, ibv_qp_init_attr, sq_sig_all, sq_sig_all);

SIZE(va_global_route, ibv_global_route);
AT(va_global_route, ibv_global_route, dgid, dgid);
AT(va_global_route, ibv_global_route, flow_label, flow_label);
AT(va_global_route, ibv_global_route, sgid_index, sgid_index);
AT(va_global_route, ibv_global_route, hop_limit, hop_limit);
AT(va_global_route, ibv_global_route, traffic_class, traffic_class);

SIZE(va_ah_attr, ibv_ah_attr);
AT(va_ah_attr, ibv_ah_attr, grh, grh);
AT(va_ah_attr, ibv_ah_attr, dlid, dlid);
AT(va_ah_attr, ibv_ah_attr, sl, sl);
AT(va_ah_attr, ibv_ah_attr, src_path_bits, src_path_bits);
AT(va_ah_attr, ibv_ah_attr, static_rate, static_rate);
AT(va_ah_attr, ibv_ah_attr, is_global, is_global);
AT(va_ah_attr, ibv_ah_attr, port_num, port_num);

SIZE(va_qp_attr, ibv_qp_attr);
AT(va_qp_attr, ibv_qp_attr, qp_state, qp_state);
AT(va_qp_attr, ibv_qp_attr, cur_qp_state, cur_qp_state);
AT(va_qp_attr, ibv_qp_attr, path_mtu, path_mtu);
AT(va_qp_attr, ibv_qp_attr, path_mig_state, path_mig_state);
AT(va_qp_attr, ibv_qp_attr, qkey, qkey);
AT(va_qp_attr, ibv_qp_attr, rq_psn, rq_psn);
AT(va_qp_attr, ibv_qp_attr, sq_psn, sq_psn);
AT(va_qp_attr, ibv_qp_attr, dest_qp_num, dest_qp_num);
AT(va_qp_attr, ibv_qp_attr, qp_access_flags, qp_access_flags);
AT(va_qp_attr, ibv_qp_attr, cap, cap);
AT(va_qp_attr, ibv_qp_attr, ah_attr, ah_attr);
AT(va_qp_attr, ibv_qp_attr, alt_ah_attr, alt_ah_attr);
AT(va_qp_attr, ibv_qp_attr, pkey_index, pkey_index);
AT(va_qp_attr, ibv_qp_attr, alt_pkey_index, alt_pkey_index);
AT(va_qp_attr, ibv_qp_attr, en_sqd_async_notify, en_sqd_async_notify);
AT(va_qp_attr, ibv_qp_attr, sq_draining, sq_draining);
AT(va_qp_attr, ibv_qp_attr, max_rd_atomic, max_rd_atomic);
AT(va_qp_attr, ibv_qp_attr, max_dest_rd_atomic, max_dest_rd_atomic);
AT(va_qp_attr, ibv_qp_attr, min_rnr_timer, min_rnr_timer);
AT(va_qp_attr, ibv_qp_attr, port_num, port_num);
AT(va_qp_attr, ibv_qp_attr, timeout, timeout);
AT(va_qp_attr, ibv_qp_attr, retry_cnt, retry_cnt);
AT(va_qp_attr, ibv_qp_attr, rnr_retry, rnr_retry);
AT(va_qp_attr, ibv_qp_attr, alt_port_num, alt_port_num);
AT(va_qp_attr, ibv_qp_attr, alt_timeout, alt_timeout);
AT(va_qp_attr, ibv_qp_attr, rate_limit, rate_limit);

SIZE(va_srq_attr, ibv_srq_attr);
AT(va_srq_attr, ibv_srq_attr, max_wr, max_wr);
AT(va_srq_attr, ibv_srq_attr, max_sge, max_sge);
AT(va_srq_attr, ibv_srq_attr, srq_limit, srq_limit);

SIZE(va_srq_init_attr, ibv_srq_init_attr);
AT(va_srq_init_attr, ibv_srq_init_attr, srq_context, srq_context);
AT(va_srq_init_attr, ibv_srq_init_attr, attr, attr);

SIZE(va_gid_entry, ibv_gid_entry);
AT(va_gid_entry, ibv_gid_entry, gid, gid);
AT(va_gid_entry, ibv_gid_entry, gid_index, gid_index);
AT(va_gid_entry, ibv_gid_entry, port_num, port_num);
AT(va_gid_entry, ibv_gid_entry, gid_type, gid_type);
AT(va_gid_entry, ibv_gid_entry, ndev_ifindex, ndev_ifindex);
SAME("VA_GID_TYPE_IB", (int)VA_GID_TYPE_IB, (int)IBV_GID_TYPE_IB);
SAME("VA_GID_TYPE_ROCE_V1", (int)VA_GID_TYPE_ROCE_V1, (int)IBV_GID_TYPE_ROCE_V1);
SAME("VA_GID_TYPE_ROCE_V2", (int)VA_GID_TYPE_ROCE_V2, (int)IBV_GID_TYPE_ROCE_V2);

SIZE(va_sge, ibv_sge);
AT(va_sge, ibv_sge, addr, addr);
AT(va_sge, ibv_sge, length, length);
AT(va_sge, ibv_sge, lkey, lkey);

SIZE(va_send_wr, ibv_send_wr);
AT(va_send_wr, ibv_send_wr, wr_id, wr_id);
AT(va_send_wr, ibv_send_wr, next, next);
AT(va_send_wr, ibv_send_wr, sg_list, sg_list);
AT(va_send_wr, ibv_send_wr, num_sge, num_sge);
AT(va_send_wr, ibv_send_wr, opcode, opcode);
AT(va_send_wr, ibv_send_wr, send_flags, send_flags);
AT(va_send_wr, ibv_send_wr, imm_data, imm_data);
AT(va_send_wr, ibv_send_wr, wr, wr);
AT(va_send_wr, ibv_send_wr, remote_srqn, qp_type.xrc.remote_srqn);

SIZE(va_recv_wr, ibv_recv_wr);
AT(va_recv_wr, ibv_recv_wr, wr_id, wr_id);
AT(va_recv_wr, ibv_recv_wr, next, next);
AT(va_recv_wr, ibv_recv_wr, sg_list, sg_list);
AT(va_recv_wr, ibv_recv_wr, num_sge, num_sge);

SIZE(va_wc, ibv_wc);
AT(va_wc, ibv_wc, wr_id, wr_id);
AT(va_wc, ibv_wc, status, status);
AT(va_wc, ibv_wc, opcode, opcode);
AT(va_wc, ibv_wc, vendor_err, vendor_err);
AT(va_wc, ibv_wc, byte_len, byte_len);
AT(va_wc, ibv_wc, imm_data, imm_data);
AT(va_wc, ibv_wc, qp_num, qp_num);
AT(va_wc, ibv_wc, src_qp, src_qp);
AT(va_wc, ibv_wc, wc_flags, wc_flags);
AT(va_wc, ibv_wc, pkey_index, pkey_index);
AT(va_wc, ibv_wc, slid, slid);
AT(va_wc, ibv_wc, sl, sl);
AT(va_wc, ibv_wc, dlid_path_bits, dlid_path_bits);

SIZE(va_async_event, ibv_async_event);
AT(va_async_event, ibv_async_event, element, element);
AT(va_async_event, ibv_async_event, event_type, event_type);

SIZE(va_cm_channel, rdma_event_channel);
AT(va_cm_channel, rdma_event_channel, fd, fd);

AT(va_cm_id, rdma_cm_id, verbs, verbs);
AT(va_cm_id, rdma_cm_id, channel, channel);
AT(va_cm_id, rdma_cm_id, context, context);
AT(va_cm_id, rdma_cm_id, qp, qp);
AT(va_cm_id, rdma_cm_id, src, route.addr.src_storage);
AT(va_cm_id, rdma_cm_id, dst, route.addr.dst_storage);
AT(va_cm_id, rdma_cm_id, ibaddr, route.addr.addr);
AT(va_cm_id, rdma_cm_id, path_rec, route.path_rec);
AT(va_cm_id, rdma_cm_id, num_paths, route.num_paths);
AT(va_cm_id, rdma_cm_id, ps, ps);
AT(va_cm_id, rdma_cm_id, port_num, port_num);

SIZE(va_cm_param, rdma_conn_param);
AT(va_cm_param, rdma_conn_param, private_data, private_data);
AT(va_cm_param, rdma_conn_param, private_data_len, private_data_len);
AT(va_cm_param, rdma_conn_param, responder_resources, responder_resources);
AT(va_cm_param, rdma_conn_param, initiator_depth, initiator_depth);
AT(va_cm_param, rdma_conn_param, flow_control, flow_control);
AT(va_cm_param, rdma_conn_param, retry_count, retry_count);
AT(va_cm_param, rdma_conn_param, rnr_retry_count, rnr_retry_count);
AT(va_cm_param, rdma_conn_param, srq, srq);
AT(va_cm_param, rdma_conn_param, qp_num, qp_num);

AT(va_cm_event, rdma_cm_event, id, id);
AT(va_cm_event, rdma_cm_event, listen_id, listen_id);
AT(va_cm_event, rdma_cm_event, event, event);
AT(va_cm_event, rdma_cm_event, status, status);
AT(va_cm_event, rdma_cm_event, conn, param.conn);

AT(va_send_wr, ibv_send_wr, wr.rdma.remote_addr, wr.rdma.remote_addr);
AT(va_send_wr, ibv_send_wr, wr.rdma.rkey, wr.rdma.rkey);
AT(va_send_wr, ibv_send_wr, wr.atomic.remote_addr, wr.atomic.remote_addr);
AT(va_send_wr, ibv_send_wr, wr.atomic.compare_add, wr.atomic.compare_add);
AT(va_send_wr, ibv_send_wr, wr.atomic.swap, wr.atomic.swap);
AT(va_send_wr, ibv_send_wr, wr.atomic.rkey, wr.atomic.rkey);
SAME("alignment of a gid", _Alignof(struct va_global_route), _Alignof(struct ibv_global_route));

SAME("VA_TRANSPORT_IB", (int)VA_TRANSPORT_IB, (int)IBV_TRANSPORT_IB);
SAME("VA_TRANSPORT_IWARP", (int)VA_TRANSPORT_IWARP, (int)IBV_TRANSPORT_IWARP);
SAME("VA_PORT_ACTIVE", (int)VA_PORT_ACTIVE, (int)IBV_PORT_ACTIVE);
SAME("VA_LINK_INFINIBAND", (int)VA_LINK_INFINIBAND, (int)IBV_LINK_LAYER_INFINIBAND);
SAME("VA_LINK_ETHERNET", (int)VA_LINK_ETHERNET, (int)IBV_LINK_LAYER_ETHERNET);
SAME("VA_QPT_RC", (int)VA_QPT_RC, (int)IBV_QPT_RC);
SAME("VA_ATOMIC_NONE", (int)VA_ATOMIC_NONE, (int)IBV_ATOMIC_NONE);
SAME("VA_MTU_256", (int)VA_MTU_256, (int)IBV_MTU_256);
SAME("VA_MTU_4096", (int)VA_MTU_4096, (int)IBV_MTU_4096);
SAME("VA_QPS_RESET", (int)VA_QPS_RESET, (int)IBV_QPS_RESET);
SAME("VA_QPS_INIT", (int)VA_QPS_INIT, (int)IBV_QPS_INIT);
SAME("VA_QPS_RTR", (int)VA_QPS_RTR, (int)IBV_QPS_RTR);
SAME("VA_QPS_RTS", (int)VA_QPS_RTS, (int)IBV_QPS_RTS);
SAME("VA_QPS_SQD", (int)VA_QPS_SQD, (int)IBV_QPS_SQD);
SAME("VA_QPS_SQE", (int)VA_QPS_SQE, (int)IBV_QPS_SQE);
SAME("VA_QPS_ERR", (int)VA_QPS_ERR, (int)IBV_QPS_ERR);
SAME("VA_QP_STATE", (int)VA_QP_STATE, (int)IBV_QP_STATE);
SAME("VA_QP_CUR_STATE", (int)VA_QP_CUR_STATE, (int)IBV_QP_CUR_STATE);
SAME("VA_QP_EN_SQD_ASYNC_NOTIFY", (int)VA_QP_EN_SQD_ASYNC_NOTIFY, (int)IBV_QP_EN_SQD_ASYNC_NOTIFY);
SAME("VA_QP_ACCESS_FLAGS", (int)VA_QP_ACCESS_FLAGS, (int)IBV_QP_ACCESS_FLAGS);
SAME("VA_QP_PKEY_INDEX", (int)VA_QP_PKEY_INDEX, (int)IBV_QP_PKEY_INDEX);
SAME("VA_QP_PORT", (int)VA_QP_PORT, (int)IBV_QP_PORT);
SAME("VA_QP_AV", (int)VA_QP_AV, (int)IBV_QP_AV);
SAME("VA_QP_PATH_MTU", (int)VA_QP_PATH_MTU, (int)IBV_QP_PATH_MTU);
SAME("VA_QP_TIMEOUT", (int)VA_QP_TIMEOUT, (int)IBV_QP_TIMEOUT);
SAME("VA_QP_RETRY_CNT", (int)VA_QP_RETRY_CNT, (int)IBV_QP_RETRY_CNT);
SAME("VA_QP_RNR_RETRY", (int)VA_QP_RNR_RETRY, (int)IBV_QP_RNR_RETRY);
SAME("VA_QP_RQ_PSN", (int)VA_QP_RQ_PSN, (int)IBV_QP_RQ_PSN);
SAME("VA_QP_MAX_RD_ATOMIC", (int)VA_QP_MAX_RD_ATOMIC, (int)IBV_QP_MAX_QP_RD_ATOMIC);
SAME("VA_QP_MIN_RNR_TIMER", (int)VA_QP_MIN_RNR_TIMER, (int)IBV_QP_MIN_RNR_TIMER);
SAME("VA_QP_SQ_PSN", (int)VA_QP_SQ_PSN, (int)IBV_QP_SQ_PSN);
SAME("VA_QP_MAX_DEST_RD_ATOMIC", (int)VA_QP_MAX_DEST_RD_ATOMIC, (int)IBV_QP_MAX_DEST_RD_ATOMIC);
SAME("VA_QP_DEST_QPN", (int)VA_QP_DEST_QPN, (int)IBV_QP_DEST_QPN);
SAME("VA_ACCESS_LOCAL_WRITE", (int)VA_ACCESS_LOCAL_WRITE, (int)IBV_ACCESS_LOCAL_WRITE);
SAME("VA_ACCESS_REMOTE_WRITE", (int)VA_ACCESS_REMOTE_WRITE, (int)IBV_ACCESS_REMOTE_WRITE);
SAME("VA_ACCESS_REMOTE_READ", (int)VA_ACCESS_REMOTE_READ, (int)IBV_ACCESS_REMOTE_READ);
SAME("VA_ACCESS_REMOTE_ATOMIC", (int)VA_ACCESS_REMOTE_ATOMIC, (int)IBV_ACCESS_REMOTE_ATOMIC);
SAME("VA_SRQ_LIMIT", (int)VA_SRQ_LIMIT, (int)IBV_SRQ_LIMIT);
SAME("VA_WR_WRITE", (int)VA_WR_WRITE, (int)IBV_WR_RDMA_WRITE);
SAME("VA_WR_WRITE_IMM", (int)VA_WR_WRITE_IMM, (int)IBV_WR_RDMA_WRITE_WITH_IMM);
SAME("VA_WR_SEND", (int)VA_WR_SEND, (int)IBV_WR_SEND);
SAME("VA_WR_SEND_IMM", (int)VA_WR_SEND_IMM, (int)IBV_WR_SEND_WITH_IMM);
SAME("VA_WR_READ", (int)VA_WR_READ, (int)IBV_WR_RDMA_READ);
SAME("VA_WR_CMP_SWAP", (int)VA_WR_CMP_SWAP, (int)IBV_WR_ATOMIC_CMP_AND_SWP);
SAME("VA_WR_FETCH_ADD", (int)VA_WR_FETCH_ADD, (int)IBV_WR_ATOMIC_FETCH_AND_ADD);
SAME("VA_SEND_FENCE", (int)VA_SEND_FENCE, (int)IBV_SEND_FENCE);
SAME("VA_SEND_SIGNALED", (int)VA_SEND_SIGNALED, (int)IBV_SEND_SIGNALED);
SAME("VA_SEND_SOLICITED", (int)VA_SEND_SOLICITED, (int)IBV_SEND_SOLICITED);
SAME("VA_SEND_INLINE", (int)VA_SEND_INLINE, (int)IBV_SEND_INLINE);
SAME("VA_WC_SUCCESS", (int)VA_WC_SUCCESS, (int)IBV_WC_SUCCESS);
SAME("VA_WC_LOC_LEN_ERR", (int)VA_WC_LOC_LEN_ERR, (int)IBV_WC_LOC_LEN_ERR);
SAME("VA_WC_LOC_QP_OP_ERR", (int)VA_WC_LOC_QP_OP_ERR, (int)IBV_WC_LOC_QP_OP_ERR);
SAME("VA_WC_LOC_PROT_ERR", (int)VA_WC_LOC_PROT_ERR, (int)IBV_WC_LOC_PROT_ERR);
SAME("VA_WC_WR_FLUSH_ERR", (int)VA_WC_WR_FLUSH_ERR, (int)IBV_WC_WR_FLUSH_ERR);
SAME("VA_WC_BAD_RESP_ERR", (int)VA_WC_BAD_RESP_ERR, (int)IBV_WC_BAD_RESP_ERR);
SAME("VA_WC_LOC_ACCESS_ERR", (int)VA_WC_LOC_ACCESS_ERR, (int)IBV_WC_LOC_ACCESS_ERR);
SAME("VA_WC_REM_INV_REQ_ERR", (int)VA_WC_REM_INV_REQ_ERR, (int)IBV_WC_REM_INV_REQ_ERR);
SAME("VA_WC_REM_ACCESS_ERR", (int)VA_WC_REM_ACCESS_ERR, (int)IBV_WC_REM_ACCESS_ERR);
SAME("VA_WC_REM_OP_ERR", (int)VA_WC_REM_OP_ERR, (int)IBV_WC_REM_OP_ERR);
SAME("VA_WC_RETRY_EXC_ERR", (int)VA_WC_RETRY_EXC_ERR, (int)IBV_WC_RETRY_EXC_ERR);
SAME("VA_WC_RNR_RETRY_EXC_ERR", (int)VA_WC_RNR_RETRY_EXC_ERR, (int)IBV_WC_RNR_RETRY_EXC_ERR);
SAME("VA_WC_REM_ABORT_ERR", (int)VA_WC_REM_ABORT_ERR, (int)IBV_WC_REM_ABORT_ERR);
SAME("VA_WC_FATAL_ERR", (int)VA_WC_FATAL_ERR, (int)IBV_WC_FATAL_ERR);
SAME("VA_WC_RESP_TIMEOUT_ERR", (int)VA_WC_RESP_TIMEOUT_ERR, (int)IBV_WC_RESP_TIMEOUT_ERR);
SAME("VA_WC_GENERAL_ERR", (int)VA_WC_GENERAL_ERR, (int)IBV_WC_GENERAL_ERR);
SAME("VA_WC_SEND", (int)VA_WC_SEND, (int)IBV_WC_SEND);
SAME("VA_WC_WRITE", (int)VA_WC_WRITE, (int)IBV_WC_RDMA_WRITE);
SAME("VA_WC_READ", (int)VA_WC_READ, (int)IBV_WC_RDMA_READ);
SAME("VA_WC_CMP_SWAP", (int)VA_WC_CMP_SWAP, (int)IBV_WC_COMP_SWAP);
SAME("VA_WC_FETCH_ADD", (int)VA_WC_FETCH_ADD, (int)IBV_WC_FETCH_ADD);
SAME("VA_WC_RECV", (int)VA_WC_RECV, (int)IBV_WC_RECV);
SAME("VA_WC_RECV_WRITE_IMM", (int)VA_WC_RECV_WRITE_IMM, (int)IBV_WC_RECV_RDMA_WITH_IMM);
SAME("VA_WC_WITH_IMM", (int)VA_WC_WITH_IMM, (int)IBV_WC_WITH_IMM);
SAME("VA_WC_WITH_INV", (int)VA_WC_WITH_INV, (int)IBV_WC_WITH_INV);
SAME("VA_EVENT_CQ_ERR", (int)VA_EVENT_CQ_ERR, (int)IBV_EVENT_CQ_ERR);
SAME("VA_EVENT_QP_FATAL", (int)VA_EVENT_QP_FATAL, (int)IBV_EVENT_QP_FATAL);
SAME("VA_EVENT_QP_REQ_ERR", (int)VA_EVENT_QP_REQ_ERR, (int)IBV_EVENT_QP_REQ_ERR);
SAME("VA_EVENT_QP_ACCESS_ERR", (int)VA_EVENT_QP_ACCESS_ERR, (int)IBV_EVENT_QP_ACCESS_ERR);
SAME("VA_EVENT_SQ_DRAINED", (int)VA_EVENT_SQ_DRAINED, (int)IBV_EVENT_SQ_DRAINED);
SAME("VA_EVENT_DEVICE_FATAL", (int)VA_EVENT_DEVICE_FATAL, (int)IBV_EVENT_DEVICE_FATAL);
SAME("VA_EVENT_SRQ_ERR", (int)VA_EVENT_SRQ_ERR, (int)IBV_EVENT_SRQ_ERR);
SAME("VA_EVENT_SRQ_LIMIT_REACHED", (int)VA_EVENT_SRQ_LIMIT_REACHED, (int)IBV_EVENT_SRQ_LIMIT_REACHED);
SAME("VA_EVENT_QP_LAST_WQE_REACHED", (int)VA_EVENT_QP_LAST_WQE_REACHED, (int)IBV_EVENT_QP_LAST_WQE_REACHED);
SAME("VA_EVENT_WQ_FATAL", (int)VA_EVENT_WQ_FATAL, (int)IBV_EVENT_WQ_FATAL);
SAME("VA_PS_TCP", (int)VA_PS_TCP, (int)RDMA_PS_TCP);
SAME("VA_OPTION_ID", (int)VA_OPTION_ID, (int)RDMA_OPTION_ID);
SAME("VA_OPTION_ID_TOS", (int)VA_OPTION_ID_TOS, (int)RDMA_OPTION_ID_TOS);
SAME("VA_OPTION_ID_REUSEADDR", (int)VA_OPTION_ID_REUSEADDR, (int)RDMA_OPTION_ID_REUSEADDR);
SAME("VA_OPTION_ID_AFONLY", (int)VA_OPTION_ID_AFONLY, (int)RDMA_OPTION_ID_AFONLY);
SAME("VA_CM_ADDR_RESOLVED", (int)VA_CM_ADDR_RESOLVED, (int)RDMA_CM_EVENT_ADDR_RESOLVED);
SAME("VA_CM_ADDR_ERROR", (int)VA_CM_ADDR_ERROR, (int)RDMA_CM_EVENT_ADDR_ERROR);
SAME("VA_CM_ROUTE_RESOLVED", (int)VA_CM_ROUTE_RESOLVED, (int)RDMA_CM_EVENT_ROUTE_RESOLVED);
SAME("VA_CM_ROUTE_ERROR", (int)VA_CM_ROUTE_ERROR, (int)RDMA_CM_EVENT_ROUTE_ERROR);
SAME("VA_CM_CONNECT_REQUEST", (int)VA_CM_CONNECT_REQUEST, (int)RDMA_CM_EVENT_CONNECT_REQUEST);
SAME("VA_CM_CONNECT_RESPONSE", (int)VA_CM_CONNECT_RESPONSE, (int)RDMA_CM_EVENT_CONNECT_RESPONSE);
SAME("VA_CM_CONNECT_ERROR", (int)VA_CM_CONNECT_ERROR, (int)RDMA_CM_EVENT_CONNECT_ERROR);
SAME("VA_CM_UNREACHABLE", (int)VA_CM_UNREACHABLE, (int)RDMA_CM_EVENT_UNREACHABLE);
SAME("VA_CM_REJECTED", (int)VA_CM_REJECTED, (int)RDMA_CM_EVENT_REJECTED);
SAME("VA_CM_ESTABLISHED", (int)VA_CM_ESTABLISHED, (int)RDMA_CM_EVENT_ESTABLISHED);
SAME("VA_CM_DISCONNECTED", (int)VA_CM_DISCONNECTED, (int)RDMA_CM_EVENT_DISCONNECTED);
SAME("VA_CM_DEVICE_REMOVAL", (int)VA_CM_DEVICE_REMOVAL, (int)RDMA_CM_EVENT_DEVICE_REMOVAL);
