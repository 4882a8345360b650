package reports_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
)

// browsing is held by the test whose browser runs: seven at once each took a minute.
var browsing sync.Mutex

// browserLimit is how long one browser may take, which is seconds on an idle machine. Arbitrary.
const browserLimit = 2 * time.Minute

// aBrowser is the path of the browser, which is optional.
func aBrowser(t *testing.T) string {
	t.Helper()
	fulltest.Only(t, "a browser takes seconds to start")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("the optional browser is absent: neither chromium, chromium-browser nor google-chrome is installed")
	return ""
}

// browse runs a real browser on a page and returns what it printed and logged; fragment is behind the page's address.
func browse(t *testing.T, page, fragment string, flags ...string) (out, log string) {
	t.Helper()
	browser := aBrowser(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	noError(t, os.WriteFile(file, []byte(page), 0o644))
	browsing.Lock()
	defer browsing.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), browserLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, append(flags, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+filepath.Join(dir, "profile"),
		(&url.URL{Scheme: "file", Path: file, Fragment: fragment}).String())...)
	cmd.WaitDelay = 5 * time.Second
	var printed, messages strings.Builder
	cmd.Stdout, cmd.Stderr = &printed, &messages
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, messages.String())
	}
	return printed.String(), messages.String()
}

// dumpDOM loads a page and returns the document after its scripts ran, and what the browser logged.
func dumpDOM(t *testing.T, page string) (dom, log string) {
	t.Helper()
	return browse(t, page, "", "--enable-logging=stderr", "--dump-dom")
}

// frame is a page within another.
func frame(id, attributes string, width int, page string) string {
	return fmt.Sprintf(`<iframe id="%s" %s width="%d" height="900" frameborder="0" srcdoc="%s"></iframe>`, id, attributes,
		width, html.EscapeString(page))
}

// reported takes into got what a probe reports of frames.
func reported(t *testing.T, frames, probe string, got any) {
	t.Helper()
	dom, _ := dumpDOM(t, `<!doctype html><meta charset="utf-8">`+frames+probe)
	_, text, _ := strings.Cut(html.UnescapeString(dom), "report:")
	text, _, found := strings.Cut(text, ":end")
	if err := json.Unmarshal([]byte(text), got); err != nil || !found {
		t.Fatalf("the browser reports %q: %v", text, err)
	}
}

func TestBrowserRunsOnlyThePagesOwnScript(t *testing.T) {
	t.Parallel()
	p := page(t, pages.Options{Conformance: records(t)}, showcase())
	dom, log := dumpDOM(t, p)
	lacks(t, log, "Content Security Policy", "Uncaught")
	contains(t, dom, `id="tip"`, `<button type="button" id="theme">`, `aria-pressed="true"`)
}

// A hostile name must not run, whatever the policy: here there is none.
func TestBrowserRunsNothingThatOthersWrote(t *testing.T) {
	t.Parallel()
	p := page(t, pages.Options{}, hostileDocument())
	p = strings.Replace(p, "Content-Security-Policy", "X-None", 1)
	p = strings.Replace(p, "<head>",
		`<head><script>window.alert = function () { document.documentElement.setAttribute("data-hit", "1"); };</script>`, 1)
	dom, _ := dumpDOM(t, p)
	contains(t, dom, `id="tip"`) // else no script ran at all
	lacks(t, dom, "data-hit=")
}

// probeFrames reports what frames show, how wide they are with all details open, and what a click does.
const probeFrames = `<script>
addEventListener("load", function () {
  var report = {};
  document.querySelectorAll("iframe").forEach(function (f) {
    var d = f.contentDocument, count = function (q) { return d.querySelectorAll(q).length; }, r = report[f.id] = {};
    r.figures = count("figure"); r.drawings = count("svg"); r.tables = count("table"); r.hover = count(".pt > title");
    r.headline = d.querySelector("h1").textContent;
    r.button = !d.getElementById("theme").hidden;
    d.querySelectorAll("details").forEach(function (e) { e.open = true; });
    r.width = d.documentElement.scrollWidth;
    var point = d.querySelector(".pt"), key = d.querySelector("#percentiles .lg"), tip = d.getElementById("tip");
    point.dispatchEvent(new PointerEvent("pointerenter"));
    r.tip = tip && !tip.hidden ? tip.textContent : "";
    key.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    r.off = count("#percentiles g.se.off");
    d.getElementById("theme").click(); d.getElementById("theme").click();
    r.theme = d.documentElement.getAttribute("data-theme") || "";
  });
  document.body.textContent = "report:" + JSON.stringify(report) + ":end";
});</script>`

// Nothing but a table's own frame scrolls sideways on a phone, and a page without scripts shows the same.
func TestBrowserOnAPhoneWithScriptsAndWithout(t *testing.T) {
	t.Parallel()
	const width = 360
	p := page(t, pages.Options{Conformance: records(t)}, showcase())
	frames := frame("on", "", width, p) +
		frame("off", `sandbox="allow-same-origin"`, width, p) + // allow-scripts is not given
		frame("hostile", "", width, page(t, pages.Options{}, hostileDocument()))
	type view struct {
		Figures, Drawings, Tables, Hover, Width, Off int
		Headline, Tip, Theme                         string
		Button                                       bool
	}
	var got map[string]view
	reported(t, frames, probeFrames, &got)
	for id, v := range got {
		if v.Width > width || v.Width < width-30 { // a scroll bar may take its share
			t.Errorf("%s: %d wide in a frame of %d", id, v.Width, width)
		}
	}
	on, off := got["on"], got["off"]
	if on.Hover != 0 || !strings.HasPrefix(on.Tip, "tcp(nodelay)\n") || on.Off != 1 || on.Theme != "dark" ||
		!on.Button {
		t.Errorf("with scripts: hover, key or theme does nothing: %+v", on)
	}
	if off.Tip != "" || off.Off != 0 || off.Theme != "" || off.Button {
		t.Errorf("without scripts: something ran: %+v", off)
	}
	if want := strings.Count(p, "<title>") - 1; off.Hover != want { // the page has one too
		t.Errorf("without scripts: %d hover texts, want %d", off.Hover, want)
	}
	if on.Headline != off.Headline || on.Figures != off.Figures || on.Drawings != off.Drawings ||
		on.Tables != off.Tables || off.Figures == 0 {
		t.Errorf("pages differ: with scripts %+v, without %+v", on, off)
	}
}

// longNames is calls and streams of stacks with many parameters, some of which differ in one of them alone.
func longNames() *reports.Document {
	d := emptyRun()
	for i, stack := range []string{"grpc(tcp,best,read=1M,write=1M,window=64M,workers=2)",
		"grpc(fused,bpev,busy=20us,pollers=1,ring=256K)+iwarp(crc)",
		"grpc(fused,bpev,busy=50us,pollers=1,ring=256K)+iwarp(crc)",
		"grpc(fused,bpev,busy=50us,pollers=4,ring=256K)+iwarp(crc)"} {
		for _, size := range []int64{64, 4096} {
			r := point(stack, "rpc", "call", size)
			r.Depth, r.QPs, r.Operations, r.Latency = 2, 4, 1000, latency(1000, 30_000*float64(1+i))
			r.Throughput = &reports.Throughput{BytesPerSecond: 1e6, OperationsPerSecond: 1e5}
			d.Results = append(d.Results, r)
		}
	}
	for _, r := range showcase().Results {
		r.Stack = strings.NewReplacer("(strict,", "(strict,sends=slice,window=256KiB,", "(crc)",
			"(crc,sndbuf=256K,rcvbuf=256K,markers,rev2)").Replace(r.Stack)
		d.Results = append(d.Results, r)
	}
	return of(d)
}

// probeTexts reports texts that leave their drawing or lie on another text; 3.5 units of air may overlap.
const probeTexts = `<script>
addEventListener("load", function () {
  var report = {};
  document.querySelectorAll("iframe").forEach(function (f) {
    var d = f.contentDocument, r = report[f.id] = { wrong: [], texts: 0 }, h1 = d.querySelector("h1");
    r.lines = h1.offsetHeight / parseFloat(getComputedStyle(h1).lineHeight);
    d.querySelectorAll("svg").forEach(function (s) {
      var all = Array.prototype.map.call(s.querySelectorAll("text"), function (t) { var b = t.getBBox(); return { t: t.textContent, l: b.x, r: b.x + b.width, u: b.y, d: b.y + b.height }; });
      var size = s.viewBox.baseVal, title = s.querySelector("title").textContent;
      r.texts += all.length;
      all.forEach(function (a, i) {
        if (a.l < 0 || a.r > size.width || a.u < -1 || a.d > size.height) r.wrong.push(title + ": " + a.t + " leaves the drawing");
        all.slice(i + 1).forEach(function (b) {
          if (Math.min(a.r, b.r) - Math.max(a.l, b.l) > 1 && Math.min(a.d, b.d) - Math.max(a.u, b.u) > 3.5) r.wrong.push(title + ": " + a.t + " on " + b.t);
        });
      });
    });
  });
  document.body.textContent = "report:" + JSON.stringify(report) + ":end";
});</script>`

func TestBrowserTextsHaveTheirPlaces(t *testing.T) {
	t.Parallel()
	frames := ""
	for id, docs := range map[string][]*reports.Document{"showcase": {showcase()}, "long": {longNames()},
		"two": {longNames(), longNames()}} {
		frames += frame(id, "", 1200,
			page(t, pages.Options{Names: []string{"before.json", "a-month-later/after.json"}[:len(docs)]}, docs...))
	}
	var got map[string]struct {
		Wrong []string
		Texts int
		Lines float64
	}
	reported(t, frames, probeTexts, &got)
	for id, v := range got {
		if v.Texts < 50 || v.Lines > 3.1 { // a narrower face would take two
			t.Errorf("%s: %d texts, a headline of %.1f lines", id, v.Texts, v.Lines)
		}
		for _, w := range v.Wrong {
			t.Errorf("%s: %s", id, w)
		}
	}
}
