/** What the providers of both versions of KMS have in common. */

import { GrpcError, UnixGrpcClient } from "../../../client/grpc/unix-grpc-client.ts";
import type { GrpcMethod } from "../../../schema/protobuf/grpc-method.ts";
import type { Infer, ObjectSchema } from "../../../schema/schema.ts";
import { parseDuration } from "../../../schema/value/time.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { KmsConfiguration } from "../configuration-schema.ts";
import type { EncryptionMetrics } from "../encryption-metrics.ts";
import type { PrefixedTransformer } from "../transformer.ts";

export interface KmsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: EncryptionMetrics | undefined;
}

/** A plugin in use. */
export interface KmsProvider extends Disposable {
  readonly prefixed: PrefixedTransformer;
  /** The longest duration of its health check, in milliseconds. */
  readonly checkMs: number;
  /** Rejects while the plugin is not healthy. Results are cached for seconds. */
  check(): Promise<void>;
}

const TIMEOUT_MS = 3_000;
/** How long the result of a check is used again. */
export const CHECK_TTL_MS = { healthy: 20_000, unhealthy: 3_000 };

export function timeoutMsOf({ timeout }: KmsConfiguration): number {
  return timeout ? Number(parseDuration(timeout) ?? 0n) / 1e6 : TIMEOUT_MS;
}

/** The socket of `unix:///run/plugin.sock`; a path that begins with `@` is in the abstract namespace. */
function socketOf(endpoint: string): string {
  const path = /^unix:(?:\/\/[^/]*)?(\/.*)$/i.exec(endpoint)?.[1] ?? "";
  return path.startsWith("/@") ? path.slice(1) : path;
}

export class KmsPlugin implements Disposable {
  readonly #name: string;
  readonly #deps: KmsDeps;
  readonly #client: UnixGrpcClient;

  constructor(config: KmsConfiguration, deps: KmsDeps) {
    this.#name = config.name ?? "";
    this.#deps = deps;
    const socket = socketOf(config.endpoint ?? "");
    this.#client = new UnixGrpcClient({ socket, timeoutMs: timeoutMsOf(config), clock: deps.clock });
    deps.log.v(4)?.info("Configure KMS provider", { endpoint: config.endpoint });
  }

  [Symbol.dispose](): void {
    this.#client[Symbol.dispose]();
  }

  /** Rejects with a `GrpcError`. */
  async call<Q extends ObjectSchema, A extends ObjectSchema>(
    method: GrpcMethod<Q, A>,
    request: Infer<Q>,
  ): Promise<Infer<A>> {
    const { clock, metrics } = this.#deps;
    const start = clock.monotonic();
    let failure: unknown;
    try {
      return await this.#client.call(method, request);
    } catch (error) {
      failure = error instanceof GrpcError ? error : new GrpcError("Internal", String(error), { cause: error });
      throw failure;
    } finally {
      // Kubernetes has these metrics of v2 only.
      if (method.path.startsWith("/v2."))
        metrics?.recordCall(this.#name, method.path, clock.monotonic() - start, failure);
    }
  }
}

/** Calls `check` one at a time and caches its result. */
export class CachedCheck {
  readonly #clock: Clock;
  readonly #check: () => Promise<void>;
  #running: Promise<void> | undefined;
  #last: { readonly error: Error | undefined; readonly until: number } | undefined;

  constructor(clock: Clock, check: () => Promise<void>) {
    this.#clock = clock;
    this.#check = check;
  }

  async run(): Promise<void> {
    if (this.#last !== undefined && this.#clock.monotonic() < this.#last.until) {
      if (this.#last.error !== undefined) throw this.#last.error;
      return;
    }
    this.#running ??= this.#checkNow().finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  async #checkNow(): Promise<void> {
    let error: Error | undefined;
    try {
      await this.#check();
    } catch (cause) {
      error = cause instanceof Error ? cause : new Error(String(cause));
      throw error;
    } finally {
      const ttl = error === undefined ? CHECK_TTL_MS.healthy : CHECK_TTL_MS.unhealthy;
      this.#last = { error, until: this.#clock.monotonic() + ttl };
    }
  }
}
