/** Followers of a container's log across rotations and a restart of the agent, with containerd. */

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { AgentProcess } from "./agent-process.ts";

/** The container writes 2 MB, of lines of 1 KB, and pauses, until the file appears; its last line has their count. */
const WRITER = `BEGIN { pad = sprintf("%1000s", ""); n = 0;
  do { for (i = 0; i < 2000; i++) print n++ pad; fflush(); system("sleep 1") } while (system("test -e /control/stop"));
  print "end " n; fflush(); system("sleep 1000") }`;
const RUN_MS_MAX = 240_000;
const MIB = 2 ** 20;
const MAX_BYTES = 2 * MIB;
const MAX_FILES = 3;
/** Fields of the agent's configuration. */
const FIELDS = { containerLogMaxSize: "2Mi", containerLogMaxFiles: MAX_FILES, containerLogMonitorInterval: "3s" };

const missing = await findMissing();
if (missing.length > 0) console.error(`Skipped: ${missing.join(", ")} missing.`);
else {
  t.setTimeout(RUN_MS_MAX);
  t.test(
    "followers lose and repeat no line across rotations and a restart of the agent",
    { timeout: RUN_MS_MAX },
    async (t) => {
      await using containerd = await startPrivateContainerd();
      await using node = await AgentProcess.create({ containerd, name: "logs" });
      const container = { name: "c", image: containerd.image, command: ["busybox", "awk", WRITER] };
      const control = join(node.directory, "control");
      mkdirSync(control);
      const volumeMounts = [{ name: "control", mountPath: "/control" }];
      const spec = {
        containers: [{ ...container, imagePullPolicy: "Never", volumeMounts }],
        volumes: [{ name: "control", hostPath: { path: control } }],
        terminationGracePeriodSeconds: 0,
      };
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "writer", namespace: "default" }, spec };
      writeFileSync(join(node.manifests, "writer.json"), JSON.stringify(pod));
      const file = join(node.directory, "agent.json");
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...FIELDS }));
      node.start("standalone");
      const log = new LogDirectory(join(node.directory, "logs"));
      await until(
        () => `the log; the agent: ${node.log}`,
        () => log.sizes().length > 0,
        { timeoutMs: 20_000 },
      );
      const followers = [0, 20].map((pauseMs) => new Follower(node.port, pauseMs));
      const ended = Promise.all(followers.map((follower) => follower.run()));
      const watching = new AbortController();
      const measured = log.watch(watching.signal);
      await until("two rotations", () => log.rotations.size >= 2, { timeoutMs: 60_000 });
      t.equal(await node.stop(), 0);
      await sleep(2000);
      node.start("standalone");
      await until("two more rotations", () => log.rotations.size >= 4, { timeoutMs: 60_000 });
      writeFileSync(join(control, "stop"), "");
      await ended;
      watching.abort();
      await measured;

      for (const follower of followers) {
        const expected = Array.from({ length: follower.written ?? 0 }, (_, number) => String(number));
        const wrong = expected.findIndex((number, index) => number !== follower.lines[index]);
        const around = follower.lines.slice(Math.max(0, wrong - 1), wrong + 2);
        t.equal(follower.lines.length, follower.written, "as many lines as were written");
        t.equal(wrong, -1, `each line once, in order; around the first difference: ${around}`);
        t.ok(follower.connections > 1, "it has connected again");
      }
      t.ok(log.filesMax <= MAX_FILES + 1, `${log.filesMax} files, one of them being compressed`);
      t.ok(log.olderMax <= MAX_BYTES * MAX_FILES + MIB, `${log.olderMax} bytes in logs before the last rotated one`);
    },
  );
}

class LogDirectory {
  readonly rotations = new Set<string>();
  filesMax = 0;
  /** Without the current log and the last rotated one, whose size depends on what is written in an interval. */
  olderMax = 0;
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  sizes(): readonly (readonly [name: string, size: number])[] {
    try {
      const pod = readdirSync(this.#root)[0] ?? "";
      const directory = join(this.#root, pod, "c");
      return readdirSync(directory)
        .sort()
        .map((name) => [name, statSync(join(directory, name)).size] as const);
    } catch {
      // Not created yet, or renamed meanwhile.
      return [];
    }
  }

  async watch(signal: AbortSignal): Promise<void> {
    let before = "";
    while (!signal.aborted) {
      const sizes = this.sizes();
      const rotated = sizes.filter(([name]) => /^0\.log\.\d{8}-\d{6}(\.gz)?$/.test(name));
      for (const [name] of rotated) this.rotations.add(name.replace(".gz", ""));
      const names = rotated.map(([name]) => name).join();
      // Between the renaming and the removal of the excess is a moment.
      if (names === before) {
        const older = rotated.slice(0, -1).reduce((sum, [, size]) => sum + size, 0);
        this.filesMax = Math.max(this.filesMax, sizes.length);
        this.olderMax = Math.max(this.olderMax, older);
      }
      before = names;
      await sleep(200);
    }
  }
}

/** Follows the log as clients do that connect again with the time of the last line. */
class Follower {
  readonly lines: string[] = [];
  /** How many lines the container has written: undefined until its last line has been read. */
  written: number | undefined;
  connections = 0;
  readonly #port: number;
  readonly #pauseMs: number;
  #lastTime = "";

  constructor(port: number, pauseMs: number) {
    this.#port = port;
    this.#pauseMs = pauseMs;
  }

  async run(): Promise<void> {
    while (this.written === undefined) {
      const response = await this.#connect();
      if (response === undefined) await sleep(100);
      else await this.#read(response).catch(() => undefined);
    }
  }

  #connect(): Promise<IncomingMessage | undefined> {
    const since = this.#lastTime === "" ? "" : `&sinceTime=${this.#lastTime.slice(0, 19)}Z`;
    const path = `/containerLogs/default/writer-n1/c?follow=true&timestamps=true${since}`;
    const options = { host: "127.0.0.1", port: this.#port, path, rejectUnauthorized: false, agent: false };
    return new Promise((resolve) => {
      get(options, (response) => {
        if (response.statusCode === 200) return resolve(response);
        response.resume();
        resolve(undefined);
      }).on("error", () => resolve(undefined));
    });
  }

  async #read(response: IncomingMessage): Promise<void> {
    this.connections++;
    let rest = "";
    for await (const chunk of response as AsyncIterable<Buffer>) {
      const lines = `${rest}${chunk}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#add(line);
      if (this.written !== undefined) return;
      if (this.#pauseMs > 0) await sleep(this.#pauseMs);
    }
  }

  #add(line: string): void {
    const [time = "", text = "", count] = line.trimEnd().split(" ", 3);
    if (time <= this.#lastTime) return;
    this.#lastTime = time;
    if (text === "end") this.written = Number(count);
    else this.lines.push(text);
  }
}
