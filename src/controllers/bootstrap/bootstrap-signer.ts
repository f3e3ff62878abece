/**
 * Signs what everybody may read of the cluster with each bootstrap token that is for signing: whoever holds a token
 * can tell from the signature that the cluster which shows the config map knows the token too, as `kubeadm join` does.
 */
import { createHmac } from "node:crypto";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import { StatusError } from "../../api/status.ts";
import { BOOTSTRAP_NAMESPACES, type SigningToken, signingTokenOf } from "../../auth/authn/token/bootstrap-token.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { type ReflectorEvent, reflect } from "../../client/informer/reflector.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";

const CLUSTER_INFO = { namespace: "kube-public", name: "cluster-info" } as const;
/** What is signed: a connection file. */
const SIGNED = "kubeconfig";
const SIGNATURE_PREFIX = "jws-kubeconfig-";
const KEY = `${CLUSTER_INFO.namespace}/${CLUSTER_INFO.name}`;

export async function runBootstrapSigner(deps: ControllerDeps): Promise<void> {
  const { client, observer, clock, random, log, signal } = deps;
  const shared = { client: observer, clock, random, log };
  /** By namespace, then by the secret's name. */
  const tokens = new Map<string, Map<string, SigningToken>>();
  const query = { namespace: CLUSTER_INFO.namespace, fieldSelector: `metadata.name=${CLUSTER_INFO.name}` };
  await using info = startInformer({ ...shared, kind: configMapKind, query }, signal);
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 1,
    backoff: { initialMs: 500, maxMs: 60_000, jitter: 0.1 },
    work: (_, stopping) => sign(stopping),
    onError: (_, error) => log.error("Cannot sign what is told of the cluster; trying again", error, CLUSTER_INFO),
  });

  async function sign(stopping: AbortSignal): Promise<void> {
    const found = info.get(CLUSTER_INFO.name, CLUSTER_INFO.namespace);
    // Signatures of tokens that are not known yet would be taken away.
    if (found === undefined || tokens.size < BOOTSTRAP_NAMESPACES.length) return;
    const now = clock.now();
    const known = BOOTSTRAP_NAMESPACES.flatMap((namespace) => [...(tokens.get(namespace)?.values() ?? [])]);
    const good = known.filter(({ expiry = Number.POSITIVE_INFINITY }) => now < expiry);
    const first = Math.min(...good.map(({ expiry = Number.POSITIVE_INFINITY }) => expiry));
    if (Number.isFinite(first)) queue.addAfter(KEY, first - now);
    const next = signedWith(found, good);
    if (next === undefined) return;
    try {
      await client.update(configMapKind, next, stopping);
    } catch (error) {
      // Somebody else was quicker: the informer will tell.
      if (!(error instanceof StatusError) || (error.status.code !== 404 && error.status.code !== 409)) throw error;
    }
  }

  info.subscribe({ put: () => queue.add(KEY) });
  await Promise.all(
    BOOTSTRAP_NAMESPACES.map(async (namespace) => {
      const observe = (secret: Secret): void => {
        const token = signingTokenOf(secret);
        const { name = "" } = secret.metadata ?? {};
        if (token === undefined) tokens.get(namespace)?.delete(name);
        else tokens.get(namespace)?.set(name, token);
      };
      const onEvent = (event: ReflectorEvent<Secret>): void => {
        if (event.type === "replace") {
          tokens.set(namespace, new Map());
          for (const secret of event.items) observe(secret);
        } else if (event.type === "put") observe(event.object);
        else tokens.get(namespace)?.delete(event.object.metadata?.name ?? "");
        queue.add(KEY);
      };
      await reflect({ ...shared, kind: secretKind, query: { namespace }, onEvent }, signal);
    }),
  );
}

/** The config map with a signature for each token, and for nobody else; undefined where it has just these. */
export function signedWith(found: ConfigMap, tokens: readonly SigningToken[]): ConfigMap | undefined {
  const { data = {} } = found;
  const content = data[SIGNED];
  if (content === undefined) return undefined;
  // Of two tokens with one id the first one counts, as where they are authenticated.
  const signatures = Object.fromEntries(
    [...tokens].reverse().map((token) => [SIGNATURE_PREFIX + token.id, detachedSignature(content, token)]),
  );
  const isSignature = (key: string): boolean => key.startsWith(SIGNATURE_PREFIX);
  const keys = [...new Set([...Object.keys(data).filter(isSignature), ...Object.keys(signatures)])];
  if (keys.every((key) => data[key] === signatures[key])) return undefined;
  const rest = Object.entries(data).filter(([key]) => !isSignature(key));
  return { ...found, data: { ...Object.fromEntries(rest), ...signatures } };
}

/** A JSON Web Signature without what it signs, which its reader has (RFC 7515, appendix F). */
function detachedSignature(content: string, { id, secret }: SigningToken): string {
  const encoded = (text: string): string => Buffer.from(text).toString("base64url");
  const header = encoded(JSON.stringify({ alg: "HS256", kid: id }));
  const signature = createHmac("sha256", secret)
    .update(`${header}.${encoded(content)}`)
    .digest("base64url");
  return `${header}..${signature}`;
}
