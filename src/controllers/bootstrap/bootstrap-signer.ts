/**
 * The bootstrap signer: signs the ConfigMap cluster-info with each bootstrap token for signing. `kubeadm join` verifies
 * the signature with its token and so trusts the CA in the ConfigMap.
 */
import { createHmac } from "node:crypto";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import { BOOTSTRAP_NAMESPACES, type SigningToken, signingTokenOf } from "../../auth/authn/token/bootstrap-token.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { type ReflectorEvent, reflect } from "../../client/informer/reflector.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";

const CLUSTER_INFO = { namespace: "kube-public", name: "cluster-info" } as const;
/** The key of the kubeconfig in the ConfigMap. */
const KUBECONFIG_KEY = "kubeconfig";
const SIGNATURE_PREFIX = "jws-kubeconfig-";
const KEY = `${CLUSTER_INFO.namespace}/${CLUSTER_INFO.name}`;

export async function runBootstrapSigner(deps: ControllerDeps): Promise<void> {
  const { client, observer, clock, random, log, signal } = deps;
  const informerOptions = { client: observer, clock, random, log };
  /** By namespace, then by name of the secret. */
  const tokens = new Map<string, Map<string, SigningToken>>();
  const query = { namespace: CLUSTER_INFO.namespace, fieldSelector: `metadata.name=${CLUSTER_INFO.name}` };
  await using info = startInformer({ ...informerOptions, kind: configMapKind, query }, signal);
  await using queue = createControllerQueue(deps, {
    name: "bootstrap_signer_queue",
    workers: 1,
    sync: syncClusterInfo,
    onError: (_, error) => log.error("Failed to sign cluster-info, will retry", error, CLUSTER_INFO),
  });

  async function syncClusterInfo(_key: string, stopping: AbortSignal): Promise<void> {
    const found = info.get(CLUSTER_INFO.name, CLUSTER_INFO.namespace);
    // Before all tokens are listed, signatures of unlisted tokens would be removed.
    if (found === undefined || tokens.size < BOOTSTRAP_NAMESPACES.length) return;
    const now = clock.now();
    const all = BOOTSTRAP_NAMESPACES.flatMap((namespace) => [...(tokens.get(namespace)?.values() ?? [])]);
    const valid = all.filter(({ expiry = Number.POSITIVE_INFINITY }) => now < expiry);
    const nextExpiry = Math.min(...valid.map(({ expiry = Number.POSITIVE_INFINITY }) => expiry));
    if (Number.isFinite(nextExpiry)) queue.addAfter(KEY, nextExpiry - now);
    const signed = applySignatures(found, valid);
    if (signed === undefined) return;
    try {
      await client.update(configMapKind, signed, stopping);
    } catch (error) {
      // Another client changed it, which the informer reports.
      if (!isNotFoundOrConflict(error)) throw error;
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
      await reflect({ ...informerOptions, kind: secretKind, query: { namespace }, onEvent }, signal);
    }),
  );
}

/** The ConfigMap with a signature for each token and no other; undefined if it is up to date. */
export function applySignatures(configMap: ConfigMap, tokens: readonly SigningToken[]): ConfigMap | undefined {
  const { data = {} } = configMap;
  const content = data[KUBECONFIG_KEY];
  if (content === undefined) return undefined;
  // Of two tokens with the same ID the first one applies, as in authentication.
  const signatures = Object.fromEntries(
    [...tokens].reverse().map((token) => [SIGNATURE_PREFIX + token.id, detachedSignature(content, token)]),
  );
  const isSignature = (key: string): boolean => key.startsWith(SIGNATURE_PREFIX);
  const keys = [...new Set([...Object.keys(data).filter(isSignature), ...Object.keys(signatures)])];
  if (keys.every((key) => data[key] === signatures[key])) return undefined;
  const rest = Object.entries(data).filter(([key]) => !isSignature(key));
  return { ...configMap, data: { ...Object.fromEntries(rest), ...signatures } };
}

/** A JSON Web Signature with detached content (RFC 7515, appendix F). */
function detachedSignature(content: string, { id, secret }: SigningToken): string {
  const encode = (text: string): string => Buffer.from(text).toString("base64url");
  const header = encode(JSON.stringify({ alg: "HS256", kid: id }));
  const signature = createHmac("sha256", secret)
    .update(`${header}.${encode(content)}`)
    .digest("base64url");
  return `${header}..${signature}`;
}
