package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
)

// DefaultTurns is how many runs each program makes: enough for intervals of 12 comparisons.
const DefaultTurns = 10

// Turns has two programs run the same options in turns, A B, B A and so on, each into a directory of its own, and
// prints how they compare.
func Turns(ctx context.Context, stdout, stderr io.Writer, programs, dirs [2]string, options []string,
	rounds int) error {
	if rounds < 1 || rounds > engine.MaxRounds {
		return cli.Usage("read --rounds", fmt.Errorf("%d: want 1 to %d", rounds, engine.MaxRounds), "the default")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			return cli.Usage("read command line", err, "two programs, such as ./before ./after")
		}
	}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	options = briefly(options)
	log := cli.NewLog(stderr, false, false)
	docs := make([][2]*reports.Document, rounds)
	began := time.Now()
	for round := range docs {
		order := []int{0, 1}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, side := range order {
			args := []any{"program", programs[side], "round", round + 1, "of", rounds}
			if round > 0 && side == order[0] {
				left := time.Since(began) / time.Duration(round) * time.Duration(rounds-round)
				args = append(args, "left", left.Round(time.Second))
			}
			log.Info("run", args...)
			file := filepath.Join(dirs[side], fmt.Sprintf("%04d.json", round))
			var err error
			if docs[round][side], err = oneRun(ctx, stderr, programs[side], options, file); err != nil {
				return err
			}
		}
	}
	names := [2]string{filepath.Base(programs[0]), filepath.Base(programs[1])}
	if names[0] == names[1] {
		names = [2]string{"A", "B"}
	}
	d := answer.Turns(names, docs)
	return render.Find("text", render.OfRun).Write(stdout, d, text.Options{Own: catalogue.Tables(),
		Color: cli.Coloured(stdout), Width: cli.TerminalColumns(stdout)})
}

// turnTime is how long a point of one of many runs takes where nothing else is asked for: three slices.
const turnTime = "300ms"

func briefly(options []string) []string {
	said := slices.ContainsFunc(options, func(o string) bool {
		name, _, _ := strings.Cut(o, "=")
		return strings.HasPrefix(o, "-D") || strings.HasPrefix(o, "-n") ||
			slices.Contains([]string{"--duration", "--iters", "--rounds", "--repeat", "--scenario"}, name)
	})
	if said {
		return options
	}
	return append([]string{"-D", turnTime}, options...)
}

func oneRun(ctx context.Context, stderr io.Writer, program string, options []string, file string) (*reports.Document,
	error) {
	cmd := exec.CommandContext(ctx, program, append(append([]string{"run"}, options...), "--quiet", "--no-save",
		"--json", file)...)
	cmd.Stderr = stderr
	// It ends its server and its sessions by itself.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, childEnd
	if err := cmd.Run(); ctx.Err() != nil {
		return nil, engine.Interrupted()
	} else if err != nil {
		failed := &reports.ExitError{Code: reports.ExitFailed, Operation: "run " + program, Err: err,
			Hint: "the same command by itself: " + cmd.String()}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
			failed.Code = exit.ExitCode()
		}
		return nil, failed
	}
	return resultfile.ReadDocument(file)
}
