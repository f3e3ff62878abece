/** Posts audit events as an EventList to the server of a kubeconfig file. Every error is retried, as in Kubernetes. */
import { existsSync } from "node:fs";
import { kubeconfigTransport } from "../client/kubeconfig/kubeconfig-transport.ts";
import { loadWebhookKubeconfig } from "../client/kubeconfig/webhook-kubeconfig.ts";
import { readAll, readError } from "../client/response.ts";
import type { Connector } from "../client/transport/connector.ts";
import { makeRequest } from "../http/request.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import { Backoff } from "../std/time/backoff.ts";
import type { Clock } from "../std/time/clock.ts";
import type { AuditSink } from "./backend.ts";
import { type AuditEvent, encodeEvent, encodeEventList } from "./event.ts";

export interface WebhookSinkOptions {
  readonly configFile: string;
  /** The apiVersion of events. */
  readonly version: string;
  readonly initialBackoffMs: number;
}

const ATTEMPTS_MAX = 5;
const BACKOFF_FACTOR = 1.5;
const BACKOFF_MS_MAX = 120_000;
const JITTER = 0.2;
/** The deadline of one request. */
const TIMEOUT_MS = 30_000;
const RESPONSE_BYTES_MAX = 2 ** 20;

async function loadKubeconfig(path: string) {
  if (!existsSync(path)) throw new Error(`stat ${path}: no such file or directory`);
  return await loadWebhookKubeconfig(path);
}

interface WebhookSinkDeps {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** How to connect; undefined: directly. */
  readonly connector?: Connector | undefined;
}

/** Rejects with one sentence for an invalid kubeconfig file. */
export async function openWebhookSink(
  { configFile, version, initialBackoffMs }: WebhookSinkOptions,
  { clock, random, connector }: WebhookSinkDeps,
): Promise<AuditSink> {
  const file = await loadKubeconfig(configFile).catch((cause: unknown) => {
    throw new Error(`initializing audit webhook: ${(cause as Error).message}`, { cause });
  });
  const { pathname: path, search } = new URL(file.server);
  const transport = kubeconfigTransport(file, { clock, connector, userAgent: "svc-apiserver" });
  const post = async (body: string, stopping: AbortSignal): Promise<void> => {
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(TIMEOUT_MS)]);
    const headers = { "content-type": "application/json", accept: "application/json" };
    const response = await transport(
      makeRequest({ method: "POST", path, query: search.slice(1), headers, body, signal }),
    );
    if (response.status < 200 || response.status > 299) throw await readError(response);
    await readAll(response.body, RESPONSE_BYTES_MAX);
  };
  return {
    name: "webhook",
    sizeOf: (event) => Buffer.byteLength(encodeEvent(event, version)) + 1,
    async send(events: readonly AuditEvent[], signal) {
      const body = encodeEventList(events, version);
      const delays = { initialMs: initialBackoffMs, maxMs: BACKOFF_MS_MAX, factor: BACKOFF_FACTOR, jitter: JITTER };
      const backoff = new Backoff(delays, random);
      for (let attempt = 1; ; attempt++) {
        try {
          await post(body, signal);
          return;
        } catch (error) {
          if (attempt >= ATTEMPTS_MAX || signal.aborted) throw error;
          await clock.sleep(backoff.next(), signal);
        }
      }
    },
    [Symbol.asyncDispose]: () => Promise.resolve(transport[Symbol.asyncDispose]()),
  };
}
