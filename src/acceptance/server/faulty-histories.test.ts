/**
 * Histories of concurrent clients are linearizable through faults: of a server with the embedded store, whose disk is
 * slow or full at times (FUSE), and of three servers on three members of etcd, which are killed, paused and cut off
 * from each other (network namespaces). `make linearizability` checks more of them:
 *
 *     SVC_HISTORY_ROUNDS=10 SVC_HISTORY_FAULTS=8 SEED=123 node src/acceptance/server/faulty-histories.test.ts
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import {
  findNamespaceProblem,
  type NetworkNamespace,
  NetworkNamespaces,
} from "../../testing/std/network-namespaces.ts";
import { type EtcdCluster, findEtcdProblem, startEtcd } from "../../testing/storage/etcd-server.ts";
import { canUseFuse, FuseConnection } from "../../testing/storage/power-cut/fuse-connection.ts";
import { DISK_BYTES, RecordedDisk } from "../../testing/storage/power-cut/recorded-disk.ts";
import { checkRounds, type Histories, ROUNDS, type Send, seed } from "./histories.ts";

const MEMBERS = 3;
/** Per round. */
const FAULTS = Number(process.env.SVC_HISTORY_FAULTS ?? 0);
/** In `make test`. */
const FEW_FAULTS = 2;

t.setTimeout(ROUNDS * 240_000);

type Pick = (count: number) => number;

interface FaultySystem {
  readonly send: Send;
  readonly faults: Readonly<Record<string, (pick: Pick) => Promise<unknown>>>;
}

const duration = (pick: Pick): number => 300 + pick(2500);

/** Injects one fault after the other, while clients send requests. */
async function checkThroughFaults(t: Test, offset: number, count: number, { send, faults }: FaultySystem) {
  const counts: Record<string, number> = {};
  const names = Object.keys(faults);
  await checkRounds(t, offset, async (histories: Histories, round) => {
    const random = seededRandom(seed + offset + 10 * round);
    const pick: Pick = (limit) => Math.floor(random.fraction() * limit);
    let isOver = false;
    const injectFaults = async (): Promise<void> => {
      for (let fault = 0; fault < count; fault++) {
        await sleep(pick(1500));
        const name = names[pick(names.length)]!;
        counts[name] = (counts[name] ?? 0) + 1;
        await faults[name]!(pick);
      }
      await sleep(1000);
    };
    const injecting = injectFaults().finally(() => {
      isOver = true;
    });
    await Promise.all([injecting, histories.runThroughFaults(send, () => isOver)]);
  });
  t.comment(`faults: ${JSON.stringify(counts)}`);
}

async function pause(pid: number | undefined, milliseconds: number): Promise<void> {
  if (pid === undefined) return;
  process.kill(pid, "SIGSTOP");
  await sleep(milliseconds);
  process.kill(pid, "SIGCONT");
}

/** `svc apiserver` with a file system in memory as its disk. */
class ServerOnFaultyDisk implements AsyncDisposable, FaultySystem {
  readonly #home = mkdtempSync(join(tmpdir(), "svc-histories-"));
  readonly #mountPoint = join(this.#home, "disk");
  readonly #disk = new RecordedDisk({ isRecorded: false });
  #connection: FuseConnection | undefined;
  #server: ServerProcess | undefined;

  readonly send: Send = async (method, path, body, contentType) => {
    if (this.#server === undefined) throw new Error("ECONNREFUSED: the server does not run");
    return await this.#server.send(method, path, body, { contentType });
  };

  readonly faults: FaultySystem["faults"] = {
    "slow disk": async (pick) => {
      const connection = this.#connection!;
      connection.delayMs = 20 + pick(200);
      await sleep(duration(pick));
      connection.delayMs = 0;
    },
    "full disk": async (pick) => {
      this.#disk.capacityBytes = this.#disk.usedBytes;
      await sleep(duration(pick));
      this.#disk.capacityBytes = DISK_BYTES;
    },
    "server paused": async (pick) => await pause(this.#server?.child.pid, duration(pick)),
    "server killed": async (pick) => {
      await this.#kill();
      await sleep(pick(300));
      await this.start(1 + pick(2));
    },
  };

  async start(workers = 1): Promise<void> {
    mkdirSync(this.#mountPoint, { recursive: true });
    const main = new URL("../../main.ts", import.meta.url).pathname;
    this.#connection = new FuseConnection(this.#disk);
    this.#server = await startServerProcess({
      home: this.#home,
      store: join(this.#mountPoint, "store"),
      program: this.#connection.command(this.#mountPoint, [process.execPath, main]),
      inherited: [this.#connection.fd],
      flags: ["--kvstore-compaction-interval=2s", `--workers=${workers}`],
    });
  }

  async #kill(): Promise<void> {
    const [server, connection] = [this.#server, this.#connection];
    this.#server = undefined;
    await server?.[Symbol.asyncDispose]();
    connection?.[Symbol.dispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kill();
    rmSync(this.#home, { recursive: true, force: true });
  }
}

t.test(
  "the history of clients of a server is linearizable through a slow and a full disk, pauses and kills",
  { skip: canUseFuse() ? false : "FUSE needs root and /dev/fuse" },
  async (t) => {
    await using server = new ServerOnFaultyDisk();
    await server.start();
    await checkThroughFaults(t, 8, FAULTS === 0 ? FEW_FAULTS : FAULTS, server);
  },
);

interface FaultyClusterParts {
  readonly network: NetworkNamespaces;
  readonly etcd: EtcdCluster;
  /** Of the members of etcd, and of the servers. */
  readonly memberHosts: readonly NetworkNamespace[];
  readonly serverHosts: readonly NetworkNamespace[];
  readonly start: (host: NetworkNamespace) => Promise<ServerProcess>;
}

/** Three processes `svc apiserver` on three members of etcd, each on a host of its own. */
class FaultyCluster implements FaultySystem {
  readonly #parts: FaultyClusterParts;
  readonly #servers: (ServerProcess | undefined)[] = [];
  #sent = 0;

  constructor(parts: FaultyClusterParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { serverHosts, start } = this.#parts;
    this.#servers.push(...(await Promise.all(serverHosts.map(start))));
  }

  readonly send: Send = (method, path, body, contentType) => {
    const running = this.#servers.filter((server) => server !== undefined);
    return running[this.#sent++ % running.length]!.send(method, path, body, { contentType });
  };

  readonly faults: FaultySystem["faults"] = {
    "server killed": async (pick) => {
      const { serverHosts, start } = this.#parts;
      const index = pick(MEMBERS);
      const server = this.#servers[index];
      server?.child.kill("SIGKILL");
      await sleep(pick(300));
      this.#servers[index] = undefined;
      await server?.[Symbol.asyncDispose]();
      this.#servers[index] = await start(serverHosts[index]!);
    },
    "server paused": async (pick) => await pause(this.#servers[pick(MEMBERS)]?.child.pid, duration(pick)),
    "server cut off from etcd": async (pick) => {
      const { serverHosts, memberHosts } = this.#parts;
      await this.#cut(serverHosts[pick(MEMBERS)]!, memberHosts, pick);
    },
    "etcd member killed": async (pick) => await this.#killMember(pick(MEMBERS), pick),
    "etcd leader killed": async (pick) => await this.#killMember(await this.#leader(pick), pick),
    "etcd member paused": async (pick) => await pause(this.#parts.etcd.servers[pick(MEMBERS)]!.pid, duration(pick)),
    "etcd member cut off from the others": async (pick) => await this.#isolateMember(pick(MEMBERS), pick),
    "etcd leader cut off from the others": async (pick) => await this.#isolateMember(await this.#leader(pick), pick),
  };

  async #leader(pick: Pick): Promise<number> {
    return (await this.#parts.etcd.findLeader()) ?? pick(MEMBERS);
  }

  async #killMember(index: number, pick: Pick): Promise<void> {
    const member = this.#parts.etcd.servers[index]!;
    await member.stop();
    await sleep(duration(pick));
    member.start();
    await member.ready();
  }

  /** API servers still reach the member. */
  async #isolateMember(index: number, pick: Pick): Promise<void> {
    const { memberHosts } = this.#parts;
    const member = memberHosts[index]!;
    await this.#cut(
      member,
      memberHosts.filter((each) => each !== member),
      pick,
    );
  }

  async #cut(host: NetworkNamespace, others: readonly NetworkNamespace[], pick: Pick): Promise<void> {
    const { network } = this.#parts;
    network.cut(host, others);
    await sleep(duration(pick));
    network.heal(host);
  }
}

const skip =
  findEtcdProblem() ?? findNamespaceProblem() ?? (FAULTS === 0 ? "make linearizability injects the faults" : false);

t.test("the history of clients of three servers is linearizable through faults", { skip }, async (t) => {
  using network = new NetworkNamespaces();
  const addHosts = (): NetworkNamespace[] => Array.from({ length: MEMBERS }, () => network.add());
  const [memberHosts, serverHosts] = [addHosts(), addHosts()];
  await using etcd = await startEtcd(MEMBERS, undefined, memberHosts);
  await using resources = new AsyncDisposableStack();
  const main = new URL("../../main.ts", import.meta.url).pathname;
  const start = async ({ address, enter }: NetworkNamespace): Promise<ServerProcess> => {
    const home = mkdtempSync(join(tmpdir(), "svc-histories-"));
    resources.defer(() => rmSync(home, { recursive: true, force: true }));
    const program = [...enter, process.execPath, main];
    return resources.use(await startServerProcess({ home, store: etcd.urls.join(","), program, host: address }));
  };
  const cluster = new FaultyCluster({ network, etcd, memberHosts, serverHosts, start });
  await cluster.start();
  await checkThroughFaults(t, 3, FAULTS, cluster);
});
