package devices

// Report is the answer of `rdmaperf devices`. Devices is never nil, so that JSON shows an empty array.
type Report struct {
	Devices []Device `json:"devices"`
	// Reason says why Devices is empty; Hints say what to try, one step each.
	Reason string   `json:"reason,omitempty"`
	Hints  []string `json:"hints,omitempty"`
	// Notes are contradictions between the sources.
	Notes []string `json:"notes,omitempty"`
	// Default is what rdmaperf run measures without --transport.
	Default string `json:"default_transport,omitempty"`
	// Soft are the transports that need no device.
	Soft []Soft `json:"soft_transports"`
}

type Soft struct {
	Transport   string `json:"transport"`
	Description string `json:"description"`
}

// Device is one RDMA device. Empty fields are unknown.
type Device struct {
	Name         string   `json:"name"`
	NodeType     string   `json:"node_type,omitempty"` // CA, RNIC, usNIC, …
	Driver       string   `json:"driver,omitempty"`
	Software     bool     `json:"software"` // no hardware behind it: rxe, siw
	Firmware     string   `json:"firmware,omitempty"`
	NodeGUID     string   `json:"node_guid,omitempty"`
	SysImageGUID string   `json:"sys_image_guid,omitempty"`
	CharDevices  []string `json:"char_devices,omitempty"`
	NetDevs      []string `json:"netdevs,omitempty"`
	// NetDevMTU are the MTUs of NetDevs, bytes.
	NetDevMTU map[string]int `json:"netdev_mtu,omitempty"`
	// PCIeSpeed and PCIeWidth are those of the slot now, as sysfs words them: "16.0 GT/s PCIe", 16 lanes.
	PCIeSpeed string `json:"pcie_speed,omitempty"`
	PCIeWidth int    `json:"pcie_width,omitempty"`
	// Limits are nil where kernel verbs cannot open the device.
	Limits *Limits `json:"limits,omitempty"`
	Ports  []Port  `json:"ports"`
}

// Limits are what a device can do at most; what is left depends on its users.
type Limits struct {
	QPs        int    `json:"max_qp"`
	QPWR       int    `json:"max_qp_wr"`
	SGE        int    `json:"max_sge"`
	CQs        int    `json:"max_cq"`
	CQE        int    `json:"max_cqe"`
	MRs        int    `json:"max_mr"`
	MRSize     uint64 `json:"max_mr_size"` // bytes
	SRQs       int    `json:"max_srq"`
	SRQWR      int    `json:"max_srq_wr"`
	RDAtom     int    `json:"max_qp_rd_atom"`      // reads and atomics a QP takes at once
	InitRDAtom int    `json:"max_qp_init_rd_atom"` // and has on the way at once
	Atomics    bool   `json:"atomics"`
}

// Port is one port of a device. Rate is as sysfs words it: "100 Gb/sec (4X EDR)".
type Port struct {
	Number    int    `json:"number"`
	State     string `json:"state,omitempty"`      // DOWN, INIT, ARMED, ACTIVE, ACTIVE_DEFER
	PhysState string `json:"phys_state,omitempty"` // LinkUp, Polling, Disabled, …
	Rate      string `json:"rate,omitempty"`
	LinkLayer string `json:"link_layer,omitempty"` // InfiniBand, Ethernet
	LID       string `json:"lid,omitempty"`        // InfiniBand only
	MTU       int    `json:"active_mtu,omitempty"` // of the path, bytes; needs kernel verbs, as does MaxMsg
	MaxMsg    uint64 `json:"max_msg_sz,omitempty"` // bytes
	GIDs      []GID  `json:"gids"`
}

// GID is one entry of a port's GID table; Index is what -x takes. Empty entries are left out.
type GID struct {
	Index  int    `json:"index"`
	GID    string `json:"gid"`
	Type   string `json:"type,omitempty"` // IB, RoCE v1, RoCE v2, iWARP
	NetDev string `json:"netdev,omitempty"`
}
