package fused

import (
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// send sends a message, after the open block if that is due; last ends this side's stream. The error is io.EOF when the
// server ended the call. bad says that the message cannot be sent.
func (cs *clientStream) send(m any, last bool) (bad bool, err error) {
	p, err := cs.pack.marshal(m)
	if err != nil {
		return true, err
	}
	defer p.free()
	return false, cs.sendParcel(m, &p, last)
}

func (cs *clientStream) sendParcel(m any, p *parcel, last bool) (err error) {
	fl, end := p.flags, flags(0)
	if last {
		end = fEnd
	}
	if len(cs.open) > 0 {
		fl |= fOpen
	}
	err = cs.st.sendMessage(cs.ctx, fl, cs.open, p.bytes, end, nil)
	if not, ok := err.(notSent); ok && len(cs.open) > 0 {
		cs.st.retract(not)
	}
	if len(cs.open) > 0 { // of streams it was sent long ago, and finish may read it at any time
		cs.open = nil
	}
	if err == nil {
		cs.ch.obs.sent(cs.ctx, m, p)
		return nil
	}
	if err == errOver {
		err = io.EOF
	}
	return err
}

// SendMsg leaves the reason of a call's end to RecvMsg: it returns io.EOF then, or nil where the method takes one
// message (grpc.ClientStream). Other errors are those of the message.
func (cs *clientStream) SendMsg(m any) error {
	cs.sendMu.Lock()
	defer cs.sendMu.Unlock()
	if cs.half {
		return status.Error(codes.Internal, "fused: SendMsg called after CloseSend")
	}
	bad, err := cs.send(m, !cs.desc.ClientStreams)
	if !cs.desc.ClientStreams {
		cs.half = true
	}
	if err == nil {
		return nil
	}
	if err != io.EOF {
		err = cs.finish(err)
	}
	switch {
	case bad:
		return err
	case cs.desc.ClientStreams:
		return io.EOF
	}
	return nil
}

func (cs *clientStream) CloseSend() error {
	cs.sendMu.Lock()
	defer cs.sendMu.Unlock()
	if cs.half {
		return nil
	}
	cs.half = true
	cs.s.send(kindStream, fEnd, cs.st.id, nil, 0, nil) // a failure ends the call and is RecvMsg's
	return nil
}

// RecvMsg receives a message. It returns io.EOF when the call ended well, otherwise its status.
func (cs *clientStream) RecvMsg(m any) error {
	if !cs.desc.ServerStreams {
		return cs.finish(cs.takeOnly(m))
	}
	got, err := cs.receive(m)
	if err == nil && got {
		return nil
	}
	if err == nil {
		err = cs.outcome()
	}
	if err = cs.finish(err); err == nil {
		return io.EOF
	}
	return err
}

func (cs *clientStream) receive(m any) (got bool, err error) {
	msg, err := cs.st.receive(cs.ctx)
	if err == io.EOF {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	wire := len(*msg.buf)
	if msg.packed && cs.pack.unpack == nil {
		cs.st.mu.Lock()
		name := cs.st.packer
		cs.st.mu.Unlock()
		if cs.pack.unpack, err = compressorFor(name); err != nil {
			return false, err
		}
	}
	size, err := cs.pack.unmarshal(msg, m)
	if err != nil {
		return false, err
	}
	if len(cs.ch.obs.list) > 0 {
		cs.tellHeader()
	}
	cs.ch.obs.received(cs.ctx, m, size, wire)
	return true, nil
}

func (cs *clientStream) takeOnly(m any) error {
	got, err := cs.receive(m)
	if err == nil && got {
		// The end often came with the message.
		if _, err = cs.st.receive(cs.ctx); err == nil {
			err = status.Error(codes.Internal,
				"fused: cardinality violation: expected <EOF> for non server-streaming RPCs, but received another message")
		} else if err == io.EOF {
			err = cs.outcome()
		}
	} else if err == nil {
		if err = cs.outcome(); err == nil {
			err = status.Error(codes.Internal,
				"fused: cardinality violation: received no response message from non-server-streaming RPC")
		}
	}
	return err
}
