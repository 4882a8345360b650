// Package devices finds the machine's RDMA devices, or says why there are none and what can be done about it.
// It joins RDMA netlink, rdmamap, sysfs and kernel verbs, which [Collect] reads through a [Host], so that tests need no
// device. rdmamap names the first device of an interface, and so is asked only for interfaces that no device's sysfs
// entry names.
// The kernel reads hw_counters at most once in their lifespan, 10 ms by default. Counters are of the device, whoever
// uses it.
package devices
