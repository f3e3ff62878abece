/** The log of a container that writes 50 MB a second, with containerd: limits on disk, and a follower. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { AgentProcess } from "./agent-process.ts";
import { programs } from "./cluster.ts";

const MB = 1e6;
const LINE_BYTES = 10_000;
/** Of the number of a line. */
const DIGITS = 9;
const MB_PER_SECOND = 50;
const SECONDS = 40;
const LINES = (SECONDS * MB_PER_SECOND * MB) / LINE_BYTES;
/** The number of the last line. */
const END = 999_999_999;
/** Numbered lines, after a time to open the log: 50 MB, then a pause until the next second begins. */
const WRITER = `BEGIN { system("sleep 2"); srand(1); for (i = 0; i < ${LINE_BYTES / 10 - 1}; i++) pad = pad sprintf("%010d", rand() * 1e9);
  for (second = systime(); n < ${LINES}; second++) {
    for (i = 0; i < ${LINES / SECONDS}; i++) printf "%0${DIGITS}d%s\\n", n++, pad; fflush();
    while (systime() <= second) system("usleep 5000") }
  printf "%0${DIGITS}d%s\\n", ${END}, pad; fflush(); system("sleep 1000") }`;
/** The least that the agent accepts. */
const INTERVAL_SECONDS = 3;
const MAX_FILES = 4;
const MAX_BYTES = 100 * 2 ** 20;
const FIELDS = {
  containerLogMaxSize: "100Mi",
  containerLogMaxFiles: MAX_FILES,
  containerLogMonitorInterval: `${INTERVAL_SECONDS}s`,
};
/** The runtime adds a timestamp and the stream to each line. */
const INTERVAL_BYTES = INTERVAL_SECONDS * MB_PER_SECOND * MB * 1.01;
/** One more second: the container writes in bursts, and a rotation takes time. */
const SLACK_BYTES = MB_PER_SECOND * MB;
const RUN_MS_MAX = 300_000;

const missing = await findMissing();
if (missing.length > 0) console.error(`Skipped: ${missing.join(", ")} missing.`);
else {
  t.setTimeout(RUN_MS_MAX);
  t.test("rotation keeps up with 50 MB/s, and a follower gets every line", { timeout: RUN_MS_MAX }, async (t) => {
    await using containerd = await startPrivateContainerd();
    const { SVC_PROGRAM: selected = "bundle" } = process.env;
    const program = programs[selected as keyof typeof programs];
    await using node = await AgentProcess.create({ containerd, name: "load", program });
    const container = { name: "c", image: containerd.image, command: ["busybox", "awk", WRITER] };
    // Without a request, other programs on the machine would leave it no CPU time.
    const resources = { requests: { cpu: "1" } };
    const spec = {
      containers: [{ ...container, imagePullPolicy: "Never", resources }],
      terminationGracePeriodSeconds: 0,
    };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "writer", namespace: "default" }, spec };
    writeFileSync(join(node.manifests, "writer.json"), JSON.stringify(pod));
    const file = join(node.directory, "agent.json");
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...FIELDS }));
    node.start("standalone");
    const response = await until(
      () => `the log; the agent: ${node.log}`,
      () => follow(node.port),
      { timeoutMs: 20_000 },
    );
    const follower = new NumberedLines();
    const watching = new AbortController();
    const watched = watchSizes(join(node.directory, "logs"), watching.signal);
    const began = performance.now();
    for await (const chunk of response as AsyncIterable<Buffer>) {
      follower.add(chunk);
      if (follower.hasEnded) break;
    }
    const seconds = (performance.now() - began) / 1000;
    watching.abort();
    const { currentMax, olderMax, filesMax, totalMax, rotations } = await watched;
    t.comment(
      `${Math.round((LINES * LINE_BYTES) / MB / seconds)} MB/s, ${rotations} rotations, at most ${filesMax} files, ` +
        `${Math.round(currentMax / MB)} MB in the current one, ${Math.round(totalMax / MB)} MB in all`,
    );
    t.equal(follower.wrong, "", "each line once, in order");
    t.equal(follower.count, LINES);
    t.ok(seconds < SECONDS * 1.5, `${LINES} lines took ${seconds.toFixed(1)} s`);
    t.ok(rotations > SECONDS / INTERVAL_SECONDS / 3, `${rotations} rotations`);
    t.ok(filesMax <= MAX_FILES + 1, `${filesMax} files, one of them being compressed`);
    t.ok(currentMax <= MAX_BYTES + INTERVAL_BYTES + SLACK_BYTES, `${currentMax} bytes in the current log`);
    t.ok(olderMax <= MAX_BYTES * MAX_FILES + INTERVAL_BYTES, `${olderMax} bytes in logs before the last rotated one`);
  });
}

/** Checks lines that begin with their number. */
class NumberedLines {
  count = 0;
  /** The first line that is not the next one. */
  wrong = "";
  hasEnded = false;
  #rest: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let start = 0;
    for (; bytes.length - start >= LINE_BYTES; start += LINE_BYTES) {
      const number = Number(bytes.toString("latin1", start, start + DIGITS));
      const isWhole = bytes[start + LINE_BYTES - 1] === 0x0a;
      if (number === END) this.hasEnded = true;
      else if (number === this.count && isWhole) this.count++;
      else if (this.wrong === "") this.wrong = `line ${number} instead of ${this.count}`;
    }
    this.#rest = Buffer.from(bytes.subarray(start));
  }
}

/** Undefined until the agent serves the log. */
function follow(port: number): Promise<IncomingMessage | undefined> {
  const path = "/containerLogs/default/writer-n1/c?follow=true";
  return new Promise((resolve) => {
    get({ host: "127.0.0.1", port, path, rejectUnauthorized: false, agent: false }, (response) => {
      if (response.statusCode !== 200) response.resume();
      resolve(response.statusCode === 200 ? response : undefined);
    }).on("error", () => resolve(undefined));
  });
}

async function watchSizes(root: string, signal: AbortSignal) {
  const most = { currentMax: 0, olderMax: 0, filesMax: 0, totalMax: 0 };
  const seen = new Set<string>();
  let before = "";
  while (!signal.aborted) {
    const sizes = listSizes(root);
    const rotated = sizes.filter(([name]) => /^0\.log\.\d{8}-\d{6}(\.gz)?$/.test(name));
    for (const [name] of rotated) seen.add(name.replace(".gz", ""));
    const names = rotated.map(([name]) => name).join();
    most.totalMax = Math.max(most.totalMax, sum(sizes));
    most.currentMax = Math.max(most.currentMax, sum(sizes.filter(([name]) => name === "0.log")));
    // Between the renaming and the removal of the excess is a moment.
    if (names === before) {
      most.filesMax = Math.max(most.filesMax, sizes.length);
      most.olderMax = Math.max(most.olderMax, sum(rotated.slice(0, -1)));
    }
    before = names;
    await sleep(100);
  }
  return { ...most, rotations: seen.size };
}

type Size = readonly [name: string, bytes: number];

function sum(sizes: readonly Size[]): number {
  return sizes.reduce((bytes, [, size]) => bytes + size, 0);
}

function listSizes(root: string): readonly Size[] {
  try {
    const directory = join(root, readdirSync(root)[0] ?? "", "c");
    const names = readdirSync(directory).sort();
    return names.map((name) => [name, statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0] as const);
  } catch {
    // Not created yet.
    return [];
  }
}
