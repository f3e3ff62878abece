/** The claims of service account tokens, as Kubernetes defines them. */

export interface Reference {
  readonly name: string;
  readonly uid?: string | undefined;
}

/** The claims of a bound token, valid while the account and the bound object exist. */
export interface BoundClaims {
  readonly type: "bound";
  readonly audiences: readonly string[];
  readonly times: Times;
  /** Unique for each token; empty if the issuer sets none. */
  readonly id: string;
  readonly namespace: string;
  readonly account: Reference;
  readonly pod?: Reference | undefined;
  /** The node of the token's pod, or the node that the token is bound to. */
  readonly node?: Reference | undefined;
  readonly secret?: Reference | undefined;
  /** Seconds since 1970: afterwards the token should have been refreshed. */
  readonly warnAfter?: number | undefined;
}

/** The claims of a legacy token without expiration, stored in a Secret. */
export interface LegacyClaims {
  readonly type: "legacy";
  readonly audiences: readonly string[];
  readonly times: Times;
  readonly namespace: string;
  readonly account: Reference;
  readonly secret: Reference;
}

/** Seconds since 1970. */
interface Times {
  readonly notBefore?: number | undefined;
  readonly issuedAt?: number | undefined;
  readonly expires?: number | undefined;
}

export interface TokenClaims {
  readonly issuer: string;
  readonly id: string;
  readonly audiences: readonly string[];
  /** Seconds since 1970. */
  readonly now: number;
  readonly expires: number;
  /** When the token should be refreshed. */
  readonly warnAfter?: number | undefined;
  readonly namespace: string;
  readonly account: Reference;
  readonly pod?: Reference | undefined;
  readonly node?: Reference | undefined;
  readonly secret?: Reference | undefined;
}

type Payload = Readonly<Record<string, unknown>>;

export const LEGACY_ISSUER = "kubernetes/serviceaccount";
const PRIVATE_CLAIM = "kubernetes.io";
const USER_PREFIX = "system:serviceaccount:";

export function serviceAccountUsername(namespace: string, name: string): string {
  return `${USER_PREFIX}${namespace}:${name}`;
}

/** The order of members is Kubernetes'. */
export function createPayload(issued: TokenClaims): Payload {
  const { issuer, id, audiences, now, expires, warnAfter, namespace, account, pod, node, secret } = issued;
  return {
    aud: audiences,
    exp: expires,
    iat: now,
    iss: issuer,
    jti: id,
    [PRIVATE_CLAIM]: { namespace, node, pod, secret, serviceaccount: account, warnafter: warnAfter },
    nbf: now,
    sub: serviceAccountUsername(namespace, account.name),
  };
}

/** A token without expiration, valid while the secret exists. */
export interface LegacyTokenClaims {
  readonly namespace: string;
  readonly account: Reference;
  readonly secret: Reference;
}

export function createLegacyPayload({ namespace, account, secret }: LegacyTokenClaims): Payload {
  const claim = `${PRIVATE_CLAIM}/serviceaccount`;
  return {
    iss: LEGACY_ISSUER,
    [`${claim}/namespace`]: namespace,
    [`${claim}/secret.name`]: secret.name,
    [`${claim}/service-account.name`]: account.name,
    [`${claim}/service-account.uid`]: account.uid,
    sub: serviceAccountUsername(namespace, account.name),
  };
}

/** Undefined for a malformed payload. */
export function parseClaims(payload: Payload): BoundClaims | LegacyClaims | undefined {
  const { aud, iss, jti } = payload;
  const listed = typeof aud === "string" ? [aud] : (aud ?? []);
  if (!Array.isArray(listed) || !listed.every((each) => typeof each === "string")) return undefined;
  const times = parseTimes(payload);
  if (times === undefined) return undefined;
  if (iss === LEGACY_ISSUER) return parseLegacyClaims(payload, listed, times);
  const { namespace, serviceaccount, pod, node, secret, warnafter } = asRecord(payload[PRIVATE_CLAIM]) ?? {};
  const account = parseReference(serviceaccount);
  if (
    typeof namespace !== "string" ||
    account === undefined ||
    payload.sub !== serviceAccountUsername(namespace, account.name)
  ) {
    return undefined;
  }
  const bound = { pod: parseReference(pod), node: parseReference(node), secret: parseReference(secret) };
  // A malformed reference must not be treated as absent, since the token would be bound to fewer objects.
  if ([pod, node, secret].filter((each) => each !== undefined).length > Object.values(bound).filter(Boolean).length) {
    return undefined;
  }
  const id = typeof jti === "string" ? jti : "";
  const warnAfter = typeof warnafter === "number" ? warnafter : undefined;
  return { type: "bound", audiences: listed, times, id, namespace, account, ...bound, warnAfter };
}

function parseLegacyClaims(payload: Payload, audiences: readonly string[], times: Times): LegacyClaims | undefined {
  const claim = (name: string): string => {
    const value = payload[`${PRIVATE_CLAIM}/serviceaccount/${name}`];
    return typeof value === "string" ? value : "";
  };
  const namespace = claim("namespace");
  const account = { name: claim("service-account.name"), uid: claim("service-account.uid") };
  const secret = { name: claim("secret.name") };
  if ([namespace, account.name, account.uid, secret.name].includes("")) return undefined;
  if (payload.sub !== serviceAccountUsername(namespace, account.name)) return undefined;
  return { type: "legacy", audiences, times, namespace, account, secret };
}

function parseTimes({ nbf, iat, exp }: Payload): Times | undefined {
  const [notBefore, issuedAt, expires] = [nbf, iat, exp].map((value) =>
    typeof value === "number" ? value : undefined,
  );
  const sent = [nbf, iat, exp].filter((value) => value !== undefined).length;
  const read = [notBefore, issuedAt, expires].filter((value) => value !== undefined).length;
  return sent === read ? { notBefore, issuedAt, expires } : undefined;
}

function parseReference(value: unknown): Reference | undefined {
  const { name, uid } = asRecord(value) ?? {};
  if (typeof name !== "string" || name === "") return undefined;
  return { name, ...(typeof uid === "string" && uid !== "" ? { uid } : {}) };
}

function asRecord(value: unknown): Payload | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Payload) : undefined;
}
