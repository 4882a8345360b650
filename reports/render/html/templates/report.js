"use strict";
(function () {
  var doc = document, root = doc.documentElement;
  var each = function (list, f) { Array.prototype.forEach.call(list, f); };
  var all = function (q, f) { each(doc.querySelectorAll(q), f); };
  var button = function (text, f) {
    var b = doc.createElement("button");
    b.type = "button";
    b.textContent = text;
    b.addEventListener("click", f);
    return b;
  };

  // Theme: system, light, dark in turn.
  var themes = ["system", "light", "dark"], at = 0, theme = doc.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", function () {
    at = (at + 1) % themes.length;
    if (at) root.setAttribute("data-theme", themes[at]); else root.removeAttribute("data-theme");
    theme.textContent = "Theme: " + themes[at];
  });

  // Hover and touch values, faster than the browser's own.
  var tip = doc.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  doc.body.appendChild(tip);
  all(".pt", function (p) {
    var title = p.querySelector("title");
    if (!title) return;
    var text = title.textContent;
    title.remove();
    p.addEventListener("pointerenter", function () {
      tip.textContent = text;
      tip.hidden = false;
      var box = (p.querySelector(".mk, .bar") || p).getBoundingClientRect(), width = tip.offsetWidth;
      var x = box.left + box.width / 2 - width / 2, y = box.top - tip.offsetHeight - 10;
      tip.style.left = Math.max(4, Math.min(x, root.clientWidth - width - 4)) + window.scrollX + "px";
      tip.style.top = (y < 4 ? box.bottom + 10 : y) + window.scrollY + "px";
    });
    p.addEventListener("pointerleave", function () { tip.hidden = true; });
  });

  // A key entry hides and shows its series.
  all("svg .lg", function (key) {
    var svg = key.ownerSVGElement, series = svg.querySelector('g.se[data-n="' + key.getAttribute("data-n") + '"]');
    if (!series) return;
    svg.setAttribute("role", "group");
    key.setAttribute("role", "button");
    key.setAttribute("tabindex", "0");
    key.setAttribute("aria-pressed", "true");
    var flip = function () {
      var off = series.classList.toggle("off");
      key.classList.toggle("off", off);
      key.setAttribute("aria-pressed", String(!off));
    };
    key.addEventListener("click", flip);
    key.addEventListener("keydown", function (e) {
      if (e.key === "Enter" || e.key === " ") { e.preventDefault(); flip(); }
    });
  });

  // Numbers as the page writes them.
  var thousands = function (s) { return s.length < 5 ? s : s.replace(/\B(?=(\d{3})+$)/g, "\u202f"); };
  var digits = function (v) {
    if (v === 0) return "0";
    if (v < 0.01) return String(Number(v.toPrecision(2)));
    if (v < 99.95) return String(Number(v.toPrecision(3)));
    return thousands(v.toFixed(0));
  };
  var units = {
    ns: function (v) {
      return v < 999.5 ? digits(v) + " ns" : v < 999.5e3 ? digits(v / 1e3) + " µs" : v < 999.5e6 ? digits(v / 1e6) + " ms" : digits(v / 1e9) + " s";
    },
    size: function (v) {
      var names = ["B", "KiB", "MiB", "GiB", "TiB"], i = 0;
      for (; v >= 1024 && i < 4; i++) v /= 1024;
      return digits(v) + " " + names[i];
    }
  };
  var unitOf = function (name) {
    var parts = name.split("|");
    return units[parts[0]] || function (v) { return digits(v * Number(parts[1])) + (parts[2] || ""); };
  };

  // An axis: where a value stands in the drawing, and which value stands where.
  var axis = function (text) {
    var p = text.split(" ");
    return { log: p[0] === "log", lo: +p[1], hi: +p[2], from: +p[3], to: +p[4] };
  };
  var place = function (a, v) {
    var f = a.log ? Math.log(v / a.lo) / Math.log(a.hi / a.lo) : (v - a.lo) / (a.hi - a.lo);
    return a.from + f * (a.to - a.from);
  };
  var value = function (a, px) {
    var f = (px - a.from) / (a.to - a.from);
    return a.log ? a.lo * Math.pow(a.hi / a.lo, f) : a.lo + f * (a.hi - a.lo);
  };
  var ticksOf = function (a) {
    var out = [], e, m, v, step;
    if (a.log) {
      var decades = Math.log10(a.hi / a.lo), steps = decades < 1.7 ? [1, 2, 5] : decades < 3.2 ? [1, 3] : [1], every = decades > 7 ? 2 : 1;
      for (e = Math.floor(Math.log10(a.lo) + 1e-9); e <= Math.ceil(Math.log10(a.hi)); e++) for (m = 0; m < steps.length; m++) {
        v = steps[m] * Math.pow(10, e);
        if (v >= a.lo * 0.999 && v <= a.hi * 1.001 && e % every === 0) out.push(v);
      }
      if (out.length > 2) return out;
    }
    out = [];
    step = Math.pow(10, Math.floor(Math.log10((a.hi - a.lo) / 4)));
    [1, 2, 5, 10].some(function (k) { if ((a.hi - a.lo) / (k * step) <= 5) { step *= k; return true; } return false; });
    for (v = Math.ceil(a.lo / step - 1e-9) * step; v <= a.hi + step * 1e-6; v += step) out.push(Math.abs(v) < step * 1e-6 ? 0 : v);
    return out;
  };
  var mark = function (name, attributes, text) {
    var e = doc.createElementNS(doc.querySelector("svg").namespaceURI, name);
    Object.keys(attributes).forEach(function (k) { e.setAttribute(k, attributes[k]); });
    if (text !== undefined) e.textContent = text;
    return e;
  };
  var px = function (v) { return String(Math.round(v * 100) / 100); };

  // A drawing of lines that can be drawn again on other axes. What stands in it is read
  // once, through the axes that it was drawn on.
  var linesOf = function (svg) {
    var x0 = axis(svg.getAttribute("data-x")), y0 = axis(svg.getAttribute("data-y")), unit = unitOf(svg.getAttribute("data-unit"));
    var lines = [], points = [], ticks = [], least = Infinity, most = 0;
    each(svg.querySelectorAll("path.ln[data-l]"), function (el) {
      var pieces = el.getAttribute("d").split("M").filter(Boolean).map(function (piece) {
        return piece.split("L").map(function (p) {
          var c = p.split(" "), v = { x: value(x0, +c[0]), y: value(y0, +c[1]) };
          if (v.y > 0) least = Math.min(least, v.y);
          most = Math.max(most, v.y);
          return v;
        });
      });
      lines.push({ el: el, pieces: pieces });
    });
    each(svg.querySelectorAll(".pt[data-v]"), function (el) {
      var v = el.getAttribute("data-v").split(",").slice(1).map(Number), hit = el.querySelector(".hit"), wh = el.querySelectorAll(".wh");
      var p = { el: el, px: +hit.getAttribute("cx"), py: +hit.getAttribute("cy"), y: v[0], high: v[1] || 0, wh: wh };
      p.x = value(x0, p.px);
      if (p.y > 0) least = Math.min(least, p.y);
      most = Math.max(most, p.y, p.high);
      points.push(p);
    });
    each(svg.querySelectorAll(".tx"), function (el) { ticks.push({ el: el, v: +el.getAttribute("data-at"), px: +el.getAttribute("data-px") }); });
    return {
      x: x0, y: y0, least: least, most: most,
      draw: function (x, y) {
        var top = Math.min(y.from, y.to), bottom = Math.max(y.from, y.to), slack = 0.6;
        var inside = function (a, b) { return a >= x.from - slack && a <= x.to + slack && b >= top - slack && b <= bottom + slack; };
        // The part of a line between two points that lies inside, or null.
        var cut = function (p, q) {
          var t0 = 0, t1 = 1, dx = q[0] - p[0], dy = q[1] - p[1];
          var sides = [[-dx, p[0] - x.from], [dx, x.to - p[0]], [-dy, p[1] - top], [dy, bottom - p[1]]];
          for (var i = 0; i < 4; i++) {
            var d = sides[i][0], r = sides[i][1] + 1e-6;
            if (d === 0) { if (r < 0) return null; continue; }
            if (d < 0) t0 = Math.max(t0, r / d); else t1 = Math.min(t1, r / d);
          }
          return t0 > t1 ? null : [[p[0] + t0 * dx, p[1] + t0 * dy], [p[0] + t1 * dx, p[1] + t1 * dy]];
        };
        var low = function (v) { return y.log && !(v > 0) ? y.lo : v; };
        lines.forEach(function (l) {
          var d = "";
          l.pieces.forEach(function (piece) {
            var end = null;
            for (var i = 0; i + 1 < piece.length; i++) {
              var part = cut([place(x, piece[i].x), place(y, low(piece[i].y))], [place(x, piece[i + 1].x), place(y, low(piece[i + 1].y))]);
              if (!part) { end = null; continue; }
              var a = px(part[0][0]) + " " + px(part[0][1]), b = px(part[1][0]) + " " + px(part[1][1]);
              d += (end === a ? "" : "M" + a) + "L" + b;
              end = b;
            }
          });
          l.el.setAttribute("d", d || "M0 0");
        });
        points.forEach(function (p) {
          var nx = place(x, p.x), ny = place(y, low(p.y)), dy = ny - p.py;
          p.el.style.display = inside(nx, ny) ? "" : "none";
          p.el.setAttribute("transform", "translate(" + px(nx - p.px) + " " + px(dy) + ")");
          if (p.wh.length === 2) {
            var end = px(Math.max(place(y, p.high), top) - dy);
            p.wh[0].setAttribute("y2", end);
            p.wh[1].setAttribute("y1", end);
            p.wh[1].setAttribute("y2", end);
          }
        });
        ticks.forEach(function (t) {
          var n = place(x, t.v);
          t.el.setAttribute("display", n >= x.from - slack && n <= x.to + slack ? "inline" : "none");
          t.el.setAttribute("transform", "translate(" + px(n - t.px) + " 0)");
        });
        var grid = svg.querySelector(".grid"), left = +grid.getAttribute("data-left"), right = +grid.getAttribute("data-right");
        grid.textContent = "";
        ticksOf(y).forEach(function (v) {
          var h = place(y, v);
          grid.appendChild(mark("line", { x1: left, x2: right, y1: px(h), y2: px(h), "class": "gr" }));
          grid.appendChild(mark("text", { x: left - 5, y: px(h + 4), "text-anchor": "end", "class": "tk" }, unit(v)));
        });
      }
    };
  };

  // The same axis the other way: a logarithmic one from the least value, a linear one from zero.
  var other = function (chart, log) {
    var y = { log: log, from: chart.y.from, to: chart.y.to, lo: 0, hi: chart.most };
    if (log === chart.y.log) return { log: log, from: chart.y.from, to: chart.y.to, lo: chart.y.lo, hi: chart.y.hi };
    if (log) { y.lo = Math.pow(10, Math.floor(Math.log10(chart.least))); y.hi = Math.pow(10, Math.ceil(Math.log10(chart.most))); if (y.lo === y.hi) y.hi *= 10; return y; }
    var step = Math.pow(10, Math.floor(Math.log10(y.hi / 4)));
    [1, 2, 5, 10].some(function (k) { if (y.hi / (k * step) <= 4) { step *= k; return true; } return false; });
    y.hi = Math.ceil(y.hi / step - 1e-9) * step;
    return y;
  };

  var save = function (name, type, text) {
    var a = doc.createElement("a"), to = URL.createObjectURL(new Blob([text], { type: type }));
    a.href = to;
    a.download = name;
    doc.body.appendChild(a);
    a.click();
    a.remove();
    setTimeout(function () { URL.revokeObjectURL(to); }, 10000);
  };
  var slug = function (s) { return s.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 80) || "chart"; };

  // What a drawing program needs of the style, on each element: it knows no style sheet
  // of this page.
  var looks = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-size", "font-weight", "font-family", "display"];
  var standalone = function (svg, title, caption) {
    var copy = svg.cloneNode(true), from = svg.querySelectorAll("*"), to = copy.querySelectorAll("*");
    each(from, function (e, i) {
      var s = getComputedStyle(e);
      looks.forEach(function (k) { var v = s.getPropertyValue(k); if (v && !(k === "display" && v !== "none")) to[i].setAttribute(k, v.replace(/"/g, "'")); });
    });
    var box = svg.viewBox.baseVal, s = getComputedStyle(doc.querySelector("figure")), ink = getComputedStyle(doc.body), font = ink.fontFamily.replace(/"/g, "'");
    var head = 30, foot = 24, w = box.width, h = box.height, body = mark("g", { transform: "translate(0 " + head + ")" });
    while (copy.firstChild) body.appendChild(copy.firstChild);
    copy.setAttribute("viewBox", "-8 0 " + (w + 16) + " " + (h + head + foot));
    copy.setAttribute("width", 2 * (w + 16));
    copy.setAttribute("height", 2 * (h + head + foot));
    ["role", "aria-labelledby", "data-x", "data-y", "data-unit"].forEach(function (k) { copy.removeAttribute(k); });
    copy.appendChild(mark("rect", { x: -8, y: 0, width: w + 16, height: h + head + foot, fill: s.backgroundColor }));
    copy.appendChild(mark("text", { x: 0, y: 19, fill: ink.color, "font-size": "15px", "font-weight": "600", "font-family": font }, title));
    copy.appendChild(body);
    copy.appendChild(mark("text", { x: 0, y: h + head + 12, fill: ink.color, "font-size": "9px", "font-family": font }, caption));
    return new XMLSerializer().serializeToString(copy);
  };

  // One line a value, numbers as numbers; a name that a spreadsheet would take for a
  // formula gets an apostrophe.
  var field = function (s) {
    s = String(s).replace(/^([=+\-@\t])(?![\d.])/, "'$1");
    return /[",\n]/.test(s) ? '"' + s.replace(/"/g, '""') + '"' : s;
  };
  var table = function (svg) {
    var rows = [svg.getAttribute("data-head").split("|").map(field).join(",")];
    each(svg.querySelectorAll(".pt[data-v]"), function (p) {
      var owner = p.closest("[data-name]"), values = p.getAttribute("data-v");
      rows.push(field(owner ? owner.getAttribute("data-name") : "") + "," + values);
    });
    return rows.join("\n") + "\n";
  };

  all("figure", function (figure) {
    var svg = figure.querySelector("svg"), title = (figure.querySelector("h3 span") || figure.querySelector("h3")).textContent, tools = doc.createElement("p");
    var section = figure.closest("section"), name = slug((section ? section.id + " " : "") + title);
    tools.className = "tools";
    if (svg.hasAttribute("data-x")) {
      var chart = linesOf(svg), x = chart.x, y = chart.y, log = chart.y.log;
      var kind = button(log ? "Linear" : "Logarithmic", function () {
        log = !log;
        kind.textContent = log ? "Linear" : "Logarithmic";
        y = other(chart, log);
        chart.draw(x, y);
        reset.hidden = x === chart.x;
      });
      var reset = button("Whole range", function () {
        x = chart.x;
        y = other(chart, log);
        chart.draw(x, y);
        reset.hidden = true;
      });
      reset.hidden = true;
      if (chart.least < Infinity) tools.appendChild(kind);
      tools.appendChild(reset);
      // Drag over a part to see it alone. A finger scrolls the page instead.
      var from = null, frame = mark("rect", { "class": "frame" });
      var where = function (e) {
        var m = svg.getScreenCTM().inverse(), p = new DOMPoint(e.clientX, e.clientY).matrixTransform(m);
        var top = Math.min(y.from, y.to), bottom = Math.max(y.from, y.to);
        return { x: p.x, y: p.y, cx: Math.max(x.from, Math.min(p.x, x.to)), cy: Math.max(top, Math.min(p.y, bottom)), inside: p.y >= top && p.y <= bottom && p.x >= x.from - 4 };
      };
      svg.classList.add("zoomable");
      svg.addEventListener("pointerdown", function (e) {
        var p = where(e);
        if (e.pointerType === "touch" || e.button !== 0 || !p.inside) return;
        from = p;
        e.preventDefault();
      });
      svg.addEventListener("pointermove", function (e) {
        if (!from) return;
        var p = where(e);
        if (!frame.parentNode) svg.appendChild(frame);
        frame.setAttribute("x", Math.min(p.cx, from.cx));
        frame.setAttribute("y", Math.min(p.cy, from.cy));
        frame.setAttribute("width", Math.abs(p.cx - from.cx));
        frame.setAttribute("height", Math.abs(p.cy - from.cy));
      });
      addEventListener("pointerup", function (e) {
        if (!from) return;
        var a = from, p = where(e);
        from = null;
        frame.remove();
        if (Math.abs(p.cx - a.cx) < 8 || Math.abs(p.cy - a.cy) < 8) return;
        var part = function (ax, one, two) { return { log: ax.log, from: ax.from, to: ax.to, lo: Math.min(value(ax, one), value(ax, two)), hi: Math.max(value(ax, one), value(ax, two)) }; };
        x = part(x, a.cx, p.cx);
        y = part(y, a.cy, p.cy);
        chart.draw(x, y);
        reset.hidden = false;
      });
      svg.addEventListener("dblclick", function () { reset.click(); });
    }
    var large = button("Enlarge", function () {
      var on = figure.classList.toggle("large");
      large.textContent = on ? "Close" : "Enlarge";
      large.setAttribute("aria-expanded", String(on));
      doc.body.classList.toggle("still", on);
    });
    tools.appendChild(large);
    tools.appendChild(button("SVG", function () {
      save(name + ".svg", "image/svg+xml", standalone(svg, title, figure.querySelector("figcaption").textContent));
    }));
    tools.lastChild.setAttribute("aria-label", "Save this chart as SVG");
    tools.appendChild(button("CSV", function () { save(name + ".csv", "text/csv", table(svg)); }));
    tools.lastChild.setAttribute("aria-label", "Save the data of this chart as CSV");
    figure.querySelector("figcaption").after(tools);
  });
  addEventListener("keydown", function (e) {
    if (e.key === "Escape") all("figure.large .tools button[aria-expanded=true]", function (b) { b.click(); });
  });

  all(".copy", function (b) {
    if (!navigator.clipboard) return;
    b.hidden = false;
    b.addEventListener("click", function () {
      navigator.clipboard.writeText(b.parentNode.querySelector("code").textContent).then(
        function () { b.textContent = "Copied"; }, function () { b.textContent = "Select and copy"; });
    });
  });

  // Paper cannot be clicked open. A summary has no room for it.
  var closed = [];
  addEventListener("beforeprint", function () {
    if (location.hash !== "#everything") return;
    all("section details:not([open])", function (d) { if (!d.closest("figure")) { closed.push(d); d.open = true; } });
  });
  addEventListener("afterprint", function () { closed.splice(0).forEach(function (d) { d.open = false; }); });
})();
