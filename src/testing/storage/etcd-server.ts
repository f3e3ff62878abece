/** Real etcd servers on loopback; each removes its data when it is disposed. */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../std/free-port.ts";

const READY_MS_MAX = 30_000;

/** Why there is no etcd here; undefined when there is. */
export function findEtcdProblem(): string | undefined {
  try {
    execFileSync("etcd", ["--version"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "etcd is not on the PATH (Debian: etcd-server)";
  }
}

export interface EtcdTls {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Where a member runs. */
export interface EtcdHost {
  readonly address: string;
  /** The beginning of its command. */
  readonly enter: readonly string[];
}

interface EtcdMember {
  readonly name: string;
  readonly host: EtcdHost;
  readonly clientUrl: string;
  readonly peerUrl: string;
}

export class EtcdServer implements AsyncDisposable {
  readonly url: string;
  readonly #command: readonly string[];
  readonly #dir: string;
  #child: ChildProcess | undefined;

  constructor(member: EtcdMember, members: readonly EtcdMember[], tls: EtcdTls | undefined, isSynced: boolean) {
    this.url = member.clientUrl;
    this.#dir = mkdtempSync(join(tmpdir(), "svc-etcd-"));
    this.#command = [
      ...member.host.enter,
      "etcd",
      `--name=${member.name}`,
      `--data-dir=${this.#dir}`,
      `--listen-client-urls=${member.clientUrl}`,
      `--advertise-client-urls=${member.clientUrl}`,
      `--listen-peer-urls=${member.peerUrl}`,
      `--initial-advertise-peer-urls=${member.peerUrl}`,
      `--initial-cluster=${members.map(({ name, peerUrl }) => `${name}=${peerUrl}`).join(",")}`,
      ...(isSynced ? [] : ["--unsafe-no-fsync"]),
      "--heartbeat-interval=50",
      "--election-timeout=500",
      ...(tls === undefined
        ? []
        : [
            `--trusted-ca-file=${tls.caFile}`,
            `--cert-file=${tls.certFile}`,
            `--key-file=${tls.keyFile}`,
            "--client-cert-auth",
          ]),
    ];
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  start(): void {
    const [program = "", ...words] = this.#command;
    this.#child = spawn(program, words, {
      stdio: "ignore",
      env: { ...process.env, ETCD_UNSUPPORTED_ARCH: "arm64" },
    });
  }

  /** Resolves when the server accepts connections. */
  async ready(): Promise<void> {
    const { hostname, port } = new URL(this.url);
    for (const until = Date.now() + READY_MS_MAX; Date.now() < until; await sleep(20)) {
      const isOpen = await new Promise<boolean>((resolve) => {
        const socket = connect(Number(port), hostname, () => resolve(true));
        socket.on("error", () => resolve(false));
        socket.on("connect", () => socket.destroy());
      });
      if (isOpen) return;
    }
    throw new Error(`etcd at ${this.url} does not accept connections`);
  }

  async stop(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

const LOOPBACK: EtcdHost = { address: "127.0.0.1", enter: [] };

/** The servers of a cluster of `count` members, ready. They sync no files unless `isSynced`. */
export async function startEtcd(
  count = 1,
  tls?: EtcdTls,
  hosts: readonly EtcdHost[] = [],
  isSynced = false,
): Promise<EtcdCluster> {
  const members: EtcdMember[] = [];
  for (let i = 0; i < count; i++) {
    const host = hosts[i] ?? LOOPBACK;
    const clientUrl = `${tls === undefined ? "http" : "https"}://${host.address}:${await freePort()}`;
    members.push({ name: `m${i}`, host, clientUrl, peerUrl: `http://${host.address}:${await freePort()}` });
  }
  const cluster = new EtcdCluster(members.map((member) => new EtcdServer(member, members, tls, isSynced)));
  for (const server of cluster.servers) server.start();
  await Promise.all(cluster.servers.map((server) => server.ready()));
  return cluster;
}

export class EtcdCluster implements AsyncDisposable {
  readonly servers: readonly EtcdServer[];

  constructor(servers: readonly EtcdServer[]) {
    this.servers = servers;
  }

  get urls(): readonly string[] {
    return this.servers.map(({ url }) => url);
  }

  /** The index of the leader; undefined while none is known. */
  async findLeader(): Promise<number | undefined> {
    const flags = [`--endpoints=${this.urls.join()}`, "--write-out=json", "--command-timeout=2s"];
    const env = { ...process.env, ETCDCTL_API: "3" };
    const output = await promisify(execFile)("etcdctl", ["endpoint", "status", ...flags], { env }).then(
      ({ stdout }) => stdout,
      // A member that does not answer; the others are listed.
      ({ stdout }: { readonly stdout: string }) => stdout,
    );
    const members = output.startsWith("[") ? (JSON.parse(output) as readonly EndpointStatus[]) : [];
    const leader = members.find(({ Status }) => Status.leader !== 0 && Status.leader === Status.header.member_id);
    return leader === undefined ? undefined : this.urls.indexOf(leader.Endpoint);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server[Symbol.asyncDispose]()));
  }
}

/** A line of `etcdctl endpoint status`. */
interface EndpointStatus {
  readonly Endpoint: string;
  readonly Status: { readonly leader: number; readonly header: { readonly member_id: number } };
}
