package rdmap

import "github.com/rdmaperf/rdmaperf/softstack/mpa"

// RTROf tells which RTR indication a message is (RFC 6581 §9.2): a zero-length
// Send, a zero-length RDMA Write, or a Read Request for no octets. payload is
// what follows the DDP header. Any other message is mpa.RTRNone.
func RTROf(op Opcode, payload []byte) mpa.RTR {
	switch {
	case op == OpSend && len(payload) == 0:
		return mpa.RTRSend
	case op == OpWrite && len(payload) == 0:
		return mpa.RTRWrite
	case op == OpReadReq && len(payload) == ReadRequestLen && GetReadRequest(payload).Size == 0:
		return mpa.RTRRead
	}
	return mpa.RTRNone
}
