package rdma

import "context"

type parkKey struct{}

// Parked returns a context under which [CQ].Wait parks its goroutine in Go's own network poller. A goroutine that it
// makes runnable then runs on the thread that the kernel woke. Without it Wait may block its thread in the kernel,
// which wakes a goroutine that is locked to its thread without a hand-over.
func Parked(ctx context.Context) context.Context { return context.WithValue(ctx, parkKey{}, true) }

// Parks reports whether ctx comes from [Parked].
func Parks(ctx context.Context) bool { return ctx.Value(parkKey{}) != nil }
