// Package devices finds the machine's RDMA devices and says what they are, or
// why there are none and what can be done about it.
//
// Four sources are joined: RDMA netlink (vishvananda/netlink) names devices even where sysfs is hidden; rdmamap knows
// ports, character devices and the network interface behind a device; sysfs has the attributes; kernel verbs, where
// they can be used, have MTUs and limits. [Collect] reads them through a [Host], so that tests need no device.
//
// # Limitations
//
// rdmamap looks at fixed paths, reports no errors, and answers a network interface with the first device that has it:
// with two devices on one interface (an adapter and soft-RoCE over it) it can name the wrong one. Its answer is
// therefore used only for interfaces that no device's own sysfs entry names; that covers IPoIB, and iWARP devices on
// kernels without gid_attrs/ndevs for them.
//
// The kernel reads hw_counters from a device at most once in their lifespan, 10 ms by default: the change over a
// shorter time can be missed. Counters are of the device, whoever uses it.
package devices
