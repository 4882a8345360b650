package wakeup

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
)

const asSpinner = "WAKEUP_TEST_SPINNER"

func TestMain(m *testing.M) {
	if os.Getenv(asSpinner) != "" {
		if err := Spin(context.Background(), os.Stdin, []int{0}); err != nil {
			os.Exit(3)
		}
		os.Exit(0)
	}
	leaktest.Main(m)
}

func TestWakeUpsAreOrdered(t *testing.T) {
	f, err := Measure(t.Context(), []int{0, 1})
	if err != nil || f.Samples != samples || !(0 < f.P50 && f.P50 <= f.P99 && f.P99 <= f.Max) ||
		f.Max > 30*time.Second {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestMeasureEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, err := Measure(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v, want canceled", f, err)
	}
}

// The spinner runs in the idle class while it is held, and is gone afterwards.
func TestHoldStartsASpinnerAndEndsIt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), asSpinner+"=1")
	a, err := Hold(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if c.ProcessState == nil {
			t.Error("the spinner goes on")
		} else if code := c.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the spinner ended with %d", code)
		}
	}()
	defer a.Close()
	if !strings.Contains(a.String(), "idle class") {
		t.Errorf("%s", a)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if idleThreads(t, c.Process.Pid) > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no thread of the idle class")
		}
	}
}

// idleThreads counts threads whose policy is SCHED_IDLE, 5, field 41 of proc_pid_stat(5).
func idleThreads(t *testing.T, pid int) (n int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + task.Name() + "/stat") // it may have ended
		if _, rest, ok := strings.Cut(string(b), ") "); ok {
			if f := strings.Fields(rest); len(f) > 38 && f[38] == "5" {
				n++
			}
		}
	}
	return n
}
