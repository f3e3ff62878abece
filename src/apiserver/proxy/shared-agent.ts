/**
 * Connections to agents. When one agent has many streams into containers, further ones share a connection if the agent
 * supports it, since each end of TLS takes 55 KiB. The first ones do not: HTTP/2 takes 1.6 times the CPU time.
 */
import type { ClientHttp2Session } from "node:http2";
import { Agent, type AgentOptions, type RequestOptions } from "node:https";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { openSharedClient, SHARED_PATH, SHARED_PROTOCOL } from "../../http/tunnel/shared-connection.ts";
import { dialThroughTunnel, keepTunnelAlive } from "../../http/tunnel/tunnel-session.ts";
import { connectUpgrade } from "../../http/upgrade/connect-upgrade.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";

/** Streams to one agent that have connections of their own. */
export const DIRECT_STREAMS_MAX = 16;
/** An agent that has refused a shared connection, as kubelet does, gets no other request for it before. */
const RETRY_MS = 600_000;
/** Time for the agent to switch to a shared connection. */
const OPEN_MS_MAX = 10_000;
/** A shared connection without streams closes after this. */
const IDLE_MS = 60_000;

type OnConnection = (error: Error | null, socket: Duplex) => void;

export class SharedHttpsAgent extends Agent {
  readonly #clock: Clock;
  readonly #hosts = new Map<string, AgentHost>();

  constructor(options: AgentOptions, clock: Clock) {
    super(options);
    this.#clock = clock;
  }

  /** Called by node:http for each new connection. */
  override createConnection(options: RequestOptions, onConnection: OnConnection): Duplex | null | undefined {
    const protocol = upgradeProtocol(options);
    if (protocol === undefined || protocol === SHARED_PROTOCOL) return super.createConnection(options, onConnection);
    const host = this.#findHost(String(options.host), Number(options.port));
    const connect = () => super.createConnection(options, onConnection);
    if (host.direct < DIRECT_STREAMS_MAX) return host.track(connect());
    host.dial().then(
      (stream) => onConnection(null, stream ?? (host.track(connect()) as Duplex)),
      (error: Error) => onConnection(error, undefined as never),
    );
    return undefined;
  }

  /** node:http keeps sockets of TCP and TLS only for further requests; false: it destroys the stream. */
  override keepSocketAlive(socket: Duplex): boolean {
    if (!(socket instanceof Socket)) return false;
    const isKept: unknown = super.keepSocketAlive(socket);
    return isKept === true;
  }

  /** For an agent that opens no more connections: shared ones close with their last stream. */
  retire(): void {
    for (const host of this.#hosts.values()) host.retire();
  }

  override destroy(): void {
    super.destroy();
    for (const host of this.#hosts.values()) host.close("the API server stopped");
  }

  /** Agents with open streams, and those that have refused a shared connection in the last ten minutes. */
  get agentCount(): number {
    return this.#hosts.size;
  }

  #findHost(name: string, port: number): AgentHost {
    const key = `${name} ${port}`;
    const existing = this.#hosts.get(key);
    if (existing !== undefined) return existing;
    const host = new AgentHost({ host: name, port, agent: this, clock: this.#clock }, () => this.#hosts.delete(key));
    this.#hosts.set(key, host);
    return host;
  }
}

interface HostOptions {
  readonly host: string;
  readonly port: number;
  readonly agent: Agent;
  readonly clock: Clock;
}

/** The streams to one agent. */
class AgentHost {
  /** Streams with a connection of their own. */
  direct = 0;
  /** Streams of the shared connection. */
  #shared = 0;
  readonly #options: HostOptions;
  readonly #onUnused: () => void;
  #session: Promise<ClientHttp2Session | undefined> | undefined;
  #open: ClientHttp2Session | undefined;
  #idle: Timer | undefined;
  /** Runs while the agent's refusal counts. */
  #refusal: Timer | undefined;
  #isRetired = false;

  /** `onUnused` is called when nothing is open. */
  constructor(options: HostOptions, onUnused: () => void) {
    this.#options = options;
    this.#onUnused = onUnused;
  }

  track<T extends Duplex | null | undefined>(socket: T): T {
    if (socket === null || socket === undefined) return socket;
    this.direct++;
    socket.once("close", () => {
      this.direct--;
      this.#removeUnused();
    });
    return socket;
  }

  /** Opens a stream of the shared connection. Undefined: the agent has none, or it broke. */
  async dial(): Promise<Duplex | undefined> {
    const { clock } = this.#options;
    if (this.#refusal !== undefined) return undefined;
    if (this.#open?.destroyed === true || this.#open?.closed === true) this.#forget(this.#open);
    this.#session ??= this.#openSession();
    const session = await this.#session;
    if (session === undefined || session.destroyed || session.closed) return undefined;
    this.#shared++;
    this.#idle?.cancel();
    const leave = (): void => {
      this.#shared--;
      if (this.#shared > 0) return;
      this.#idle?.cancel();
      this.#idle = clock.timer(IDLE_MS, () => this.#open?.close());
    };
    try {
      const stream = await dialThroughTunnel(session, clock);
      stream.once("close", leave);
      return stream;
    } catch {
      leave();
      return undefined;
    }
  }

  /** The shared connection closes with its last stream. */
  retire(): void {
    this.#cancelTimers();
    this.#open?.close();
  }

  close(reason: string): void {
    this.#cancelTimers();
    this.#open?.destroy(new Error(reason));
  }

  async #openSession(): Promise<ClientHttp2Session | undefined> {
    const { host, port, agent, clock } = this.#options;
    const opening = new AbortController();
    const timer = clock.timer(OPEN_MS_MAX, () => opening.abort(new Error("no answer")));
    try {
      const { signal } = opening;
      const headers = { upgrade: SHARED_PROTOCOL };
      const to = { method: "GET", secure: true, host, port, path: SHARED_PATH, headers, agent, signal };
      const result = await connectUpgrade(to);
      if (!("socket" in result)) {
        this.#session = undefined;
        if (!this.#isRetired) this.#refusal = clock.timer(RETRY_MS, () => this.#endRefusal());
        // So that the connection can be used again; the signal ends a body that does not end.
        for await (const _ of result.body);
        return undefined;
      }
      const session = openSharedClient(result.socket);
      this.#open = session;
      void keepTunnelAlive(session, clock).then(() => {
        this.#forget(session);
        this.#removeUnused();
      });
      return session;
    } catch {
      // The stream's own connection reports what is wrong with the agent.
      this.#session = undefined;
      return undefined;
    } finally {
      timer.cancel();
    }
  }

  /** The next stream opens another shared connection. */
  #forget(session: ClientHttp2Session): void {
    if (this.#open !== session) return;
    this.#idle?.cancel();
    this.#open = undefined;
    this.#session = undefined;
  }

  #endRefusal(): void {
    this.#refusal = undefined;
    this.#removeUnused();
  }

  /** An agent that has refused stays until its refusal ends: the map is bounded by the agents of ten minutes. */
  #removeUnused(): void {
    if (this.direct > 0 || this.#session !== undefined || this.#refusal !== undefined) return;
    this.#onUnused();
  }

  #cancelTimers(): void {
    this.#isRetired = true;
    this.#idle?.cancel();
    this.#refusal?.cancel();
  }
}

function upgradeProtocol({ headers }: RequestOptions): string | undefined {
  if (headers === undefined || Array.isArray(headers)) return undefined;
  const { upgrade } = headers as Readonly<Record<string, unknown>>;
  return typeof upgrade === "string" ? upgrade : undefined;
}
