package transports

import (
	"os/exec"
	"testing"
	"time"
)

func TestHelpersCount(t *testing.T) {
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	remove := AddHelper(cmd.Process.Pid)
	for end := time.Now().Add(20 * time.Second); HelperCPU() < time.Millisecond; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the helper used %v", HelperCPU())
		}
	}
	remove()
	if d := HelperCPU(); d != 0 {
		t.Errorf("%v without a helper", d)
	}
	in.Close()
	cmd.Wait()
}
