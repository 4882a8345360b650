package run

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
)

// NeighbourChild is the command of a process that stops itself and spins when it is continued.
const NeighbourChild = "neighbour-child"

// mostNeighbours is more than the CPUs of any machine on which their number matters.
const mostNeighbours = 4096

func besideNeighbours(points []engine.Point, list string) (all []engine.Point, err error) {
	var counts []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		switch {
		case err != nil || n < 0 || n > mostNeighbours:
			return nil, values.Wrong("neighbours", "%q: want numbers of processes from 0 to %d", word, mostNeighbours)
		case slices.Contains(counts, n):
			return nil, values.Wrong("neighbours", "%q: %d is given twice", list, n)
		}
		counts = append(counts, n)
	}
	for _, pt := range points {
		for _, n := range counts {
			pt.Neighbours = n
			all = append(all, pt)
		}
	}
	return all, nil
}

// neighbours are processes that spin while a slice is measured beside them. Between slices they are stopped.
type neighbours []*exec.Cmd

// startNeighbours starts as many as a point has at most. They end with this process.
func startNeighbours(points []engine.Point) (n neighbours, err error) {
	most := 0
	for _, pt := range points {
		most = max(most, pt.Neighbours)
	}
	if most == 0 {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for range most {
		c := exec.Command(self, NeighbourChild)
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			n.end()
			return nil, fmt.Errorf("start a neighbour: %w", err)
		}
		n = append(n, c)
		var status unix.WaitStatus
		for {
			if _, err = unix.Wait4(c.Process.Pid, &status, unix.WUNTRACED, nil); err != unix.EINTR {
				break
			}
		}
		if err != nil || !status.Stopped() {
			n.end()
			return nil, fmt.Errorf("start a neighbour: it ended with status %#x, %w", int(status), err)
		}
	}
	return n, nil
}

// Spin is what the process of NeighbourChild does.
func Spin() {
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	for {
	}
}

func (n neighbours) spin(count int) { n[:min(count, len(n))].signal(syscall.SIGCONT) }

func (n neighbours) rest() { n.signal(syscall.SIGSTOP) }

func (n neighbours) end() {
	n.signal(syscall.SIGKILL)
	for _, c := range n {
		_ = c.Wait() // it was killed
	}
}

func (n neighbours) signal(s os.Signal) {
	for _, c := range n {
		_ = c.Process.Signal(s) // one that somebody killed is missing, which the points show
	}
}
