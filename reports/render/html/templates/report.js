"use strict";
(function () {
  var doc = document, root = doc.documentElement;
  var all = function (q, f) { Array.prototype.forEach.call(doc.querySelectorAll(q), f); };

  // Theme: system, light, dark in turn.
  var themes = ["system", "light", "dark"], at = 0, button = doc.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", function () {
    at = (at + 1) % themes.length;
    if (at) root.setAttribute("data-theme", themes[at]); else root.removeAttribute("data-theme");
    button.textContent = "Theme: " + themes[at];
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

  all(".copy", function (b) {
    if (!navigator.clipboard) return;
    b.hidden = false;
    b.addEventListener("click", function () {
      navigator.clipboard.writeText(b.parentNode.querySelector("code").textContent).then(
        function () { b.textContent = "Copied"; }, function () { b.textContent = "Select and copy"; });
    });
  });

  // Paper cannot be clicked open.
  var closed = [];
  addEventListener("beforeprint", function () { all("section > details:not([open]), .run details:not([open])", function (d) { closed.push(d); d.open = true; }); });
  addEventListener("afterprint", function () { closed.splice(0).forEach(function (d) { d.open = false; }); });
})();
