package reports

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file is there with all of its content and readable, or it is as it was.
func TestFilesAreWrittenWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "result.json")
	for _, text := range []string{"old", "new and longer"} {
		noError(t, WriteFileAtomic(path, []byte(text)))
		b, err := os.ReadFile(path)
		if info, _ := os.Stat(path); err != nil || string(b) != text || info.Mode() != 0o644 {
			t.Fatalf("%q, %v, %v, want %q", b, err, info.Mode(), text)
		}
	}
	// A disk that is full in the middle of it, as a limit of the process makes one.
	var was syscall.Rlimit
	noError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	noError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64 << 10, Max: was.Max}))
	err := WriteFileAtomic(path, make([]byte, 1<<20))
	noError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
	if b, _ := os.ReadFile(path); !errors.Is(err, syscall.EFBIG) || string(b) != "new and longer" {
		t.Errorf("a full disk: %v, and %d bytes are there", err, len(b))
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("%v, %v: want one file", all, err)
	}
}

// What cannot be written is said, whatever the path is.
func TestFilesThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	noError(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]error{
		filepath.Join(file, "below"):                                syscall.ENOTDIR,
		filepath.Join(filepath.Dir(file), "none", "f"):              syscall.ENOENT,
		filepath.Join(filepath.Dir(file), strings.Repeat("n", 300)): syscall.ENAMETOOLONG,
		"/dev/full": syscall.ENOSPC,
	} {
		if err := WriteFileAtomic(path, []byte("text")); !errors.Is(err, want) {
			t.Errorf("%.40s: %v, want %v", path, err, want)
		}
	}
}

// --json /dev/stdout must not replace the device by a file.
func TestALinkIsWrittenThrough(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	noError(t, os.WriteFile(file, []byte("old and longer"), 0o600))
	noError(t, os.Symlink(file, link))
	noError(t, WriteFileAtomic(link, []byte("text")))
	if b, _ := os.ReadFile(file); string(b) != "text" {
		t.Errorf("through a link: %q", b)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info.Mode(), err)
	}
}
