package fused

import (
	"context"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
)

// Server serves registered services to Channels, as a grpc.ServiceRegistrar. Safe for concurrent use once it serves.
type Server struct {
	cfg Config
	obs observers

	mu        sync.Mutex
	stopped   bool
	services  map[string]*service
	listeners map[net.Listener]struct{}
	sessions  map[*serverSession]struct{}
	wg        sync.WaitGroup // sessions and their handlers
}

var _ grpc.ServiceRegistrar = (*Server)(nil)

type service struct {
	desc    *grpc.ServiceDesc
	impl    any
	unary   map[string]*grpc.MethodDesc
	streams map[string]*grpc.StreamDesc
	paces   map[string]*pace // of unary methods
}

// NewServer makes a server. ErrConfig for a configuration out of range.
func NewServer(cfg Config) (*Server, error) {
	cfg, err := cfg.normal()
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, obs: observers{list: cfg.StatsHandlers}, services: map[string]*service{},
		listeners: map[net.Listener]struct{}{}, sessions: map[*serverSession]struct{}{}}, nil
}

// RegisterService registers an implementation, before Serve. A mistake panics, as in gRPC.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	if impl != nil {
		want := reflect.TypeOf(desc.HandlerType).Elem()
		if got := reflect.TypeOf(impl); !got.Implements(want) {
			panic(fmt.Sprintf("fused: register %s: %v does not implement %v", desc.ServiceName, got, want))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.services[desc.ServiceName] != nil {
		panic(fmt.Sprintf("fused: register %s: registered already", desc.ServiceName))
	}
	sv := &service{desc: desc, impl: impl, unary: map[string]*grpc.MethodDesc{}, streams: map[string]*grpc.StreamDesc{},
		paces: map[string]*pace{}}
	for i := range desc.Methods {
		sv.unary[desc.Methods[i].MethodName] = &desc.Methods[i]
		sv.paces[desc.Methods[i].MethodName] = &pace{}
	}
	for i := range desc.Streams {
		sv.streams[desc.Streams[i].StreamName] = &desc.Streams[i]
	}
	s.services[desc.ServiceName] = sv
}

// GetServiceInfo lists the registered services, for reflection.
func (s *Server) GetServiceInfo() map[string]grpc.ServiceInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]grpc.ServiceInfo{}
	for name, sv := range s.services {
		info := grpc.ServiceInfo{Metadata: sv.desc.Metadata}
		for m := range sv.unary {
			info.Methods = append(info.Methods, grpc.MethodInfo{Name: m})
		}
		for m, d := range sv.streams {
			info.Methods = append(info.Methods, grpc.MethodInfo{Name: m, IsClientStream: d.ClientStreams,
				IsServerStream: d.ServerStreams})
		}
		all[name] = info
	}
	return all
}

var noService service // has no methods

func (s *Server) find(method string) (sv *service, name string) {
	full := strings.TrimPrefix(method, "/")
	i := strings.LastIndexByte(full, '/')
	s.mu.Lock()
	defer s.mu.Unlock()
	if sv = s.services[full[:max(i, 0)]]; sv == nil {
		sv = &noService
	}
	return sv, full[i+1:]
}

// Serve accepts connections from l, which it closes, until Stop or GracefulStop (nil), or until Accept fails.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return grpc.ErrServerStopped
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	for {
		conn, err := l.Accept()
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.listeners, l)
			if s.stopped {
				return nil
			}
			return err
		}
		s.start(conn)
	}
}

func (s *Server) start(conn net.Conn) {
	ss := newServerSession(s, conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		conn.Close()
		return
	}
	s.sessions[ss] = struct{}{}
	s.wg.Go(ss.run)
}

func (s *Server) forget(ss *serverSession) {
	s.mu.Lock()
	delete(s.sessions, ss)
	s.mu.Unlock()
}

func (s *Server) halt() []*serverSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for l := range s.listeners {
		l.Close()
	}
	return slices.Collect(maps.Keys(s.sessions))
}

// Stop cancels calls in progress, and returns when their handlers have. Idempotent.
func (s *Server) Stop() {
	for _, ss := range s.halt() {
		ss.fail(net.ErrClosed)
	}
	s.wg.Wait()
}

// GracefulStop takes no more calls, and returns when those in progress have ended, or were ended with ctx.
func (s *Server) GracefulStop(ctx context.Context) {
	all := s.halt()
	stop := context.AfterFunc(ctx, func() {
		for _, ss := range all {
			ss.fail(ctx.Err())
		}
	})
	defer stop()
	for _, ss := range all {
		ss.drain()
	}
	s.wg.Wait()
}
