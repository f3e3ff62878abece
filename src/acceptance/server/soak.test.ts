/**
 * Memory, open files and disk of a server stay flat under mixed load. `make soak` runs it for hours with `dist/svc`,
 * whose start limits the free memory of V8 and of the C library:
 *
 *     SVC_PROGRAM=bundle SVC_SOAK_MINUTES=240 node src/acceptance/server/soak.test.ts
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import { programs } from "../cluster/cluster.ts";

/** Seconds show that the load runs and leaves no files open; growth shows in hours. */
const MINUTES = Number(process.env.SVC_SOAK_MINUTES ?? 0.1);
const SAMPLES = MINUTES < 10 ? 4 : Math.min(240, Math.round(MINUTES / 2));
const SAMPLE_MS = (MINUTES * 60_000) / SAMPLES;
/** After the load has stopped, before a sample. */
const QUIET_MS = MINUTES < 10 ? 500 : 10_000;
const CLIENTS = 4;
const TIMEOUT_MS = MINUTES * 120_000 + 240_000;
t.setTimeout(TIMEOUT_MS);

/** What may be more in the last third than in the first one. Of memory, which has peaks, that is the median. */
const MEMORY_RATIO_MAX = 1.15;
const DISK_RATIO_MAX = 1.5;
const OPEN_FILES_MAX = 5;

const DEFAULT = "/api/v1/namespaces/default";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

interface Sample {
  readonly residentMiB: number;
  readonly openFiles: number;
  readonly diskMiB: number;
}

const newCounts = () => ({ requests: 0, unexpected: new Map<string, number>() });

/** One client: each round writes and reads, watches, and makes mistakes; all that it creates, it deletes. */
class Client {
  readonly #server: ServerProcess;
  readonly #name: string;
  readonly #counts: ReturnType<typeof newCounts>;
  #round = 0;

  constructor(server: ServerProcess, index: number, counts: ReturnType<typeof newCounts>) {
    this.#server = server;
    this.#name = `client-${index}`;
    this.#counts = counts;
  }

  async round(): Promise<void> {
    const number = this.#round++;
    await this.#configMaps(`${this.#name}-${number}`);
    await this.#lease();
    await this.#send("GET", `${DEFAULT}/configmaps?labelSelector=a+in+(`, 400);
    await this.#send("POST", `${DEFAULT}/services`, 422, { metadata: { name: "UPPER" }, spec: {} });
    await this.#send("GET", `${DEFAULT}/secrets/absent`, 404);
    await this.#send("GET", `${DEFAULT}/configmaps?watch=true&timeoutSeconds=1`, 200);
    if (number % 5 === 0) await this.#namespace(`${this.#name}-${number}`);
    if (number % 20 === 0) await this.#definition(`${this.#name}-${number}`);
  }

  async #configMaps(name: string): Promise<void> {
    const map = { metadata: { name, labels: { soak: this.#name } }, data: { filling: name.repeat(200) } };
    const path = `${DEFAULT}/configmaps/${name}`;
    await this.#send("POST", `${DEFAULT}/configmaps`, 201, map);
    await this.#send("PUT", path, 200, { ...map, data: { filling: "x" } });
    await this.#send("PATCH", path, 200, { data: { more: "1" } }, "application/merge-patch+json");
    await this.#send("GET", `${DEFAULT}/configmaps?labelSelector=soak`, 200);
    await this.#send("GET", path, 200);
    await this.#send("DELETE", path, 200);
  }

  async #lease(): Promise<void> {
    const spec = { holderIdentity: this.#name, renewTime: new Date().toISOString().replace("Z", "000Z") };
    const apply = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: this.#name }, spec };
    const path = `${LEASES}/${this.#name}?fieldManager=soak&force=true`;
    const { status } = await this.#server.send("PATCH", path, apply, { contentType: "application/apply-patch+yaml" });
    this.#count(`PATCH ${LEASES}`, status === 201 ? 200 : status, 200);
  }

  async #namespace(name: string): Promise<void> {
    await this.#send("POST", "/api/v1/namespaces", 201, { metadata: { name } });
    await this.#send("POST", `/api/v1/namespaces/${name}/secrets`, 201, {
      metadata: { name: "s" },
      stringData: { a: "b" },
    });
    await this.#send("DELETE", `/api/v1/namespaces/${name}`, 200);
  }

  async #definition(name: string): Promise<void> {
    const [group, plural] = [`${name}.example.com`, "things"];
    const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
    const versions = [{ name: "v1", served: true, storage: true, schema }];
    const spec = { group, scope: "Namespaced", names: { plural, kind: "Thing" }, versions };
    await this.#send("POST", DEFINITIONS, 201, { metadata: { name: `${plural}.${group}` }, spec });
    await this.#send("DELETE", `${DEFINITIONS}/${plural}.${group}`, 200);
  }

  async #send(method: string, path: string, expected: number, body?: unknown, contentType?: string): Promise<void> {
    const { status } = await this.#server.send(method, path, body, { contentType, ignoreBody: true });
    this.#count(`${method} ${path.replaceAll(/client-\d-\d+/g, "NAME")}`, status, expected);
  }

  #count(request: string, status: number, expected: number): void {
    this.#counts.requests++;
    if (status === expected) return;
    const key = `${request} gets ${status}, not ${expected}`;
    this.#counts.unexpected.set(key, (this.#counts.unexpected.get(key) ?? 0) + 1);
  }
}

function takeSample(server: ServerProcess, store: string): Sample {
  const names = readdirSync(store).filter((name) => name !== "RESERVE");
  const sizes = names.map((name) => statSync(join(store, name), { throwIfNoEntry: false })?.size ?? 0);
  return {
    residentMiB: Math.round(server.residentMemory()),
    openFiles: readdirSync(`/proc/${server.child.pid}/fd`).length,
    diskMiB: Math.round(sizes.reduce((sum, size) => sum + size, 0) / 2 ** 18) / 4,
  };
}

t.test("memory, open files and disk stay flat under mixed load", { timeout: TIMEOUT_MS }, async (t) => {
  const home = mkdtempSync(join(tmpdir(), "svc-soak-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const store = join(home, "store");
  const flags = ["--embedded-controllers=namespace,garbage-collector", "--kvstore-compaction-interval=30s"];
  const { SVC_PROGRAM: selected = "sources" } = process.env;
  const program = programs[selected as keyof typeof programs];
  await using server = await startServerProcess({ home, store, flags, program });
  const counts = newCounts();
  const clients = Array.from({ length: CLIENTS }, (_, index) => new Client(server, index, counts));
  const samples: Sample[] = [];
  for (let count = 0; count < SAMPLES; count++) {
    const until = performance.now() + SAMPLE_MS;
    const work = async (client: Client): Promise<void> => {
      while (performance.now() < until) await client.round();
    };
    await Promise.all(clients.map(work));
    await sleep(QUIET_MS);
    samples.push(takeSample(server, store));
    if (MINUTES >= 10) t.comment(JSON.stringify({ minutes: (count + 1) * (SAMPLE_MS / 60_000), ...samples.at(-1) }));
  }
  t.same(Object.fromEntries(counts.unexpected), {}, "each request gets the expected status");
  t.ok(counts.requests > 20);
  const first = samples.slice(0, Math.ceil(SAMPLES / 3));
  const last = samples.slice(-Math.ceil(SAMPLES / 3));
  const highest = (of: readonly Sample[], figure: keyof Sample): number => Math.max(...of.map((each) => each[figure]));
  const change = (figure: keyof Sample): readonly [number, number] => [highest(first, figure), highest(last, figure)];
  const median = (of: readonly Sample[]): number =>
    of.map(({ residentMiB }) => residentMiB).toSorted((a, b) => a - b)[Math.floor(of.length / 2)] ?? 0;
  const memory = [median(first), median(last)] as const;
  const [openFiles, disk] = [change("openFiles"), change("diskMiB")];
  t.ok(openFiles[1] <= openFiles[0] + OPEN_FILES_MAX, `open files: ${openFiles}`);
  if (MINUTES >= 10) {
    t.ok(memory[1] <= memory[0] * MEMORY_RATIO_MAX, `MiB resident: ${memory}`);
    t.ok(disk[1] <= disk[0] * DISK_RATIO_MAX, `MiB of disk: ${disk}`);
  }
  t.comment(JSON.stringify({ requests: counts.requests, memory, openFiles, disk }));
});
