/** The cluster's DNS server of one node: it listens at the cluster's DNS addresses, which every node has. */
import type { SharedInformers } from "../client/informer/shared-informers.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { Clock, Timer } from "../std/time/clock.ts";
import { exchangeMessages } from "./forward/exchange.ts";
import type { ForwardRule } from "./forward/forward-rule.ts";
import { Forwarder } from "./forward/forwarder.ts";
import { formatServerAddress } from "./forward/server-address.ts";
import { UpstreamServers } from "./forward/upstream-servers.ts";
import { ClusterZone } from "./records/cluster-zone.ts";
import { RecordSource } from "./records/record-source.ts";
import { createDnsMetrics } from "./server/dns-metrics.ts";
import { addLocalAddress, type RunIp, removeLocalAddress, runIp } from "./server/local-addresses.ts";
import { createRequestHandler } from "./server/request-handler.ts";
import { TcpListener } from "./server/tcp-listener.ts";
import { UdpListener } from "./server/udp-listener.ts";

export interface DnsServerOptions {
  /** IP addresses, which the host gets while it runs pods. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** `cluster.local` */
  readonly domain: string;
  readonly rules: readonly ForwardRule[];
  /** The servers in the node's resolver file. */
  readonly readResolvers: () => Promise<readonly string[]>;
  /** Of Services and EndpointSlices. */
  readonly informers: SharedInformers;
  /** Where the records are for the next start. */
  readonly recordsFile: string;
  readonly metrics: MetricRegistry;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Replaces the command `ip`. */
  readonly runIp?: RunIp;
  /** Called when the server cannot listen at an address, once until it can. */
  readonly onProblem: (text: string) => void;
}

export interface DnsServer {
  /** Whether the server listens at all its addresses. */
  readonly isListening: boolean;
  /** The port, when 0 was configured; of the first address. */
  readonly port: number;
  /** The addresses stay as long as pods run, so that their queries fail at once and do not leave the host. */
  close(options: { readonly removeAddresses: boolean }): Promise<void>;
}

/** How long after a failure the server tries to listen again. */
const RETRY_MS = 5_000;
/** How often the server checks that the host still has its addresses. */
const CHECK_MS = 30_000;

/** Resolves after the first attempt to listen; when it fails, others follow. */
export async function startDnsServer(options: DnsServerOptions): Promise<DnsServer> {
  const { clock, random, log, informers, recordsFile: file } = options;
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const metrics = createDnsMetrics(options.metrics);
  const source = stack.use(await RecordSource.open({ informers, file, clock, log }));
  const servers = new UpstreamServers({ ...options, ownAddresses: options.addresses });
  const forwarder = new Forwarder({
    serversFor: (name) => servers.of(name),
    exchange: exchangeMessages,
    clock,
    random,
    log,
    signal: stop.signal,
    onCache: metrics.onCache,
    onExchange: (server, code, milliseconds) => metrics.onExchange(formatServerAddress(server), code, milliseconds),
  });
  metrics.showEntries(() => forwarder.cachedResponses);
  stack.defer(() => stop.abort(new Error("the DNS server stops")));
  const zone = new ClusterZone({ domain: options.domain.toLowerCase(), addresses: options.addresses });
  const onOverload = (): void => metrics.onDrop("overload");
  const onError = (error: unknown): void => log.error("The DNS server failed to handle a message", error);
  const handle = createRequestHandler({ zone, records: () => source.records, forwarder, metrics, clock, onError });
  const listeners = options.addresses.map((address) => {
    const listening = { address, port: options.port, handle, clock, onOverload, onError };
    return stack.use(new AddressListener(address, options, () => openListeners(listening)));
  });
  await Promise.all(listeners.map((each) => each.listen()));
  const owned = stack.move();
  let closing: Promise<void> | undefined;
  return {
    get isListening() {
      return listeners.every((each) => each.isListening);
    },
    get port() {
      return listeners[0]?.port ?? options.port;
    },
    close: ({ removeAddresses }) => {
      closing ??= owned.disposeAsync().then(async () => {
        if (!removeAddresses) return;
        for (const address of options.addresses) {
          await removeLocalAddress(address, options.runIp ?? runIp).catch((error: unknown) => {
            log.warn("Cannot remove the address of the DNS server", { address, error: toMessage(error) });
          });
        }
      });
      return closing;
    },
  };
}

type Listeners = AsyncDisposable & { readonly port: number };

async function openListeners(
  options: Parameters<typeof UdpListener.open>[0] & Parameters<typeof TcpListener.open>[0],
): Promise<Listeners> {
  const udp = await UdpListener.open(options);
  try {
    const tcp = await TcpListener.open({ ...options, port: udp.port });
    return {
      port: udp.port,
      async [Symbol.asyncDispose]() {
        await Promise.all([udp[Symbol.asyncDispose](), tcp[Symbol.asyncDispose]()]);
      },
    };
  } catch (error) {
    await udp[Symbol.asyncDispose]();
    throw error;
  }
}

/** Keeps one address on the host and listens there. */
class AddressListener implements AsyncDisposable {
  readonly #address: string;
  readonly #options: DnsServerOptions;
  readonly #open: () => Promise<Listeners>;
  #listeners: Listeners | undefined;
  #timer: Timer | undefined;
  #working: Promise<void> = Promise.resolve();
  #isClosed = false;
  #hasFailed = false;

  constructor(address: string, options: DnsServerOptions, open: () => Promise<Listeners>) {
    this.#address = address;
    this.#options = options;
    this.#open = open;
  }

  get isListening(): boolean {
    return this.#listeners !== undefined;
  }

  get port(): number | undefined {
    return this.#listeners?.port;
  }

  /** Adds the address if the host does not have it, and listens. Repeats this until disposal. Never rejects. */
  listen(): Promise<void> {
    this.#working = this.#tryToListen();
    return this.#working;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#working;
    await this.#listeners?.[Symbol.asyncDispose]();
  }

  async #tryToListen(): Promise<void> {
    const { log, clock, port, onProblem, runIp: run = runIp } = this.#options;
    const address = this.#address;
    try {
      await addLocalAddress(address, run);
      if (this.#listeners === undefined) {
        this.#listeners = await this.#open();
        log.info("Serving the cluster's DNS", { address, port: this.#listeners.port });
      }
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) onProblem(explainFailure(address, port, error));
      this.#hasFailed = true;
    }
    if (this.#isClosed) return;
    this.#timer = clock.timer(this.#hasFailed ? RETRY_MS : CHECK_MS, () => void this.listen());
  }
}

function explainFailure(address: string, port: number, error: unknown): string {
  const isInUse = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
  const reason = isInUse ? "another program listens there" : toMessage(error);
  return `Cannot serve the cluster's DNS at ${formatServerAddress({ address, port })}: ${reason}; trying again`;
}

function toMessage(error: unknown): string {
  return error instanceof Error ? error.message.trim() : String(error);
}
