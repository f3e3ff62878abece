#!/usr/bin/env node
/**
 * Runs the named suites (unit, e2e, long) under tap and prints a last line, "N passed, N failed".
 *
 * A process for a test file takes half a second of CPU time, so the unit tests of a package share one: a file in
 * dist/tests/ imports them all. Tests of whole clusters wait for half of their time, so that two run side by side, each
 * in a network of its own; the longest run alone.
 */
import { spawn, spawnSync } from "node:child_process";
import { createReadStream, existsSync, globSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { Parser } from "tap-parser";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const entries = join(root, "dist", "tests");

/** Tests of whole clusters that `make test` leaves out, so that it takes less than 20 minutes. */
const longTests = [
  "applications",
  "audited-streams",
  "clock",
  "compiled-code",
  "container-logs",
  "container-logs-load",
  "controller-faults",
  "controller-stalls",
  "failing-disk",
  "csi",
  "faults",
  "network-policy",
  "pinned-cpus",
  "placed-pods",
  "helm",
  "image-disk",
  "in-cluster-client",
  "interrupted-maintenance",
  "joining",
  "killed-allocations",
  "killed-evictions",
  "kubectl-debug",
  "disk-eviction",
  "memory-eviction",
  "kubectl-operations",
  "kubectl-transfers",
  "pod-network",
  "postgresql",
  "reboot",
  "recorded-streams-down",
  "resource-metrics",
  "rolling-restarts",
  "services-of-nodes",
  "service-discovery",
  "several-servers",
  "standalone",
  "streams-load",
  "streams-restarts",
];

/** Of the unit tests of a package. */
const UNIT_MS_MAX = 600_000;

/** More files than this fail for a reason that a second run would only repeat. */
const MAX_REPEATED_FILES = 4;

const isCluster = (file) => file.startsWith("src/acceptance/cluster/");
const isLong = (file) => longTests.includes(basename(file, ".test.ts"));

/** Tests that get a process of their own: they are long, or count the threads of their process. */
const isAlone = (file) => /\/(?:kubectl\/|client-node|mutants\.|workers\.test)/.test(file);

const suites = {
  unit: () => run("unit", unitEntries(), (name, files, jobs) => runTap(name, files, UNIT_MS_MAX / 1000, { jobs })),
  e2e: () =>
    run(
      "e2e",
      tests("src/acceptance/cluster/**/*.test.ts").filter((file) => !isLong(file)),
      runInNetworks,
    ),
  long: () =>
    run("long", tests("src/acceptance/**/*.test.ts").filter(isLong), (name, files) => runTap(name, files, 900)),
};

/** Runs a command with the network of a host that has one interface and a default route. */
const separateNetwork = [
  ...["unshare", "--net", "sh", "-ec"],
  `ip link set lo up
  ip link add eth0 type veth peer name uplink
  ip address add 192.0.2.11/24 dev eth0
  ip link set eth0 up
  ip link set uplink up
  ip route add default via 192.0.2.1 dev eth0
  exec "$0" "$@"`,
];

const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !Object.hasOwn(suites, name));
if (wanted.length === 0 || unknown !== undefined) {
  console.error(`Usage: bin/test.mjs ${Object.keys(suites).join("|")}...`);
  process.exit(2);
}
let passed = 0;
let failed = 0;
for (const name of wanted) {
  const result = await suites[name]();
  passed += result.passed;
  failed += result.failed;
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function tests(pattern) {
  return globSync(pattern, { cwd: root }).sort();
}

/** Writes an entry file for each package; returns the paths. */
function unitEntries() {
  rmSync(entries, { recursive: true, force: true });
  mkdirSync(entries, { recursive: true });
  const groups = Map.groupBy(
    tests("src/**/*.test.ts").filter((file) => !isCluster(file) && !isLong(file)),
    groupOf,
  );
  return [...groups].map(([group, files]) => {
    const entry = join(entries, `${group}.mjs`);
    const imports = files.map((file) => `import ${JSON.stringify(relative(entries, join(root, file)))};\n`);
    // Without it, the limit of the last file that sets one would be that of all.
    const limit = `import t from "tap";\nt.setTimeout(${UNIT_MS_MAX});\n`;
    writeFileSync(entry, [...imports, limit].join(""));
    return relative(root, entry);
  });
}

/** `registry` for all of src/registry. The suites in src/acceptance are long: each of its folders is a group. */
function groupOf(file) {
  if (isAlone(file)) return file.replaceAll("/", "-");
  const folders = file.split("/").slice(1, -1);
  return folders.slice(0, folders[0] === "acceptance" ? 2 : 1).join("-") || basename(file, ".test.ts");
}

/**
 * Runs a suite, two processes at a time; resolves with its counts. Test files that fail are run once more, alone: on a
 * machine of two cores a deadline can pass because of the neighbours. What passes then is printed as flaky, and counts
 * as passed.
 */
async function run(suite, files, runFiles) {
  const result = await runFiles(suite, files, 2);
  const repeated = [...result.failedFiles].filter((file) => existsSync(join(root, file)));
  if (result.failed === 0 || repeated.length === 0 || repeated.length > MAX_REPEATED_FILES) return result;
  console.error(`${suite}: run once more, alone: ${repeated.join(", ")}`);
  const again = await runFiles(`${suite}-repeated`, repeated, 1);
  const flaky = Math.max(0, result.failed - again.failed);
  if (again.failed === 0) for (const { name } of result.failures) console.error(`flaky: ${name}`);
  return { passed: result.passed + flaky, failed: again.failed };
}

/** Runs each file in a network namespace of its own; where there are none, in this one and one at a time. */
async function runInNetworks(suite, files, jobs) {
  const [program, ...words] = separateNetwork;
  const isPossible = spawnSync(program, [...words, "true"]).status === 0;
  const command = isPossible ? separateNetwork : [];
  const began = performance.now();
  const total = { passed: 0, failed: 0, failures: [], failedFiles: new Set() };
  const queue = [...files];
  const runQueue = async () => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const result = await runTap(`${suite}-${basename(file, ".test.ts")}`, [file], 600, { command });
      total.passed += result.passed;
      total.failed += result.failed;
      total.failures.push(...result.failures);
      for (const failed of result.failedFiles) total.failedFiles.add(failed);
    }
  };
  await Promise.all(Array.from({ length: isPossible ? jobs : 1 }, runQueue));
  const seconds = Math.round((performance.now() - began) / 1000);
  console.error(`${suite}: ${total.passed} passed, ${total.failed} failed in ${seconds} s`);
  return total;
}

/** Runs tap over `files`, as words of `command` if there is one; resolves with the counts of its leaves. */
async function runTap(suite, files, timeoutSeconds, { jobs = 1, command = [] } = {}) {
  if (files.length === 0) return { passed: 0, failed: 0, failures: [], failedFiles: new Set() };
  const output = join(root, "dist", `${suite}.tap`);
  mkdirSync(dirname(output), { recursive: true });
  const reporter = process.stdout.isTTY && command.length === 0 ? [] : ["--reporter=silent"];
  const options = [...reporter, `--jobs=${jobs}`, `--timeout=${timeoutSeconds}`, `--output-file=${output}`];
  const [program, ...words] = [...command, "tap", "run", ...options, ...files];
  const began = performance.now();
  const code = await new Promise((resolve, reject) => {
    const child = spawn(program, words, { cwd: root, stdio: "inherit" });
    child.on("error", reject);
    child.on("exit", resolve);
  });
  const result = await count(output);
  // A runner that fails without a failed test (no test ran, it crashed) is a failure too.
  if (code !== 0 && result.failed === 0) result.failed = 1;
  for (const { name, details } of result.failures) console.error(`not ok: ${name}\n${details}`);
  const seconds = Math.round((performance.now() - began) / 1000);
  console.error(
    `${suite}: ${result.passed} passed, ${result.failed} failed in ${seconds} s; all of it is in dist/${suite}.tap`,
  );
  return result;
}

/** Counts leaves only: a test with subtests counts when it fails although they pass. */
async function count(file) {
  const result = { passed: 0, failed: 0, failures: [], failedFiles: new Set() };
  const fail = ({ fullname, name, diag }) => {
    result.failed++;
    const where = diag?.at === undefined ? "" : ` (${diag.at.fileName}:${diag.at.lineNumber})`;
    const details = (diag?.diff ?? diag?.stack ?? "").split("\n").slice(0, 30).join("\n");
    result.failures.push({ name: `${fullname} > ${name}${where}`, details });
  };
  /** The test files that an entry imports, or the whole entry when it was killed: the rest of it did not run. */
  const addFailedFile = ({ name, diag }, level) => {
    const file = diag?.at?.fileName ?? "";
    if (level > 0 && /^src\/.*\.test\.ts$/.test(file)) result.failedFiles.add(file);
    if (level === 0 && (diag?.signal ?? null) !== null) result.failedFiles.add(name);
  };
  const follow = (parser, level) => {
    let below = 0;
    let failedBelow = 0;
    parser.on("child", (child) => {
      const before = { ...result };
      follow(child, level + 1);
      child.on("complete", () => {
        below = result.passed + result.failed - before.passed - before.failed;
        failedBelow = result.failed - before.failed;
      });
    });
    parser.on("assert", (assertion) => {
      const good = assertion.ok || assertion.todo;
      if (!good) addFailedFile(assertion, level);
      if (below === 0) {
        if (good && !assertion.skip) result.passed++;
        if (!good) fail(assertion);
      } else if (!good && failedBelow === 0) fail(assertion);
      below = 0;
      failedBelow = 0;
    });
  };
  const parser = new Parser();
  follow(parser, 0);
  await new Promise((resolve, reject) => {
    parser.on("complete", resolve);
    createReadStream(file).on("error", reject).pipe(parser);
  });
  return result;
}
