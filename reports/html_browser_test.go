package reports_test

import (
	"context"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// dumpDOM loads a page in a real browser and returns the document after its
// scripts ran, and what the browser logged. The browser is optional.
func dumpDOM(t *testing.T, page string) (dom, log string) {
	t.Helper()
	var browser string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("the optional browser is absent: neither chromium, chromium-browser nor google-chrome is installed")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(dir, "profile"), "--enable-logging=stderr", "--dump-dom",
		(&url.URL{Scheme: "file", Path: file}).String())
	cmd.WaitDelay = 5 * time.Second
	var out, messages strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, messages.String())
	}
	return out.String(), messages.String()
}

func TestBrowserShowsThePageWithScriptsAndWithout(t *testing.T) {
	t.Parallel()
	p := page(t, reports.HTMLOptions{Conformance: records(t)}, showcase())
	on, log := dumpDOM(t, p)
	if strings.Contains(log, "Content Security Policy") || strings.Contains(log, "Uncaught") {
		t.Errorf("the browser complains:\n%s", log)
	}
	for _, want := range []string{`id="tip"`, `<button type="button" id="theme">`, `aria-pressed="true"`} {
		if !strings.Contains(on, want) {
			t.Errorf("with scripts: no %s", want)
		}
	}
	// A frame that may not run scripts; the page around it hands out what is in it.
	off, _ := dumpDOM(t, fmt.Sprintf(`<!doctype html><iframe id="f" sandbox="allow-same-origin" srcdoc="%s"></iframe><script>
var f = document.getElementById("f");
f.onload = function () { document.body.textContent = f.contentDocument.documentElement.outerHTML; };</script>`, html.EscapeString(p)))
	off = html.UnescapeString(off)
	for _, unwanted := range []string{`id="tip"`, `aria-pressed="true"`} {
		if strings.Contains(off, unwanted) {
			t.Errorf("scripts ran although they are off: %s", unwanted)
		}
	}
	text := regexp.MustCompile(`<title>[^<]*</title>`) // hover texts belong to whoever shows them
	for name, dom := range map[string]string{"with": on, "without": off} {
		for _, element := range []string{"<figure>", "<svg ", "<table>", "<details>"} {
			if got, want := strings.Count(dom, element), strings.Count(p, element); got != want {
				t.Errorf("%s scripts: %d %s, want %d", name, got, element, want)
			}
		}
		if !strings.Contains(text.ReplaceAllString(dom, ""), "tcp(nodelay) is fastest in") {
			t.Errorf("%s scripts: no headline", name)
		}
	}
	if got, want := strings.Count(off, "<title>"), strings.Count(p, "<title>"); got != want {
		t.Errorf("without scripts: %d hover texts, want %d", got, want)
	}
}

// A hostile name must not run, whatever the policy: here there is none.
func TestBrowserRunsNothingThatOthersWrote(t *testing.T) {
	t.Parallel()
	p := page(t, reports.HTMLOptions{}, hostileDocument())
	p = strings.Replace(p, "Content-Security-Policy", "X-None", 1)
	p = strings.Replace(p, "<head>", `<head><script>window.alert = function () { document.documentElement.setAttribute("data-hit", "1"); };</script>`, 1)
	dom, _ := dumpDOM(t, p)
	if !strings.Contains(dom, `id="tip"`) {
		t.Fatal("no script ran at all, so the test shows nothing")
	}
	if strings.Contains(dom, "data-hit=") {
		t.Error("a name ran as a script")
	}
}

// Nothing but a table's own frame may scroll sideways on a phone, even with all
// details open. The two pages stand in frames of a phone's width.
func TestBrowserPageFitsAPhone(t *testing.T) {
	t.Parallel()
	const width = 360
	frames := ""
	for _, p := range []string{page(t, reports.HTMLOptions{Conformance: records(t)}, showcase()), page(t, reports.HTMLOptions{}, hostileDocument())} {
		frames += fmt.Sprintf(`<iframe width="%d" height="700" frameborder="0" srcdoc="%s"></iframe>`, width, html.EscapeString(p))
	}
	dom, _ := dumpDOM(t, "<!doctype html>"+frames+`<script>
addEventListener("load", function () {
  document.querySelectorAll("iframe").forEach(function (f, i) {
    f.contentDocument.querySelectorAll("details").forEach(function (e) { e.open = true; });
    document.body.setAttribute("data-width" + i, f.contentDocument.documentElement.scrollWidth);
  });
});</script>`)
	for i := range 2 {
		found := regexp.MustCompile(fmt.Sprintf(`data-width%d="(\d+)"`, i)).FindStringSubmatch(dom)
		if found == nil {
			t.Fatalf("page %d was not measured", i)
		}
		if got, err := strconv.Atoi(found[1]); err != nil || got > width || got < width-30 { // a scroll bar may take its share
			t.Errorf("page %d is %s wide in a frame of %d", i, found[1], width)
		}
	}
}
