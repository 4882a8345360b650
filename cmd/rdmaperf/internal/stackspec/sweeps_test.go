package stackspec

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestSweepsMultiplyTheStacksThatTheyAreFor(t *testing.T) {
	for _, c := range []struct{ stacks, args, want string }{
		{"mem,sched(drr,window=256K)+mem", "--sched-slice 4K,16K",
			"mem,sched(drr,window=256K,slice=4K)+mem,sched(drr,window=256K,slice=16K)+mem"},
		{"sched(slice=8K)+mem", "--sched-slice 4K --sched-window 64K,1M",
			"sched(slice=4K,window=64K)+mem,sched(slice=4K,window=1M)+mem"},
		{"lite+sched+iwarp", "--sched-send whole,slice", "lite+sched(sends=whole)+iwarp,lite+sched(sends=slice)+iwarp"},
		{"grpc(unix),grpc(fused)+mem,grpc(dropin,event)+mem", "--busy-sweep 0,20us --poller-sweep 1:2:1",
			"grpc(unix),grpc(fused,busy=0,pollers=1)+mem,grpc(fused,busy=0,pollers=2)+mem,grpc(fused,busy=20us,pollers=1)+mem," +
				"grpc(fused,busy=20us,pollers=2)+mem,grpc(dropin,event)+mem"},
		{"grpc(fused,bp)+mem", "--mode-sweep bpev,event --ring-sweep 8K --busy-sweep 5us",
			"grpc(fused,bpev,ring=8K,busy=5us)+mem,grpc(fused,event,ring=8K)+mem"},
		{"mem", "", "mem"},
		{"mem,tcp", "--sched-slice 4K", "error: --sched-slice is for a stack with sched"},
		{"grpc(tcp)", "--ring-sweep 4K", "error: --ring-sweep is for a stack with grpc(dropin) or grpc(fused)"},
		{"grpc(fused)+mem", "--poller-sweep 2:1:1", "error: --poller-sweep: "},
	} {
		var s Sweeps
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.Register(f)
		if err := f.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		stacks, err := s.Apply(Split(c.stacks, ','))
		got := strings.Join(stacks, ",")
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != c.want && !(err != nil && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s %s: %s, want %s", c.stacks, c.args, got, c.want)
		}
	}
}
