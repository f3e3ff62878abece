/**
 * Tokens of service accounts: signed by a key we know, of an issuer we know, meant for whoever asks, not over, and
 * bound to what still exists. What a signature covers does not change, so it is verified once; the rest is asked every
 * time.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { ApiObject } from "../../api/kind.ts";
import type { Clock } from "../../std/clock.ts";
import type { UserInfo } from "../user.ts";
import {
  accountUser,
  type BoundClaims,
  LEGACY_ISSUER,
  type LegacyClaims,
  type Reference,
  readClaims,
} from "./claims.ts";
import { isSignedBy, type Jws, parseJws } from "./jws.ts";
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
  /** Asked when the first token comes. */
  readonly keys: () => Promise<readonly VerificationKey[]>;
  /** Whether tokens that lie in secrets must be there still. */
  readonly lookup: boolean;
  readonly find: FindBound;
  readonly clock: Clock;
}

export interface Identified {
  readonly user: UserInfo;
  /** Those asked for that the token is meant for. */
  readonly audiences: readonly string[];
}

/** Why a token that is ours is not good. For those who review tokens, not for its bearer. */
export class TokenRefusal extends Error {
  override readonly name = "TokenRefusal";
}

/** Undefined for what is no token of ours. Throws a `TokenRefusal` for one that is not good. */
export type AccountTokens = (token: string, audiences: readonly string[]) => Promise<Identified | undefined>;

interface Verified {
  readonly claims: BoundClaims | LegacyClaims;
  readonly user: UserInfo;
}

/** Tokens whose signatures are remembered; the oldest are forgotten first. */
const VERIFIED_MAX = 4096;
/** Clocks differ. */
const LEEWAY_SECONDS = 60;
const EXTRA = "authentication.kubernetes.io/";

export function accountTokens(options: AccountTokenOptions): AccountTokens {
  const { issuers, audiences: ownAudiences, keys, clock } = options;
  const verified = new Map<string, Verified>();
  const verify = async (token: string, jws: Jws): Promise<Verified> => {
    const hash = createHash("sha256").update(token).digest("base64");
    const known = verified.get(hash);
    if (known !== undefined) return known;
    const candidates = await keys();
    // A key identifier is a hint: other issuers name keys in other ways.
    const named = candidates.filter(({ keyId }) => keyId === jws.keyId);
    if (!(named.length > 0 ? named : candidates).some(({ publicKey }) => isSignedBy(jws, publicKey))) {
      throw new TokenRefusal("invalid signature");
    }
    const claims = readClaims(jws.payload);
    if (claims === undefined) throw new TokenRefusal("the claims of the token have another form");
    const entry = { claims, user: userOf(claims) };
    for (const oldest of verified.keys()) {
      if (verified.size < VERIFIED_MAX) break;
      verified.delete(oldest);
    }
    verified.set(hash, entry);
    return entry;
  };
  return async (token, asked) => {
    const jws = parseJws(token);
    const { iss } = jws?.payload ?? {};
    if (jws === undefined || typeof iss !== "string") return undefined;
    if (iss !== LEGACY_ISSUER && !issuers.includes(iss)) return undefined;
    const { claims, user } = await verify(token, jws);
    const meantFor = claims.audiences.length === 0 ? ownAudiences : claims.audiences;
    const audiences = meantFor.filter((audience) => asked.includes(audience));
    if (audiences.length === 0) {
      throw new TokenRefusal(
        `token audiences ${quoted(meantFor)} is invalid for the target audiences ${quoted(asked)}`,
      );
    }
    const now = clock.now() / 1000;
    checkTimes(claims, now);
    if (claims.form === "bound") await checkBound(claims, options.find, now);
    else if (options.lookup) await checkLegacy(claims, token, options.find);
    return { user, audiences };
  };
}

function checkTimes({ times: { notBefore, issuedAt, expires } }: Verified["claims"], now: number): void {
  if (notBefore !== undefined && now + LEEWAY_SECONDS < notBefore) {
    throw new TokenRefusal("service account token is not valid yet");
  }
  if (expires !== undefined && now - LEEWAY_SECONDS > expires)
    throw new TokenRefusal("service account token has expired");
  if (issuedAt !== undefined && now + LEEWAY_SECONDS < issuedAt) {
    throw new TokenRefusal("service account token is issued in the future");
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
    if (metadata === undefined) throw new TokenRefusal("service account token has been invalidated");
    if (metadata.uid !== reference.uid) {
      throw new TokenRefusal(`${reference.kind} UID (${metadata.uid}) does not match claim (${reference.uid})`);
    }
    const { deletionTimestamp } = metadata;
    if (deletionTimestamp !== undefined && Date.parse(deletionTimestamp) / 1000 < now - LEEWAY_SECONDS) {
      throw new TokenRefusal("service account token has been invalidated");
    }
  }
}

async function checkLegacy(
  { namespace, account, secret }: LegacyClaims,
  token: string,
  find: FindBound,
): Promise<void> {
  const holder = (await find({ kind: "Secret", namespace, ...secret })) as
    | (ApiObject & { readonly data?: Readonly<Record<string, string>> | undefined })
    | undefined;
  if (holder?.metadata === undefined || holder.metadata.deletionTimestamp !== undefined) {
    throw new TokenRefusal("service account token has been invalidated");
  }
  const kept = Buffer.from(holder.data?.token ?? "", "base64");
  const sent = Buffer.from(token);
  if (kept.length !== sent.length || !timingSafeEqual(kept, sent)) {
    throw new TokenRefusal("service account token does not match server's copy");
  }
  const owner = await find({ kind: "ServiceAccount", namespace, ...account });
  if (owner?.metadata === undefined || owner.metadata.deletionTimestamp !== undefined) {
    throw new TokenRefusal(`service account ${namespace}/${account.name} has been deleted`);
  }
  if (owner.metadata.uid !== account.uid) {
    throw new TokenRefusal(`service account UID (${owner.metadata.uid}) does not match claim (${account.uid})`);
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
