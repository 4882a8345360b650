// Package target is the application of an RDMA device under a wire test, led by the scripted peer over a control
// channel: TCP with one JSON object a line. Serve is the side with the device, Client that of the script. The target
// speaks first, which no iWARP responder does: so Find recognizes it. A connection owns one device and at most one
// stage at a time: a QP, its receives, and a listener or a connect.
//
// It is for tests: whoever may connect can read and write the target's test memory, make it connect to addresses, and
// keep it busy.
package target
