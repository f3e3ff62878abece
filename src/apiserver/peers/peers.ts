/**
 * Forwards requests for resources that this server does not serve to an API server of the cluster that does: the gate
 * UnknownVersionInteroperabilityProxy.
 */
import { hostname } from "node:os";
import type { Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import { withTimeout } from "../../std/time/with-timeout.ts";
import { ExtensionConnections } from "../aggregation/connections.ts";
import { ExtensionProxy } from "../aggregation/extension-proxy.ts";
import type { ExtensionApi } from "../aggregation/registered-api.ts";
import type { HostPort } from "../aggregation/service-resolver.ts";
import type { PeersConfig } from "../config/config.ts";
import { readFlagFile } from "../config/flag-file.ts";
import { serverIdentity } from "../control-plane/identity-lease.ts";
import type { RequestFilter } from "../request/request-context.ts";
import { PeerLeases } from "./peer-leases.ts";
import { ServedResources } from "./served-by.ts";
import { publishStorageVersions } from "./storage-versions.ts";

export interface PeersDeps {
  readonly registries: Registries;
  /** The kinds that this server serves. */
  readonly kinds: readonly Kind[];
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  readonly clientCertificate: () => KeyPair | undefined;
  readonly stopping: AbortSignal;
  /** The gate RemoteRequestHeaderUID. */
  readonly sendsUid: boolean;
  /** The name of this host, which identifies the server; that of the system when absent. */
  readonly host?: string | undefined;
  /** Whether this thread publishes what all threads of the server store and serve, and the server's address. */
  readonly isMain: boolean;
}

/** Set on a forwarded request, which the other server must not forward again. */
const FORWARDED = "x-kubernetes-peer-proxied";
const PUBLISH_INTERVAL_MS = 600_000;
const LEASE_INTERVAL_MS = 10_000;
const WITHDRAW_TIMEOUT_MS = 1000;
const NO_ADDRESS = "Error getting ip and port info of the remote server while proxying";

export class Peers implements Disposable {
  readonly #config: PeersConfig;
  readonly #ca: string;
  readonly #deps: PeersDeps;
  readonly #serverId: string;
  readonly #served = new ServedResources();
  readonly #leases: PeerLeases;
  readonly #connections: ExtensionConnections;
  #isSynced = false;

  private constructor(config: PeersConfig, ca: string, deps: PeersDeps) {
    this.#config = config;
    this.#ca = ca;
    this.#deps = deps;
    this.#serverId = serverIdentity(deps.host ?? hostname());
    this.#leases = new PeerLeases(deps.registries);
    const { clientCertificate } = deps;
    this.#connections = new ExtensionConnections({ clientCertificate, connector: () => undefined });
  }

  /** Rejects with one sentence for an operator when `--peer-ca-file` cannot be read. */
  static async open(config: PeersConfig, deps: PeersDeps): Promise<Peers> {
    const { caFile } = config;
    return new Peers(config, caFile === undefined ? "" : await readFlagFile("--peer-ca-file", caFile), deps);
  }

  /** Resolves when this server's versions are published and those of the others are known. */
  async start(address: () => string, stopped: Promise<unknown>[]): Promise<void> {
    const { registries, log, stopping, isMain } = this.#deps;
    if (isMain) await this.#announce(address, stopped);
    if (!this.#config.forwards) return;
    await new Promise<void>((resolve) => {
      stopped.push(this.#served.follow(registries, log, stopping, resolve));
      stopping.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#isSynced = true;
  }

  readonly filter: RequestFilter = (next) => {
    const rerouted = this.#deps.metrics.counter({
      name: "apiserver_rerouted_request_total",
      help:
        "Total number of requests that were proxied to a peer kube apiserver because the local apiserver was not " +
        "capable of serving it",
      stability: "ALPHA",
      labels: ["code"],
    });
    const { registries, log, metrics: _, ...deps } = this.#deps;
    const { clock } = registries.deps;
    return async (context) => {
      const { info, request } = context;
      const isLocal = !this.#isSynced || !info.isResourceRequest || request.headers[FORWARDED] === "true";
      const servers = isLocal ? [] : this.#served.serversOf(info);
      if (servers.length === 0 || servers.includes(this.#serverId)) return await next(context);
      const address = await this.#choose(servers);
      log.v(3)?.info("Forwarding a request to a peer", { path: request.path, ...address });
      const proxy = new ExtensionProxy({
        ...deps,
        clock,
        log,
        connections: this.#connections,
        resolver: { resolve: async () => address },
        metrics: { countConnectionFailure: () => {} },
        onTermination: () => {},
        rejectsRedirects: false,
        headers: { [FORWARDED]: "true" },
      });
      const response = await proxy.forward(this.#peer(address), context);
      rerouted.with(String(response.status)).inc();
      return response;
    };
  };

  [Symbol.dispose](): void {
    this.#connections[Symbol.dispose]();
  }

  /** One of the servers that run. */
  async #choose(servers: readonly string[]): Promise<HostPort> {
    const found = await Promise.all(servers.map((id) => this.#leases.find(id)));
    const running = found.filter((address) => address !== undefined);
    const { random } = this.#deps.registries.deps;
    const chosen = running[Math.floor(random.fraction() * running.length)];
    if (chosen === undefined) throw new StatusError(503, "ServiceUnavailable", NO_ADDRESS);
    return chosen;
  }

  /** The certificates of API servers are valid for the service of the API. */
  #peer({ host, port }: HostPort): ExtensionApi {
    return {
      name: `${host}:${port}`,
      group: "",
      version: "",
      groupPriority: 0,
      versionPriority: 0,
      service: { namespace: "default", name: "kubernetes", port },
      isAvailable: true,
      insecureSkipTlsVerify: false,
      caBundle: this.#ca,
    };
  }

  async #announce(address: () => string, stopped: Promise<unknown>[]): Promise<void> {
    if (this.#config.forwards) {
      await this.#renewLease(address);
      stopped.push(this.#repeat(LEASE_INTERVAL_MS, "the address for peers", () => this.#renewLease(address)));
      stopped.push(this.#withdrawAtStop());
    }
    await this.#publish();
    stopped.push(this.#repeat(PUBLISH_INTERVAL_MS, "storage versions", () => this.#publish()));
  }

  async #publish(): Promise<void> {
    const { registries, kinds, stopping } = this.#deps;
    await publishStorageVersions(registries, kinds, this.#serverId, stopping);
  }

  async #renewLease(address: () => string): Promise<void> {
    const { hostname: host, port } = new URL(`https://${address()}`);
    const { advertiseIp = host.replace(/^\[|\]$/g, ""), advertisePort = Number(port || "443") } = this.#config;
    await this.#leases.renew(this.#serverId, { host: advertiseIp, port: advertisePort });
  }

  /** Never rejects. */
  async #repeat(everyMs: number, name: string, work: () => Promise<void>): Promise<void> {
    const { registries, log, stopping } = this.#deps;
    for (;;) {
      await registries.deps.clock.sleep(everyMs, stopping).catch(() => {});
      if (stopping.aborted) return;
      await work().catch((error: unknown) => {
        if (!stopping.aborted) log.error(`Cannot write ${name}; retrying`, error);
      });
    }
  }

  /** Never rejects. */
  async #withdrawAtStop(): Promise<void> {
    const { registries, log, stopping } = this.#deps;
    await new Promise<void>((resolve) => {
      if (stopping.aborted) resolve();
      stopping.addEventListener("abort", () => resolve(), { once: true });
    });
    const { clock } = registries.deps;
    const removing = this.#leases.remove(this.#serverId);
    await withTimeout(clock, WITHDRAW_TIMEOUT_MS, removing, "the store does not answer").catch((error: unknown) =>
      log.warn("Cannot remove the address of this server for its peers", { error: String(error) }),
    );
  }
}
