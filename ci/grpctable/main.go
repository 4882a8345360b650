// Command grpctable turns the result documents of ci/grpc-ratio into one table: what
// gRPC over RDMA costs beside grpc-go over TCP, with the project's targets.
//
// It reads a directory with one document for each repeat of each set of points,
// REPEAT.SET.json. The arms of a set ran in turn inside a repeat, so ratios are taken
// inside a repeat and then the median over the repeats: drift of a busy machine
// cancels out.
//
// Exit codes are rdmaperf's: 0 when all targets are met, 3 when one is missed, 1 when
// something could not be measured.
//
// # Limitations
//
// All figures are of one machine, where client, server and the kernel between them
// share the processors.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func main() {
	targets.Exit("grpc-ratio", run)
}

func run(args []string) error {
	flags := flag.NewFlagSet("grpctable", flag.ContinueOnError)
	dir := flags.String("dir", "", "directory with the documents")
	jsonFile := flags.String("json", "", "write the table as JSON to this file")
	note := flags.String("note", "", "a remark for the table's foot")
	only := flags.String("only", "", "comma list of sets; empty is all")
	if err := targets.Parse(flags, args, "-dir DIR [-only SETS] [-json FILE]",
		func() bool { return *dir != "" && flags.NArg() == 0 }); err != nil {
		return err
	}
	repeats, err := readDir(*dir)
	if err != nil {
		return err
	}
	t := build(repeats, *only)
	t.Note = *note
	if err := t.writeText(os.Stdout); err != nil {
		return err
	}
	t.Written, t.Environment = time.Now(), reports.Collect()
	if err := targets.WriteJSON(*jsonFile, t); err != nil {
		return err
	}
	return t.outcome()
}

// values are what one repeat measured, by set, arm and figure: "small/grpc(tcp)/mean".
// Times are in ns, rates in calls a second, idle in processors.
type values map[string]float64

// readDir reads all documents of the directory, by repeat.
func readDir(dir string) (map[int]values, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.*.json"))
	if err != nil {
		return nil, err
	}
	repeats := map[int]values{}
	for _, name := range files {
		number, rest, _ := strings.Cut(filepath.Base(name), ".")
		repeat, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		if repeats[repeat] == nil {
			repeats[repeat] = values{}
		}
		d, err := targets.ReadDocument(name)
		if err != nil {
			return nil, err
		}
		if err := repeats[repeat].add(strings.TrimSuffix(rest, ".json"), d); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(repeats) == 0 {
		return nil, fmt.Errorf("%s: no documents", dir)
	}
	return repeats, nil
}

// add takes the figures of a document. What failed, or was not compared, has none.
func (v values) add(set string, d *reports.Document) error {
	if d.Error != nil {
		return errors.New(d.Error.Message)
	}
	for i := range d.Results {
		r := &d.Results[i]
		if r.Errors > 0 || !r.Verified || r.Others.Get("rpc") == nil || r.Latency == nil || r.Throughput == nil {
			return fmt.Errorf("%s: %d calls failed, verified: %v", r.Stack, r.Errors, r.Verified)
		}
		at := set + "/" + r.Transport + "/"
		if set == "sweep" {
			at += strconv.Itoa(r.QPs) + "/"
		}
		v[at+"mean"], v[at+"p99"], v[at+"rate"] = r.Latency.Mean, r.Latency.P99, r.Throughput.OperationsPerSecond
		var rpc struct {
			Idle struct {
				DurationNs    int64   `json:"duration_ns"`
				ClientSeconds float64 `json:"client_seconds"`
				ServerSeconds float64 `json:"server_seconds"`
			} `json:"idle"`
		}
		if err := json.Unmarshal(r.Others.Get("rpc"), &rpc); err != nil {
			return err
		}
		if c := rpc.Idle; c.DurationNs > 0 {
			v[at+"idle"] = max(c.ClientSeconds, c.ServerSeconds) * 1e9 / float64(c.DurationNs)
		}
	}
	return nil
}
