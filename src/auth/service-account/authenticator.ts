/**
 * Tokens of service accounts: signed by a key we know, of an issuer we know, meant for whoever asks, not over, and
 * bound to what still exists. What a signature covers does not change, so it is verified once; the rest is asked every
 * time.
 */
import type { ServiceAccount } from "../../api/core/service-account/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import { constantTimeEqual } from "../../std/crypto/constant-time-equal.ts";
import type { Clock } from "../../std/time/clock.ts";
import { InvalidCredentialsError } from "../authn/invalid-credentials-error.ts";
import type { BearerToken, TokenUser, TokenAuthenticator } from "../authn/token/bearer-token.ts";
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
import { DAY_MS, dayOf, INVALID_SINCE_LABEL, LAST_USED_LABEL } from "./legacy-tokens.ts";

export interface BoundReference extends Reference {
  readonly kind: "ServiceAccount" | "Pod" | "Secret" | "Node";
  readonly namespace: string;
}

/** The stored object; one that has the uid, if any has. */
export type FindBound = (reference: BoundReference) => MaybePromise<ApiObject | undefined>;

export interface AccountTokenOptions {
  readonly issuers: readonly string[];
  /** For whom tokens are that name nobody, and who asks when nobody is named. */
  readonly audiences: readonly string[];
  /** Asked when the first token comes; told what key a token names, where that may bring another one to light. */
  readonly keys: (named?: string) => Promise<readonly VerificationKey[]>;
  /** Another number whenever keys have come or gone; a key that has gone has verified nothing. */
  readonly keysVersion?: (() => number) | undefined;
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
  /** Of the keys that have verified it. */
  readonly keysVersion: number;
  /** What must still be there. */
  readonly bound: readonly BoundReference[];
  /** What was asked last, mostly the same list, and the answer while nothing else is wrong. */
  asked?: readonly string[];
  identified?: TokenUser;
}

/** Tokens whose signatures are remembered; the oldest are forgotten first. */
const VERIFIED_MAX = 4096;
/** Clocks differ. */
const LEEWAY_SECONDS = 60;
const EXTRA = "authentication.kubernetes.io/";
/** Of what the audit log is told. */
const AUDIT = "authentication.k8s.io/";

export function accountTokens(options: AccountTokenOptions): TokenAuthenticator {
  const { keysVersion = () => 0 } = options;
  const verified = new Map<string, Verified>();
  /** Tokens of others: that they are follows from their text. */
  const strangers = new Set<string>();
  const meet = async (token: BearerToken, asked: readonly string[]): Promise<TokenUser | undefined> => {
    const version = keysVersion();
    verified.delete(token.digest);
    const known = await verify(token, version, options);
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
    return await judge(known, token, asked, options);
  };
  return (token, asked) => {
    const known = verified.get(token.digest);
    if (known !== undefined && known.keysVersion === keysVersion()) return judge(known, token, asked, options);
    return strangers.has(token.digest) ? undefined : meet(token, asked);
  };
}

/** What has to be asked every time. */
function judge(
  known: Verified,
  token: BearerToken,
  asked: readonly string[],
  options: AccountTokenOptions,
): MaybePromise<TokenUser> {
  const { claims, user, bound } = known;
  const { clock, count } = options;
  if (claims.audiences.length === 0) {
    token.annotate(`${AUDIT}legacy-token`, user.name);
    count?.("legacy");
  }
  if (known.asked !== asked || known.identified === undefined) {
    const meantFor = claims.audiences.length === 0 ? options.audiences : claims.audiences;
    const audiences = meantFor.filter((audience) => asked.includes(audience));
    if (audiences.length === 0) {
      throw new InvalidCredentialsError(`token audiences ${quoted(meantFor)} is invalid for the target audiences ${quoted(asked)}`);
    }
    known.asked = asked;
    known.identified = { user, audiences };
  }
  const { identified } = known;
  const now = clock.now() / 1000;
  checkTimes(claims, now);
  if (claims.form === "legacy") {
    return options.lookup ? checkLegacy(claims, token, options, now).then(() => identified) : identified;
  }
  return andThen(checkBound(bound, 0, options.find, now), () => {
    noteAge(claims, user, token, now, count);
    return identified;
  });
}

/** Who has been given newer tokens since, and reads none of them, is found in the audit log. */
function noteAge(
  { warnAfter }: BoundClaims,
  { name }: UserInfo,
  token: BearerToken,
  now: number,
  count: AccountTokenOptions["count"],
): void {
  if (warnAfter === undefined || warnAfter === 0) return;
  const isStale = now > warnAfter;
  count?.(isStale ? "stale" : "valid");
  if (!isStale) return;
  const late = Math.floor(now) - warnAfter;
  token.annotate(`${AUDIT}stale-token`, `subject: ${name}, seconds after warning threshold: ${late}`);
}

/** Undefined for what no issuer of ours can have made. */
async function verify(
  { text }: BearerToken,
  keysVersion: number,
  { issuers, keys }: AccountTokenOptions,
): Promise<Verified | undefined> {
  const jws = parseJws(text, ACCOUNT_ALGORITHMS);
  const { iss } = jws?.payload ?? {};
  if (jws === undefined || typeof iss !== "string") return undefined;
  if (iss !== LEGACY_ISSUER && !issuers.includes(iss)) return undefined;
  if (!isSigned(jws, await keys(jws.keyId))) throw new InvalidCredentialsError("invalid signature");
  const claims = readClaims(jws.payload);
  if (claims === undefined) throw new InvalidCredentialsError("the claims of the token have another form");
  return { claims, user: userOf(claims), keysVersion, bound: boundTo(claims) };
}

function isSigned(jws: Jws, candidates: readonly VerificationKey[]): boolean {
  // A key identifier is a hint: other issuers name keys in other ways.
  const named = candidates.filter(({ keyId }) => keyId === jws.keyId);
  return (named.length > 0 ? named : candidates).some(({ publicKey }) => isSignedBy(jws, publicKey));
}

function checkTimes({ times: { notBefore, issuedAt, expires } }: Verified["claims"], now: number): void {
  if (notBefore !== undefined && now + LEEWAY_SECONDS < notBefore) {
    throw new InvalidCredentialsError("service account token is not valid yet");
  }
  if (expires !== undefined && now - LEEWAY_SECONDS > expires) throw new InvalidCredentialsError("service account token has expired");
  if (issuedAt !== undefined && now + LEEWAY_SECONDS < issuedAt) {
    throw new InvalidCredentialsError("service account token is issued in the future");
  }
}

function boundTo(claims: Verified["claims"]): readonly BoundReference[] {
  if (claims.form === "legacy") return [];
  const { namespace, account, pod, node, secret } = claims;
  return [
    { kind: "ServiceAccount", namespace, ...account },
    ...(secret === undefined ? [] : [{ kind: "Secret", namespace, ...secret } as const]),
    ...(pod === undefined ? [] : [{ kind: "Pod", namespace, ...pod } as const]),
    // Of a pod's token, the node only tells where the pod is.
    ...(node === undefined || pod !== undefined ? [] : [{ kind: "Node", namespace: "", ...node } as const]),
  ];
}

/** Those from `first` on, without a promise as long as caches know them. */
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
  if (metadata.uid !== uid) throw new InvalidCredentialsError(`${kind} UID (${metadata.uid}) does not match claim (${uid})`);
  const { deletionTimestamp } = metadata;
  if (deletionTimestamp !== undefined && Date.parse(deletionTimestamp) / 1000 < now - LEEWAY_SECONDS) {
    throw new InvalidCredentialsError("service account token has been invalidated");
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
    throw new InvalidCredentialsError("service account token has been invalidated");
  }
  const kept = Buffer.from(holder.data?.token ?? "", "base64");
  if (!constantTimeEqual(kept, token.text)) {
    throw new InvalidCredentialsError("service account token does not match server's copy");
  }
  const owner: ServiceAccount | undefined = await find({ kind: "ServiceAccount", namespace, ...account });
  if (owner?.metadata === undefined || owner.metadata.deletionTimestamp !== undefined) {
    throw new InvalidCredentialsError(`service account ${namespace}/${account.name} has been deleted`);
  }
  if (owner.metadata.uid !== account.uid) {
    throw new InvalidCredentialsError(`service account UID (${owner.metadata.uid}) does not match claim (${account.uid})`);
  }
  const { labels } = holder.metadata;
  const today = dayOf(now * 1000);
  // Another server may be ahead of this one.
  if (![today, dayOf(now * 1000 + DAY_MS)].includes(labels?.[LAST_USED_LABEL] ?? "")) used?.(holder, today);
  if ((labels?.[INVALID_SINCE_LABEL] ?? "") !== "") {
    token.annotate(`${AUDIT}legacy-token-invalidated`, `${secret.name}/${namespace}`);
    count?.("invalid-auto-legacy");
    throw new InvalidCredentialsError(
      `the token in secret ${namespace}/${secret.name} for service account ${namespace}/${account.name} has been ` +
        "marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the " +
        `'${INVALID_SINCE_LABEL}' label from the secret to temporarily allow use of this token`,
    );
  }
  const isAutomatic = (owner.secrets ?? []).some(({ name }) => name === secret.name);
  count?.(isAutomatic ? "auto-legacy" : "manual-legacy");
  token.annotate(`${AUDIT}legacy-token-${isAutomatic ? "autogenerated" : "manual"}-secret`, secret.name);
  if (isAutomatic) {
    const instead = "Use tokens from the TokenRequest API or manually created secret-based tokens";
    token.warn(`${instead} instead of auto-generated secret-based tokens.`);
  }
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
