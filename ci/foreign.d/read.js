// Reads a directory of rdmaperf run --output with programs of others: ajv validates the
// document against its schema, hdr-histogram-js reads the histograms, and jstat computes
// the intervals over repeats. Raw samples are ranked here, as everybody ranks.
//
//   node read.js DIR SCHEMA MODULES
//
// Exit codes: 0 everything agrees, 1 something does not.
"use strict";
const fs = require("fs"), path = require("path");
const [dir, schemaFile, modules] = process.argv.slice(2);
const use = (name) => require(require.resolve(name, {paths: [modules]}));
const hdr = use("hdr-histogram-js"), Ajv = use("ajv/dist/2020"), formats = use("ajv-formats"), {jStat} = use("jstat");

let failed = 0, checks = 0;
function check(ok, what) {
  checks++;
  if (!ok) { failed++; console.error("foreign: " + what); }
}
// Three digits: a value is known within one part in a thousand.
const near = (a, b) => Math.abs(a - b) <= Math.max(1, Math.abs(b) / 1000);
const read = (name) => fs.readFileSync(path.join(dir, name), "utf8");

const doc = JSON.parse(read("result.json"));
const ajv = new Ajv({strict: false, allErrors: true});
(formats.default || formats)(ajv);
const valid = ajv.compile(JSON.parse(fs.readFileSync(schemaFile, "utf8")));
check(valid(doc), "schema: " + JSON.stringify(valid.errors));

// Percentiles of the document against those of another reader of the same histogram.
const ranks = {p50: 50, p90: 90, p99: 99, p999: 99.9, p9999: 99.99};
function histogram(name, l) {
  if (!l || !l.hdr) return;
  const h = hdr.decodeFromCompressedBase64(l.hdr);
  check(h.totalCount === l.count, `${name}: ${h.totalCount} samples, the document says ${l.count}`);
  for (const [p, q] of Object.entries(ranks)) {
    const theirs = Math.min(Math.max(h.getValueAtPercentile(q), l.min), l.max);
    check(near(theirs, l[p]), `${name}: ${p} is ${theirs} in hdr-histogram-js and ${l[p]} in the document (${l.count} samples)`);
  }
}
for (const [i, r] of doc.results.entries()) {
  const name = `result ${i}, ${r.stack} ${r.workload} ${r.op}`;
  for (const member of ["latency", "latency_corrected", "latency_service"]) histogram(name + " " + member, r[member]);
  if (r.hol) { histogram(name + " alone", r.hol.probe_alone); histogram(name + " loaded", r.hol.probe_loaded); }
}

// Every log line, with its start: no two windows of one client begin together.
let logs = 0;
const starts = new Set();
for (const name of fs.readdirSync(path.join(dir, "histograms")).filter((n) => n.endsWith(".hlog")).map((n) => "histograms/" + n)) {
  logs++;
  const reader = new hdr.HistogramLogReader(read(name));
  const h = reader.nextIntervalHistogram();
  check(h && h.totalCount > 0, name + ": no histogram");
  check(!reader.nextIntervalHistogram(), name + ": more than one interval");
  if (h) starts.add(h.startTimeStampMsec);
  const rows = read(name.replace(/hlog$/, "hgrm")).split("\n").filter((l) => /^ *[0-9.]+ +[01]\.[0-9]+ +\d+/.test(l));
  check(h && rows.length > 0 && Number(rows.at(-1).trim().split(/ +/)[2]) === h.totalCount, name + ": the .hgrm ends with another count");
}
check(logs > 0, "no .hlog");
const windows = new Set(doc.results.filter((r) => r.latency || r.hol).map((r) => Date.parse(r.started)));
check(starts.size === windows.size, `${starts.size} starts of intervals in the logs, ${windows.size} windows in the document`);

// Raw samples: the rank ceil(q·n).
if (fs.existsSync(path.join(dir, "samples.csv"))) {
  const sets = new Map();
  const lines = read("samples.csv").trim().split(/\r?\n/).map((l) => l.split(","));
  const column = (name) => lines[0].indexOf(name);
  for (const l of lines.slice(1)) {
    const key = l[column("result")] + " " + l[column("set")];
    if (!sets.has(key)) sets.set(key, []);
    sets.get(key).push(Number(l[column("latency_ns")]));
  }
  check(sets.size > 0, "no raw samples");
  for (const [key, all] of sets) {
    const [index, set] = key.split(" ");
    const l = set === "latency" ? doc.results[index].latency : null;
    if (!l || l.unfinished || l.count !== all.length) continue;
    all.sort((a, b) => a - b);
    for (const [p, q] of Object.entries(ranks)) {
      const v = all[Math.min(Math.max(Math.ceil(q / 100 * all.length - 1e-9), 1), all.length) - 1];
      check(near(l[p], v), `raw samples of result ${index}: ${p} is ${v}, the document says ${l[p]}`);
    }
    const mean = all.reduce((a, b) => a + b, 0) / all.length;
    check(near(l.mean, mean), `raw samples of result ${index}: mean ${mean}, the document says ${l.mean}`);
  }
}

// Intervals over repeats, computed anew.
function figure(r, name) {
  if (name === "rate") return r.throughput && r.throughput.operations_per_second;
  if (name === "bw") return r.throughput && r.throughput.bytes_per_second;
  const at = name.split(".");
  const l = at.length === 1 ? r.latency : at[0] === "alone" ? r.hol && r.hol.probe_alone : at[0] === "loaded" ? r.hol && r.hol.probe_loaded : null;
  return l ? l[at.at(-1)] : undefined;
}
let intervals = 0;
for (const s of doc.repeats || []) {
  for (const f of s.figures || []) {
    const v = s.results.map((i) => figure(doc.results[i], f.figure));
    if (v.some((x) => x === undefined || x === null)) continue;
    intervals++;
    const n = v.length, what = `${s.stack} ${s.workload} ${f.figure}`;
    if (f.median !== undefined) {
      v.sort((a, b) => a - b);
      const k = v.indexOf(f.low);
      const covered = 1 - 2 * jStat.binomial.cdf(k, n, 0.5);
      check(k >= 0 && v[n - 1 - k] === f.high && Math.abs(covered - f.confidence) < 1e-9, `${what}: from ${f.low} to ${f.high} with ${f.confidence}, jstat says ${covered}`);
      check(near(jStat.median(v), f.median), `${what}: median ${jStat.median(v)}, the document says ${f.median}`);
    } else {
      const half = jStat.studentt.inv(0.975, n - 1) * jStat.stdev(v, true) / Math.sqrt(n), mean = jStat.mean(v);
      check(near(mean, f.mean) && near(Math.max(mean - half, 0), f.low) && near(mean + half, f.high), `${what}: ${mean} ± ${half}, the document says ${f.mean} from ${f.low} to ${f.high}`);
    }
    check(f.low >= 0, `${what}: the interval begins below zero`);
  }
}
check(intervals > 0, "no intervals over repeats");

// RFC 4180: as many fields in every row.
const rows = read("exports/results.csv").trim().split("\r\n").map((l) => l.replace(/"([^"]|"")*"/g, "quoted").split(",").length);
check(rows.length > doc.results.length && new Set(rows).size === 1, "results.csv: rows of " + [...new Set(rows)] + " fields");

console.log(`${checks} checks of ${doc.results.length} results, ${logs} logs, ${intervals} intervals: ${failed} disagree`);
process.exit(failed ? 1 : 0);
