/** Handlers of probes and lifecycle hooks: exec and TCP. HTTP and gRPC are in files of their own. */
import { getServers } from "node:dns";
import { connect, isIP } from "node:net";
import type { TCPSocketAction } from "../../api/core/container/probe.ts";
import type { Container } from "../../api/core/container/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type Runtime, RuntimeError } from "../runtime/runtime.ts";

export interface ProbeResult {
  readonly outcome: "success" | "warning" | "failure" | "unknown";
  /** At most `OUTPUT_BYTES_MAX`. */
  readonly output: string;
}

export const OUTPUT_BYTES_MAX = 10 * 1024;

export interface ExecOptions {
  readonly runtime: Runtime;
  readonly containerId: string;
  readonly command: readonly string[];
  readonly timeoutSeconds: number;
  /** Whether a command that is not done in time has failed; the result is unknown otherwise. */
  readonly failsAtTimeout?: boolean | undefined;
  readonly signal: AbortSignal;
}

export async function runExec(options: ExecOptions): Promise<ProbeResult> {
  const { runtime, containerId, command, timeoutSeconds, failsAtTimeout = true, signal } = options;
  try {
    const response = await runtime.execSync(
      { containerId, cmd: command, timeout: BigInt(Math.ceil(timeoutSeconds)) },
      signal,
    );
    const output = Buffer.concat([response.stdout ?? Buffer.alloc(0), response.stderr ?? Buffer.alloc(0)]);
    return {
      outcome: (response.exitCode ?? 0) === 0 ? "success" : "failure",
      output: output.subarray(0, OUTPUT_BYTES_MAX).toString("utf8"),
    };
  } catch (error) {
    signal.throwIfAborted();
    if (failsAtTimeout && error instanceof RuntimeError && error.code === "DEADLINE_EXCEEDED") {
      return {
        outcome: "failure",
        output: `command timed out: "${command.join(" ")}" timed out after ${timeoutSeconds}s`,
      };
    }
    return { outcome: "unknown", output: error instanceof Error ? error.message : String(error) };
  }
}

/** Resolves a number or the name of a container port. Throws Go's error for other texts. */
export function resolvePort(port: number | string, container: Container): number {
  if (typeof port === "number") return port;
  const namedPort = (container.ports ?? []).find((each) => each.name === port);
  if (namedPort !== undefined) return namedPort.containerPort;
  if (!/^[+-]?\d+$/.test(port)) throw new Error(`strconv.Atoi: parsing "${port}": invalid syntax`);
  const parsed = Number.parseInt(port, 10);
  if (parsed < 1 || parsed > 65_535) throw new Error(`invalid port number: ${parsed}`);
  return parsed;
}

export interface NetworkProbeOptions {
  readonly container: Container;
  readonly podIp: string;
  /** `Infinity`: no limit. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly userAgent: string;
  /** Replace the headers of probes, which send `Connection: close`; for hooks, which do not. */
  readonly headers?: Readonly<Record<string, string>>;
}

export function connectTcp(action: TCPSocketAction, options: NetworkProbeOptions): Promise<ProbeResult> {
  let port: number;
  try {
    port = resolvePort(action.port, options.container);
  } catch (error) {
    return Promise.resolve({ outcome: "unknown", output: error instanceof Error ? error.message : String(error) });
  }
  const host = resolveHost(action, options);
  const { promise, resolve } = Promise.withResolvers<ProbeResult>();
  const socket = connect({ host, port });
  const end = (result: ProbeResult): void => {
    timer.cancel();
    socket.destroy();
    resolve(result);
  };
  const timer = options.clock.timer(options.timeoutMs, () =>
    end({ outcome: "failure", output: `dial tcp ${joinHostPort(host, port)}: i/o timeout` }),
  );
  options.signal.addEventListener("abort", () => end({ outcome: "unknown", output: "probe cancelled" }), {
    once: true,
  });
  socket.on("connect", () => end({ outcome: "success", output: "" }));
  socket.on("error", (error) => end({ outcome: "failure", output: describeDialError(error, host, port) }));
  return promise;
}

const dialReasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused",
  EHOSTUNREACH: "connect: no route to host",
  ENETUNREACH: "connect: network is unreachable",
  ETIMEDOUT: "i/o timeout",
};

/** In Go's text, which people search for. */
export function describeDialError(error: Error, host: string, port: number): string {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  const reason = dialReasons[code];
  if (reason !== undefined) return `dial tcp ${joinHostPort(host, port)}: ${reason}`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    const [server] = getServers();
    const where = server === undefined ? "" : ` on ${isIP(server) === 0 ? server : joinHostPort(server, 53)}`;
    return `dial tcp: lookup ${host}${where}: ${code === "ENOTFOUND" ? "no such host" : "server misbehaving"}`;
  }
  return code === "ECONNRESET" ? "EOF" : error.message;
}

/** The action's host, else the pod's IP. */
export function resolveHost(action: { readonly host?: string | undefined }, { podIp }: NetworkProbeOptions): string {
  return action.host === undefined || action.host === "" ? podIp : action.host;
}

export function joinHostPort(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
