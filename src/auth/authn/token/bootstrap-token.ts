/** Tokens for machines that have nothing else yet: `id.secret`, kept in a secret until it expires. */
import type { Secret } from "../../../api/core/secret/schema.ts";
import { constantTimeEqual } from "../../../std/crypto/constant-time-equal.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { Refusal } from "../invalid-credentials-error.ts";
import type { TokenAuthenticator } from "./bearer-token.ts";

/** Where such secrets are looked for, in this order: under the project's name and under Kubernetes'. */
export const BOOTSTRAP_NAMESPACES = ["svc-system", "kube-system"] as const;
const TYPES: ReadonlySet<string | undefined> = new Set(["bootstrap.svc.io/token", "bootstrap.kubernetes.io/token"]);
const NAME_PREFIX = "bootstrap-token-";
const FORM = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const GROUP = "system:bootstrappers";
const EXTRA_GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

export interface BootstrapTokenOptions {
  readonly find: (namespace: string, name: string) => Promise<Secret | undefined>;
  /** Whom this server is. */
  readonly audiences: readonly string[];
  readonly clock: Clock;
}

export function bootstrapTokens({ find, audiences, clock }: BootstrapTokenOptions): TokenAuthenticator {
  return async ({ text }, asked) => {
    const [, id = "", secret = ""] = FORM.exec(text) ?? [];
    const shared = asked.filter((audience) => audiences.includes(audience));
    if (id === "" || shared.length === 0) return undefined;
    for (const namespace of BOOTSTRAP_NAMESPACES) {
      const found = await find(namespace, `${NAME_PREFIX}${id}`);
      if (found === undefined) continue;
      const groups = check(found, id, secret, clock.now());
      return { user: { name: `system:bootstrap:${id}`, uid: "", groups, extra: {} }, audiences: shared };
    }
    throw new Refusal(`there is no bootstrap token ${id}`);
  };
}

/** Whether the secret is that of a bootstrap token at all, whatever else is wrong with it. */
export function isBootstrapToken({ metadata, type }: Secret): boolean {
  return TYPES.has(type) && (metadata?.name ?? "").startsWith(NAME_PREFIX);
}

/** In milliseconds since 1970. Undefined when it says nothing, `NaN` for what cannot be read. */
export function expiryOf(secret: Secret): number | undefined {
  const text = member(secret, "expiration");
  if (text === "") return undefined;
  return RFC3339.test(text) ? Date.parse(text) : Number.NaN;
}

/** What signs in a token's name. */
export interface SigningToken {
  readonly id: string;
  readonly secret: string;
  /** In milliseconds since 1970. */
  readonly expiry: number | undefined;
}

/** Undefined for a secret that is no bootstrap token, or one that is not for signing. */
export function signingTokenOf(secret: Secret): SigningToken | undefined {
  if (!isBootstrapToken(secret) || member(secret, "usage-bootstrap-signing") !== "true") return undefined;
  const token = { id: member(secret, "token-id"), secret: member(secret, "token-secret"), expiry: expiryOf(secret) };
  const isNamed = secret.metadata?.name === NAME_PREFIX + token.id;
  return isNamed && token.id !== "" && token.secret !== "" && !Number.isNaN(token.expiry) ? token : undefined;
}

/** The groups it stands for. */
function check(found: Secret, id: string, secret: string, now: number): readonly string[] {
  const refuse = (why: string): never => {
    throw new Refusal(`the bootstrap token ${id} ${why}`);
  };
  if (found.metadata?.deletionTimestamp !== undefined) refuse("is being deleted");
  if (!TYPES.has(found.type)) refuse(`lies in a secret of type ${JSON.stringify(found.type)}`);
  if (!constantTimeEqual(member(found, "token-secret"), secret)) refuse("has another secret");
  if (member(found, "token-id") !== id) refuse("has another token-id in its secret");
  const expiry = expiryOf(found);
  if (Number.isNaN(expiry)) refuse("has an expiration that is no time");
  if (expiry !== undefined && now >= expiry) refuse("has expired");
  if (member(found, "usage-bootstrap-authentication") !== "true") refuse("is not for authentication");
  const extra = member(found, "auth-extra-groups")
    .split(",")
    .filter((group) => group !== "");
  const wrong = extra.find((group) => !EXTRA_GROUP.test(group));
  if (wrong !== undefined) refuse(`names the group ${JSON.stringify(wrong)}, which it may not`);
  return [...new Set([GROUP, ...extra])].sort();
}

function member({ data }: Secret, name: string): string {
  return Buffer.from(data?.[name] ?? "", "base64").toString();
}
