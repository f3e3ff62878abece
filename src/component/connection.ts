/** The connection of a control plane program to the API server. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Transport } from "../client/client.ts";
import { kubeconfigTransport } from "../client/kubeconfig/kubeconfig-transport.ts";
import { loadWebhookKubeconfig, type WebhookKubeconfig } from "../client/kubeconfig/webhook-kubeconfig.ts";
import { createRateLimitedTransport } from "../client/transport/rate-limited-transport.ts";
import { createClientMetrics, createRateLimitObserver } from "../http/client-metrics.ts";
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { Clock } from "../std/time/clock.ts";

export interface ConnectionOptions {
  /** A kubeconfig file; empty for a program in a pod, which uses the pod's service account. */
  readonly kubeconfig: string;
  /** Replaces the server of the file; empty for that of the file. */
  readonly server: string;
  readonly userAgent: string;
  /** Requests a second, on average and at once; no limit where `qps` is not positive. */
  readonly qps: number;
  readonly burst: number;
}

export interface Connection extends AsyncDisposable {
  /** With the credentials of the program, and a limit of requests. */
  readonly transport: Transport;
  /** The same with a limit of its own. */
  readonly createTransport: () => Transport;
  /** With a limit of its own and no credentials: a client certificate would go before the tokens of requests. */
  readonly createAnonymousTransport: () => Transport;
  /** The same without the limit and without credentials but those of the connection, for other users of one server. */
  readonly unlimited: Transport;
  readonly server: string;
  /** PEM of the CA that verifies the server; undefined for the system's. */
  readonly ca: string | undefined;
}

const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Rejects with a message for the operator. */
export async function openConnection(
  { kubeconfig, server, userAgent, qps, burst }: ConnectionOptions,
  { clock, metrics, env }: { readonly clock: Clock; readonly metrics: MetricRegistry; readonly env: NodeJS.ProcessEnv },
  signal: AbortSignal,
): Promise<Connection> {
  const loaded = kubeconfig === "" ? await readPodAccess(env) : await loadWebhookKubeconfig(kubeconfig);
  const access = server === "" ? loaded : { ...loaded, server };
  const url = new URL(access.server);
  const prefix = url.pathname.replace(/\/$/, "");
  const measure = createClientMetrics(metrics, () => url.host, clock);
  const onDelay = createRateLimitObserver(metrics, () => url.host);
  const opened = new AsyncDisposableStack();
  const open = (as: WebhookKubeconfig): Transport => {
    const measured = measure(opened.use(kubeconfigTransport(as, { clock, userAgent })));
    return prefix === "" ? measured : (request) => measured({ ...request, path: `${prefix}${request.path}` });
  };
  const limit = (transport: Transport): Transport =>
    qps > 0 ? createRateLimitedTransport({ transport, clock, qps, burst, signal, onDelay }) : transport;
  const unlimited = open(access);
  let anonymous: Transport | undefined;
  return {
    transport: limit(unlimited),
    createTransport: () => limit(unlimited),
    createAnonymousTransport: () => {
      anonymous ??= open(withoutCredentials(access));
      return limit(anonymous);
    },
    unlimited,
    server: access.server,
    ca: access.ca,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function withoutCredentials({ server, ca, tlsServerName, insecure, proxy }: WebhookKubeconfig): WebhookKubeconfig {
  return { server, ca, tlsServerName, insecure, proxy };
}

/** The API server and the service account of the pod that this process runs in. */
async function readPodAccess(env: NodeJS.ProcessEnv): Promise<WebhookKubeconfig> {
  const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "" } = env;
  if (host === "" || port === "") {
    throw new Error(
      "Cannot connect to an API server: set --kubeconfig, or run in a pod, which has KUBERNETES_SERVICE_HOST",
    );
  }
  const tokenFile = join(ACCOUNT, "token");
  const ca = await readFile(join(ACCOUNT, "ca.crt"), "utf8");
  const token = (await readFile(tokenFile, "utf8")).trim();
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    ca,
    token,
    tokenFile,
    insecure: false,
  };
}
