/**
 * `--tunnel`: keeps one connection to the API server open, by which the API server connects to the agent's server. For
 * nodes whose address the API server cannot reach.
 */
import type { ServerHttp2Session } from "node:http2";
import type { Duplex } from "node:stream";
import { TUNNEL_CONDITION } from "../../api/core/node/tunnel.ts";
import { keepTunnelAlive, openTunnelServer, type TunnelTarget } from "../../http/tunnel/tunnel-session.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ConditionState } from "../node/status/conditions.ts";

export interface AgentTunnelOptions {
  /** Opens a connection that has switched protocols. */
  readonly open: (signal: AbortSignal) => Promise<Duplex>;
  /** The agent's server. */
  readonly target: TunnelTarget;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  /** The condition has changed. */
  readonly onChange: () => void;
}

const RETRY = { initialMs: 1_000, maxMs: 30_000, jitter: 0.2 };
/** A tunnel that was open for this long resets the back-off. */
const STABLE_MS = 10_000;

export class AgentTunnel {
  readonly #options: AgentTunnelOptions;
  readonly #metrics: ReturnType<typeof registerMetrics>;
  #isOpen = false;
  #reason = "the agent has just started";

  constructor(options: AgentTunnelOptions) {
    this.#options = options;
    this.#metrics = registerMetrics(options.metrics);
  }

  get condition(): ConditionState {
    const type = TUNNEL_CONDITION;
    return this.#isOpen
      ? { type, status: "True", reason: "TunnelOpen", message: "the tunnel to the API server is open" }
      : { type, status: "False", reason: "TunnelClosed", message: `the tunnel is closed: ${this.#reason}` };
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options;
    const backoff = new Backoff(RETRY, random);
    while (!signal.aborted) {
      const start = clock.monotonic();
      const reason = await this.#runOnce(signal);
      if (signal.aborted) return;
      if (clock.monotonic() - start >= STABLE_MS) backoff.reset();
      const delayMs = Math.round(backoff.next());
      log.warn("Tunnel is closed; opening it again", { reason, delayMs });
      await clock.sleep(delayMs, signal).catch(() => undefined);
    }
  }

  /** Resolves with the reason when the tunnel has closed or cannot be opened. */
  async #runOnce(signal: AbortSignal): Promise<string> {
    const { open, target, clock, log } = this.#options;
    let session: ServerHttp2Session;
    try {
      const socket = await open(signal);
      session = openTunnelServer(socket, { target, countStreams: (change) => this.#metrics.streams.inc(change) });
    } catch (error) {
      this.#change(false, error instanceof Error ? error.message : String(error));
      return this.#reason;
    }
    const close = (): void => void session.destroy();
    signal.addEventListener("abort", close, { once: true });
    if (signal.aborted) close();
    this.#metrics.opened.inc();
    log.info("Opened tunnel to the API server");
    this.#change(true, "");
    const reason = await keepTunnelAlive(session, clock);
    signal.removeEventListener("abort", close);
    this.#change(false, reason);
    return reason;
  }

  #change(isOpen: boolean, reason: string): void {
    const isChanged = isOpen !== this.#isOpen || reason !== this.#reason;
    this.#isOpen = isOpen;
    this.#reason = reason;
    this.#metrics.open.set(isOpen ? 1 : 0);
    if (isChanged) this.#options.onChange();
  }
}

function registerMetrics(metrics: MetricRegistry) {
  const open = { name: "kubelet_tunnel_open", help: "1 while the tunnel to the API server is open, else 0." };
  const streams = { name: "kubelet_tunnel_streams", help: "Connections of the API server through the tunnel." };
  const opened = { name: "kubelet_tunnel_opened_total", help: "Tunnels opened, the first one and reconnects." };
  return {
    open: metrics.gauge(open).with(),
    streams: metrics.gauge(streams).with(),
    opened: metrics.counter(opened).with(),
  };
}
