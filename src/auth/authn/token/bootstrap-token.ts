/** Bootstrap tokens: `id.secret`, stored in a Secret until they expire, for nodes that join. */
import type { Secret } from "../../../api/core/secret/schema.ts";
import { constantTimeEqual } from "../../../std/crypto/constant-time-equal.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { InvalidCredentialsError } from "../invalid-credentials-error.ts";
import type { TokenAuthenticator } from "./bearer-token.ts";

/** Namespaces of the secrets, in the order of lookup: the project's and Kubernetes'. */
export const BOOTSTRAP_NAMESPACES = ["svc-system", "kube-system"] as const;
const TYPES: ReadonlySet<string | undefined> = new Set(["bootstrap.svc.io/token", "bootstrap.kubernetes.io/token"]);
const NAME_PREFIX = "bootstrap-token-";
const SECRET_NAME = /^bootstrap-token-([a-z0-9]{6})$/;
const TOKEN_FORMAT = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const GROUP = "system:bootstrappers";
const EXTRA_GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

export interface BootstrapTokenOptions {
  readonly find: (namespace: string, name: string) => Promise<Secret | undefined>;
  /** The audiences of this server. */
  readonly audiences: readonly string[];
  readonly clock: Clock;
}

export function bootstrapTokenAuthenticator({ find, audiences, clock }: BootstrapTokenOptions): TokenAuthenticator {
  return async ({ text }, requested) => {
    const [, id = "", secret = ""] = TOKEN_FORMAT.exec(text) ?? [];
    const matching = requested.filter((audience) => audiences.includes(audience));
    if (id === "" || matching.length === 0) return undefined;
    for (const namespace of BOOTSTRAP_NAMESPACES) {
      const found = await find(namespace, `${NAME_PREFIX}${id}`);
      if (found === undefined) continue;
      const groups = validateToken(found, id, secret, clock.now());
      return { user: { name: `system:bootstrap:${id}`, uid: "", groups, extra: {} }, audiences: matching };
    }
    throw new InvalidCredentialsError(`bootstrap token ${id} does not exist`);
  };
}

/** Whether the secret is a bootstrap token, valid or not. */
export function isBootstrapToken({ metadata, type }: Secret): boolean {
  return TYPES.has(type) && (metadata?.name ?? "").startsWith(NAME_PREFIX);
}

/** Milliseconds since 1970; undefined without expiration, `NaN` for an invalid one. */
export function expiryOf(secret: Secret): number | undefined {
  const text = decodeMember(secret, "expiration");
  if (text === "") return undefined;
  return RFC3339.test(text) ? Date.parse(text) : Number.NaN;
}

/** A token that signs cluster-info. */
export interface SigningToken {
  readonly id: string;
  readonly secret: string;
  /** Milliseconds since 1970. */
  readonly expiry: number | undefined;
}

/** Undefined for a secret that is not a bootstrap token for signing. */
export function signingTokenOf(secret: Secret): SigningToken | undefined {
  if (!isBootstrapToken(secret) || decodeMember(secret, "usage-bootstrap-signing") !== "true") return undefined;
  const token = {
    id: decodeMember(secret, "token-id"),
    secret: decodeMember(secret, "token-secret"),
    expiry: expiryOf(secret),
  };
  const isNamed = SECRET_NAME.exec(secret.metadata?.name ?? "")?.[1] === token.id;
  return isNamed && token.secret !== "" && !Number.isNaN(token.expiry) ? token : undefined;
}

/** Returns the groups of the user. */
function validateToken(found: Secret, id: string, secret: string, now: number): readonly string[] {
  const reject = (why: string): never => {
    throw new InvalidCredentialsError(`bootstrap token ${id} ${why}`);
  };
  if (found.metadata?.deletionTimestamp !== undefined) reject("is being deleted");
  if (!TYPES.has(found.type)) reject(`has a secret of type ${JSON.stringify(found.type)}`);
  if (!constantTimeEqual(decodeMember(found, "token-secret"), secret)) reject("has another secret");
  if (decodeMember(found, "token-id") !== id) reject("has another token-id in its secret");
  const expiry = expiryOf(found);
  if (Number.isNaN(expiry)) reject("has an invalid expiration");
  if (expiry !== undefined && now >= expiry) reject("has expired");
  if (decodeMember(found, "usage-bootstrap-authentication") !== "true") reject("is not for authentication");
  const extra = decodeMember(found, "auth-extra-groups")
    .split(",")
    .filter((group) => group !== "");
  const wrong = extra.find((group) => !EXTRA_GROUP.test(group));
  if (wrong !== undefined) reject(`names the group ${JSON.stringify(wrong)}, which is not allowed`);
  return [...new Set([GROUP, ...extra])].sort();
}

function decodeMember({ data }: Secret, name: string): string {
  return Buffer.from(data?.[name] ?? "", "base64").toString();
}
