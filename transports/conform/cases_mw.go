package conform

// MW: memory windows, which rdma.Device has no call for. Their requirements are listed by
// name and are unsupported everywhere, so that whoever looks for them finds them.
var mwCases = windows([]Case{
	{ID: "mw/bind", Clause: "man ibv_bind_mw; IBTA 10.6.7.2*",
		Requirement: "A window of type 1 gives the access that it was bound with, and none after it was bound to " +
			"nothing; its key changes each time."},
	{ID: "mw/bind-by-post", Clause: "man ibv_post_send (IBV_WR_BIND_MW)",
		Requirement: "A window of type 2 is bound by a work request, under the key that the request names."},
	{ID: "mw/needs-bind-right", Clause: "IBTA C10-73",
		Requirement: "A registration without the right to be bound is not bound."},
	{ID: "mw/needs-local-write", Clause: "IBTA C10-74",
		Requirement: "A window with remote write needs a registration with local write."},
	{ID: "mw/bounds", Clause: "IBTA C10-75", Requirement: "A window reaches over neither end of its registration."},
	{ID: "mw/other-domain", Clause: "IBTA C10-72",
		Requirement: "A window of type 2 is bound on a QP of its own protection domain only."},
	{ID: "mw/bind-twice", Clause: "IBTA o10-37.2.30",
		Requirement: "A window of type 2 that is bound is not bound again before it was invalidated."},
	{ID: "mw/bind-nothing", Clause: "IBTA o10-37.2.40", Requirement: "A window of type 2 is not bound to 0 bytes."},
	{ID: "mw/zero-based", Clause: "IBTA o10-36.2.2", Requirement: "A window of type 1 does not begin at address 0."},
	{ID: "mw/other-qp", Clause: "IBTA 10.6.7*",
		Requirement: "A window of type 2B gives no access over another QP than the one that bound it."},
	{ID: "mw/registration-in-use", Clause: "IBTA 10.6.7.2.6; man ibv_dereg_mr",
		Requirement: "A registration with a window does not close, or the window gives no access when it has."},
	{ID: "mw/qp-ends", Clause: "IBTA o10-2.2.5",
		Requirement: "A QP can be destroyed while windows of type 2B are bound on it."},
	{ID: "mw/bind-order", Clause: "man ibv_bind_mw",
		Requirement: "A peer that was told the key by a send behind the bind can use it at once."},
})

func windows(cases []Case) []Case {
	for i := range cases {
		cases[i].Lacks = "rdma.Device has no call for memory windows"
	}
	return cases
}
