/**
 * Authenticates service account tokens: signed by a known key, of a known issuer, for the requested audience, not
 * expired, and bound to objects that exist. The signature is verified once for each token; the rest is checked for each
 * request.
 */
import type { ServiceAccount } from "../../api/core/service-account/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import { constantTimeEqual } from "../../std/crypto/constant-time-equal.ts";
import type { Clock } from "../../std/time/clock.ts";
import { InvalidCredentialsError } from "../authn/invalid-credentials-error.ts";
import type { BearerToken, TokenAuthenticator, TokenUser } from "../authn/token/bearer-token.ts";
import type { UserInfo } from "../user.ts";
import {
  type BoundClaims,
  LEGACY_ISSUER,
  type LegacyClaims,
  parseClaims,
  type Reference,
  serviceAccountUsername,
} from "./claims.ts";
import { ACCOUNT_ALGORITHMS, isSignedBy, type Jws, parseJws } from "./jws.ts";
import type { VerificationKey } from "./keys.ts";
import { DAY_MS, dayOf, INVALID_SINCE_LABEL, LAST_USED_LABEL } from "./legacy-tokens.ts";

export interface BoundReference extends Reference {
  readonly kind: "ServiceAccount" | "Pod" | "Secret" | "Node";
  readonly namespace: string;
}

/** Returns the stored object; the one with the uid if there are several. */
export type FindBound = (reference: BoundReference) => MaybePromise<ApiObject | undefined>;

export interface ServiceAccountTokenOptions {
  readonly issuers: readonly string[];
  /** The default audiences, of tokens without audience and of requests without one. */
  readonly audiences: readonly string[];
  /** Returns the keys. Called when the first token arrives; a remote source may look for the key `keyId`. */
  readonly keys: (keyId?: string) => Promise<readonly VerificationKey[]>;
  /** Changes when keys are added or removed; cached results of an older version are discarded. */
  readonly keysVersion?: (() => number) | undefined;
  /** Whether the secret of a legacy token must exist (`--service-account-lookup`). */
  readonly lookUpSecrets: boolean;
  readonly find: FindBound;
  readonly clock: Clock;
  readonly count?: ((use: TokenUse) => void) | undefined;
  /** Called when the token of a secret is used whose last-used label is older than today. Returns at once. */
  readonly recordLastUsed?: ((secret: ApiObject, day: string) => void) | undefined;
}

/** Kubernetes' metrics count these uses. */
export type TokenUse = "valid" | "stale" | "legacy" | "auto-legacy" | "invalid-auto-legacy" | "manual-legacy";

interface VerifiedToken {
  readonly claims: BoundClaims | LegacyClaims;
  readonly user: UserInfo;
  /** The version of the keys that verified the token. */
  readonly keysVersion: number;
  /** Objects that must still exist. */
  readonly bound: readonly BoundReference[];
  /** The audiences of the last request, usually the same, and the result if the other checks pass. */
  lastAudiences?: readonly string[];
  lastResult?: TokenUser;
}

/** Bounds the cached tokens; the least recently added is evicted. */
const VERIFIED_MAX = 4096;
/** Clock skew. */
const LEEWAY_SECONDS = 60;
const EXTRA_PREFIX = "authentication.kubernetes.io/";
/** Prefix of audit annotations. */
const AUDIT_PREFIX = "authentication.k8s.io/";

export function serviceAccountAuthenticator(options: ServiceAccountTokenOptions): TokenAuthenticator {
  const { keysVersion = () => 0 } = options;
  const verified = new Map<string, VerifiedToken>();
  /** Tokens of external issuers: their text alone decides that. */
  const externalTokens = new Set<string>();
  const verifyAndCheck = async (token: BearerToken, requested: readonly string[]): Promise<TokenUser | undefined> => {
    const version = keysVersion();
    verified.delete(token.digest);
    const known = await verifyToken(token, version, options);
    if (known === undefined) {
      if (externalTokens.size >= VERIFIED_MAX) externalTokens.clear();
      externalTokens.add(token.digest);
      return undefined;
    }
    for (const oldest of verified.keys()) {
      if (verified.size < VERIFIED_MAX) break;
      verified.delete(oldest);
    }
    verified.set(token.digest, known);
    return await checkToken(known, token, requested, options);
  };
  return (token, requested) => {
    const known = verified.get(token.digest);
    if (known !== undefined && known.keysVersion === keysVersion()) return checkToken(known, token, requested, options);
    return externalTokens.has(token.digest) ? undefined : verifyAndCheck(token, requested);
  };
}

/** The checks for each request. */
function checkToken(
  cached: VerifiedToken,
  token: BearerToken,
  requested: readonly string[],
  options: ServiceAccountTokenOptions,
): MaybePromise<TokenUser> {
  const { claims, user, bound } = cached;
  const { clock, count } = options;
  if (claims.audiences.length === 0) {
    token.annotate(`${AUDIT_PREFIX}legacy-token`, user.name);
    count?.("legacy");
  }
  if (cached.lastAudiences !== requested || cached.lastResult === undefined) {
    const tokenAudiences = claims.audiences.length === 0 ? options.audiences : claims.audiences;
    const audiences = tokenAudiences.filter((audience) => requested.includes(audience));
    if (audiences.length === 0) {
      throw new InvalidCredentialsError(
        `token audiences ${formatGoStrings(tokenAudiences)} is invalid for the target audiences ${formatGoStrings(requested)}`,
      );
    }
    cached.lastAudiences = requested;
    cached.lastResult = { user, audiences };
  }
  const { lastResult } = cached;
  const now = clock.now() / 1000;
  checkTimes(claims, now);
  if (claims.type === "legacy") {
    return options.lookUpSecrets ? checkLegacyToken(claims, token, options, now).then(() => lastResult) : lastResult;
  }
  return andThen(checkBound(bound, 0, options.find, now), () => {
    observeStaleness(claims, user, token, now, count);
    return lastResult;
  });
}

/** Audits and counts tokens that should have been refreshed. */
function observeStaleness(
  { warnAfter }: BoundClaims,
  { name }: UserInfo,
  token: BearerToken,
  now: number,
  count: ServiceAccountTokenOptions["count"],
): void {
  if (warnAfter === undefined || warnAfter === 0) return;
  const isStale = now > warnAfter;
  count?.(isStale ? "stale" : "valid");
  if (!isStale) return;
  const late = Math.floor(now) - warnAfter;
  token.annotate(`${AUDIT_PREFIX}stale-token`, `subject: ${name}, seconds after warning threshold: ${late}`);
}

/** Undefined for tokens of other issuers. */
async function verifyToken(
  { text }: BearerToken,
  keysVersion: number,
  { issuers, keys }: ServiceAccountTokenOptions,
): Promise<VerifiedToken | undefined> {
  const jws = parseJws(text, ACCOUNT_ALGORITHMS);
  const { iss } = jws?.payload ?? {};
  if (jws === undefined || typeof iss !== "string") return undefined;
  if (iss !== LEGACY_ISSUER && !issuers.includes(iss)) return undefined;
  if (!hasValidSignature(jws, await keys(jws.keyId))) throw new InvalidCredentialsError("invalid signature");
  const claims = parseClaims(jws.payload);
  if (claims === undefined) throw new InvalidCredentialsError("the claims of the token are malformed");
  return { claims, user: userFromClaims(claims), keysVersion, bound: boundReferences(claims) };
}

function hasValidSignature(jws: Jws, candidates: readonly VerificationKey[]): boolean {
  // The key ID is a hint: other issuers name keys differently.
  const named = candidates.filter(({ keyId }) => keyId === jws.keyId);
  return (named.length > 0 ? named : candidates).some(({ publicKey }) => isSignedBy(jws, publicKey));
}

function checkTimes({ times: { notBefore, issuedAt, expires } }: VerifiedToken["claims"], now: number): void {
  if (notBefore !== undefined && now + LEEWAY_SECONDS < notBefore) {
    throw new InvalidCredentialsError("service account token is not valid yet");
  }
  if (expires !== undefined && now - LEEWAY_SECONDS > expires)
    throw new InvalidCredentialsError("service account token has expired");
  if (issuedAt !== undefined && now + LEEWAY_SECONDS < issuedAt) {
    throw new InvalidCredentialsError("service account token is issued in the future");
  }
}

function boundReferences(claims: VerifiedToken["claims"]): readonly BoundReference[] {
  if (claims.type === "legacy") return [];
  const { namespace, account, pod, node, secret } = claims;
  return [
    { kind: "ServiceAccount", namespace, ...account },
    ...(secret === undefined ? [] : [{ kind: "Secret", namespace, ...secret } as const]),
    ...(pod === undefined ? [] : [{ kind: "Pod", namespace, ...pod } as const]),
    // The node of a pod's token is only informational.
    ...(node === undefined || pod !== undefined ? [] : [{ kind: "Node", namespace: "", ...node } as const]),
  ];
}

/** Checks the references from index `first` on, without a promise while caches have the objects. */
function checkBound(bound: readonly BoundReference[], first: number, find: FindBound, now: number): MaybePromise<void> {
  for (let i = first; i < bound.length; i++) {
    const reference = bound[i]!;
    const found = find(reference);
    if (found instanceof Promise) {
      return found.then((late) => {
        checkPresent(late, reference, now);
        return checkBound(bound, i + 1, find, now);
      });
    }
    checkPresent(found, reference, now);
  }
}

function checkPresent(found: ApiObject | undefined, { kind, uid }: BoundReference, now: number): void {
  const { metadata } = found ?? {};
  if (metadata === undefined) throw new InvalidCredentialsError("service account token has been invalidated");
  if (metadata.uid !== uid)
    throw new InvalidCredentialsError(`${kind} UID (${metadata.uid}) does not match claim (${uid})`);
  const { deletionTimestamp } = metadata;
  if (deletionTimestamp !== undefined && Date.parse(deletionTimestamp) / 1000 < now - LEEWAY_SECONDS) {
    throw new InvalidCredentialsError("service account token has been invalidated");
  }
}

type TokenSecret = ApiObject & { readonly data?: Readonly<Record<string, string>> | undefined };

async function checkLegacyToken(
  { namespace, account, secret }: LegacyClaims,
  token: BearerToken,
  { find, count, recordLastUsed }: ServiceAccountTokenOptions,
  now: number,
): Promise<void> {
  const secretObject = (await find({ kind: "Secret", namespace, ...secret })) as TokenSecret | undefined;
  if (secretObject?.metadata === undefined || secretObject.metadata.deletionTimestamp !== undefined) {
    throw new InvalidCredentialsError("service account token has been invalidated");
  }
  const storedToken = Buffer.from(secretObject.data?.token ?? "", "base64");
  if (!constantTimeEqual(storedToken, token.text)) {
    throw new InvalidCredentialsError("service account token does not match server's copy");
  }
  const owner: ServiceAccount | undefined = await find({ kind: "ServiceAccount", namespace, ...account });
  if (owner?.metadata === undefined || owner.metadata.deletionTimestamp !== undefined) {
    throw new InvalidCredentialsError(`service account ${namespace}/${account.name} has been deleted`);
  }
  if (owner.metadata.uid !== account.uid) {
    throw new InvalidCredentialsError(
      `service account UID (${owner.metadata.uid}) does not match claim (${account.uid})`,
    );
  }
  const { labels } = secretObject.metadata;
  const today = dayOf(now * 1000);
  // Another server's clock may be ahead.
  if (![today, dayOf(now * 1000 + DAY_MS)].includes(labels?.[LAST_USED_LABEL] ?? ""))
    recordLastUsed?.(secretObject, today);
  if ((labels?.[INVALID_SINCE_LABEL] ?? "") !== "") {
    token.annotate(`${AUDIT_PREFIX}legacy-token-invalidated`, `${secret.name}/${namespace}`);
    count?.("invalid-auto-legacy");
    throw new InvalidCredentialsError(
      `the token in secret ${namespace}/${secret.name} for service account ${namespace}/${account.name} has been ` +
        "marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the " +
        `'${INVALID_SINCE_LABEL}' label from the secret to temporarily allow use of this token`,
    );
  }
  const isAutomatic = (owner.secrets ?? []).some(({ name }) => name === secret.name);
  count?.(isAutomatic ? "auto-legacy" : "manual-legacy");
  token.annotate(`${AUDIT_PREFIX}legacy-token-${isAutomatic ? "autogenerated" : "manual"}-secret`, secret.name);
  if (isAutomatic) {
    const instead = "Use tokens from the TokenRequest API or manually created secret-based tokens";
    token.warn(`${instead} instead of auto-generated secret-based tokens.`);
  }
}

function userFromClaims(claims: VerifiedToken["claims"]): UserInfo {
  const { namespace, account } = claims;
  return {
    name: serviceAccountUsername(namespace, account.name),
    uid: account.uid ?? "",
    groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`],
    extra: claims.type === "bound" ? extraFromClaims(claims) : {},
  };
}

function extraFromClaims({ id, pod, node }: BoundClaims): Readonly<Record<string, readonly string[]>> {
  const members = [
    ["credential-id", id === "" ? "" : `JTI=${id}`],
    ["node-name", node?.name],
    ["node-uid", node?.uid],
    ["pod-name", pod?.name],
    ["pod-uid", pod?.uid],
  ] as const;
  return Object.fromEntries(
    members.filter(([, value]) => value).map(([name, value]) => [EXTRA_PREFIX + name, [value ?? ""]]),
  );
}

/** Formats a list as Go does. */
function formatGoStrings(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(" ")}]`;
}
