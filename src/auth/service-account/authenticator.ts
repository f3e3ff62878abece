/**
 * Tokens of service accounts: signed by a key we know, of an issuer we know, meant for whoever asks, not over, and
 * bound to what still exists. What a signature covers does not change, so it is verified once; the rest is asked every
 * time.
 */
import { timingSafeEqual } from "node:crypto";
import type { ServiceAccount } from "../../api/core/service-account.ts";
import type { ApiObject } from "../../api/kind.ts";
import type { Clock } from "../../std/clock.ts";
import { Refusal } from "../authn/refusal.ts";
import type { BearerToken, TokenAuthenticator } from "../authn/token.ts";
import type { UserInfo } from "../user.ts";
import {
  accountUser,
  type BoundClaims,
  LEGACY_ISSUER,
  type LegacyClaims,
  type Reference,
  readClaims,
} from "./claims.ts";
import { ACCOUNT_ALGORITHMS, isSignedBy, type Jws, parseJws } from "./jws.ts";
import type { VerificationKey } from "./keys.ts";

export interface BoundReference extends Reference {
  readonly kind: "ServiceAccount" | "Pod" | "Secret" | "Node";
  readonly namespace: string;
}

/** The stored object; one that has the uid, if any has. */
export type FindBound = (reference: BoundReference) => Promise<ApiObject | undefined>;

export interface AccountTokenOptions {
  readonly issuers: readonly string[];
  /** For whom tokens are that name nobody, and who asks when nobody is named. */
  readonly audiences: readonly string[];
  /** Asked when the first token comes; told what key a token names, where that may bring another one to light. */
  readonly keys: (named?: string) => Promise<readonly VerificationKey[]>;
  /** Whether tokens that lie in secrets must be there still. */
  readonly lookup: boolean;
  readonly find: FindBound;
  readonly clock: Clock;
  readonly count?: ((use: TokenUse) => void) | undefined;
  /** Told of secrets whose tokens are used and do not say yet that they were today. Returns at once. */
  readonly used?: ((secret: ApiObject, day: string) => void) | undefined;
}

/** What good and bad uses of tokens are counted as. */
export type TokenUse = "valid" | "stale" | "legacy" | "auto-legacy" | "invalid-auto-legacy" | "manual-legacy";

interface Verified {
  readonly claims: BoundClaims | LegacyClaims;
  readonly user: UserInfo;
  /** What was asked last, mostly the same list, and what of it the token is for. */
  asked?: readonly string[];
  audiences?: readonly string[];
}

/** Tokens whose signatures are remembered; the oldest are forgotten first. */
const VERIFIED_MAX = 4096;
/** Clocks differ. */
const LEEWAY_SECONDS = 60;
const EXTRA = "authentication.kubernetes.io/";

export const LAST_USED_LABEL = "kubernetes.io/legacy-token-last-used";
export const INVALID_SINCE_LABEL = "kubernetes.io/legacy-token-invalid-since";

export function accountTokens(options: AccountTokenOptions): TokenAuthenticator {
  const { audiences: ownAudiences, clock, count } = options;
  const verified = new Map<string, Verified>();
  /** Tokens of others: that they are follows from their text. */
  const strangers = new Set<string>();
  return async (token, asked) => {
    let known = verified.get(token.digest);
    if (known === undefined) {
      if (strangers.has(token.digest)) return undefined;
      known = await verify(token, options);
      if (known === undefined) {
        if (strangers.size >= VERIFIED_MAX) strangers.clear();
        strangers.add(token.digest);
        return undefined;
      }
      for (const oldest of verified.keys()) {
        if (verified.size < VERIFIED_MAX) break;
        verified.delete(oldest);
      }
      verified.set(token.digest, known);
    }
    const { claims, user } = known;
    const meantFor = claims.audiences.length === 0 ? ownAudiences : claims.audiences;
    if (known.asked !== asked || known.audiences === undefined) {
      known.asked = asked;
      known.audiences = meantFor.filter((audience) => asked.includes(audience));
    }
    const { audiences } = known;
    if (audiences.length === 0) {
      throw new Refusal(`token audiences ${quoted(meantFor)} is invalid for the target audiences ${quoted(asked)}`);
    }
    const now = clock.now() / 1000;
    checkTimes(claims, now);
    if (claims.form === "legacy") {
      if (options.lookup) await checkLegacy(claims, token, options, now);
      count?.("legacy");
    } else {
      await checkBound(claims, options.find, now);
      // Its bearer has been given newer ones since, and reads none of them.
      count?.(claims.warnAfter !== undefined && now > claims.warnAfter ? "stale" : "valid");
    }
    return { user, audiences };
  };
}

/** Undefined for what no issuer of ours can have made. */
async function verify({ text }: BearerToken, { issuers, keys }: AccountTokenOptions): Promise<Verified | undefined> {
  const jws = parseJws(text, ACCOUNT_ALGORITHMS);
  const { iss } = jws?.payload ?? {};
  if (jws === undefined || typeof iss !== "string") return undefined;
  if (iss !== LEGACY_ISSUER && !issuers.includes(iss)) return undefined;
  if (!isSigned(jws, await keys(jws.keyId))) throw new Refusal("invalid signature");
  const claims = readClaims(jws.payload);
  if (claims === undefined) throw new Refusal("the claims of the token have another form");
  return { claims, user: userOf(claims) };
}

function isSigned(jws: Jws, candidates: readonly VerificationKey[]): boolean {
  // A key identifier is a hint: other issuers name keys in other ways.
  const named = candidates.filter(({ keyId }) => keyId === jws.keyId);
  return (named.length > 0 ? named : candidates).some(({ publicKey }) => isSignedBy(jws, publicKey));
}

function checkTimes({ times: { notBefore, issuedAt, expires } }: Verified["claims"], now: number): void {
  if (notBefore !== undefined && now + LEEWAY_SECONDS < notBefore) {
    throw new Refusal("service account token is not valid yet");
  }
  if (expires !== undefined && now - LEEWAY_SECONDS > expires) throw new Refusal("service account token has expired");
  if (issuedAt !== undefined && now + LEEWAY_SECONDS < issuedAt) {
    throw new Refusal("service account token is issued in the future");
  }
}

async function checkBound(claims: BoundClaims, find: FindBound, now: number): Promise<void> {
  const { namespace, account, pod, node, secret } = claims;
  const bound: readonly BoundReference[] = [
    { kind: "ServiceAccount", namespace, ...account },
    ...(secret === undefined ? [] : [{ kind: "Secret", namespace, ...secret } as const]),
    ...(pod === undefined ? [] : [{ kind: "Pod", namespace, ...pod } as const]),
    // Of a pod's token, the node only tells where the pod is.
    ...(node === undefined || pod !== undefined ? [] : [{ kind: "Node", namespace: "", ...node } as const]),
  ];
  for (const reference of bound) {
    const { metadata } = (await find(reference)) ?? {};
    if (metadata === undefined) throw new Refusal("service account token has been invalidated");
    if (metadata.uid !== reference.uid) {
      throw new Refusal(`${reference.kind} UID (${metadata.uid}) does not match claim (${reference.uid})`);
    }
    const { deletionTimestamp } = metadata;
    if (deletionTimestamp !== undefined && Date.parse(deletionTimestamp) / 1000 < now - LEEWAY_SECONDS) {
      throw new Refusal("service account token has been invalidated");
    }
  }
}

type Holder = ApiObject & { readonly data?: Readonly<Record<string, string>> | undefined };

async function checkLegacy(
  { namespace, account, secret }: LegacyClaims,
  token: BearerToken,
  { find, count, used }: AccountTokenOptions,
  now: number,
): Promise<void> {
  const holder = (await find({ kind: "Secret", namespace, ...secret })) as Holder | undefined;
  if (holder?.metadata === undefined || holder.metadata.deletionTimestamp !== undefined) {
    throw new Refusal("service account token has been invalidated");
  }
  const kept = Buffer.from(holder.data?.token ?? "", "base64");
  const sent = Buffer.from(token.text);
  if (kept.length !== sent.length || !timingSafeEqual(kept, sent)) {
    throw new Refusal("service account token does not match server's copy");
  }
  const owner: ServiceAccount | undefined = await find({ kind: "ServiceAccount", namespace, ...account });
  if (owner?.metadata === undefined || owner.metadata.deletionTimestamp !== undefined) {
    throw new Refusal(`service account ${namespace}/${account.name} has been deleted`);
  }
  if (owner.metadata.uid !== account.uid) {
    throw new Refusal(`service account UID (${owner.metadata.uid}) does not match claim (${account.uid})`);
  }
  const { labels } = holder.metadata;
  const today = dayOf(now);
  if (![today, dayOf(now + DAY_SECONDS)].includes(labels?.[LAST_USED_LABEL] ?? "")) used?.(holder, today);
  if ((labels?.[INVALID_SINCE_LABEL] ?? "") !== "") {
    count?.("invalid-auto-legacy");
    throw new Refusal(
      `the token in secret ${namespace}/${secret.name} for service account ${namespace}/${account.name} has been ` +
        "marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the " +
        `'${INVALID_SINCE_LABEL}' label from the secret to temporarily allow use of this token`,
    );
  }
  const isAutomatic = (owner.secrets ?? []).some(({ name }) => name === secret.name);
  count?.(isAutomatic ? "auto-legacy" : "manual-legacy");
  if (isAutomatic) {
    const instead = "Use tokens from the TokenRequest API or manually created secret-based tokens";
    token.warn(`${instead} instead of auto-generated secret-based tokens.`);
  }
}

const DAY_SECONDS = 86_400;

function dayOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}

function userOf(claims: Verified["claims"]): UserInfo {
  const { namespace, account } = claims;
  return {
    name: accountUser(namespace, account.name),
    uid: account.uid ?? "",
    groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`],
    extra: claims.form === "bound" ? extraOf(claims) : {},
  };
}

function extraOf({ id, pod, node }: BoundClaims): Readonly<Record<string, readonly string[]>> {
  const members = [
    ["credential-id", id === "" ? "" : `JTI=${id}`],
    ["node-name", node?.name],
    ["node-uid", node?.uid],
    ["pod-name", pod?.name],
    ["pod-uid", pod?.uid],
  ] as const;
  return Object.fromEntries(members.filter(([, value]) => value).map(([name, value]) => [EXTRA + name, [value ?? ""]]));
}

/** As Go prints a list of strings. */
function quoted(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(" ")}]`;
}
